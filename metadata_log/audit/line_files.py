"""Lines of one kind in ``audit/``: two files, the one that is written and the one before it, so that they are bounded.

A line is JSON in a chain of its own (``chained_lines``); a damaged one is left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from quorate.metadata_log.audit.audit_lines import AUDIT_DIRECTORY
from quorate.metadata_log.audit.chained_lines import BEGIN, decode_chained, encode_chained


class LineFiles(NamedTuple):
    """The names of the two."""

    current: str
    before: str

    def of(self, directory: Path) -> list[Path]:
        """Those that are there in a metadata directory, oldest first."""
        files = (directory / AUDIT_DIRECTORY / name for name in (self.before, self.current))
        return [file for file in files if file.exists()]

    def values(self, directory: Path) -> Iterator[list[Any]]:
        """The content of the lines that are whole, oldest first.

        Raises:
            OSError: a file is there and cannot be read.
        """
        for name in (self.before, self.current):
            try:
                data = (directory / AUDIT_DIRECTORY / name).read_bytes()
            except FileNotFoundError:
                continue
            for line in decode_chained(data):
                yield json.loads(line.text)


def encode_values(lines: Iterable[tuple[Any, ...]], after: bytes = BEGIN) -> tuple[bytes, bytes]:
    """The lines as a file holds them, behind the line with the digest ``after``, and the digest of the last."""
    return encode_chained((json.dumps(line).encode() for line in lines), after)
