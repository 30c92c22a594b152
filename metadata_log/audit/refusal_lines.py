"""Requests that were refused, and changed nothing: a line for each kind of them, beside the audit lines.

Two files in ``audit/``, the one that is written and the one before it, so that they are bounded whatever is asked. A
line is JSON in a chain of its own (``chained_lines``); a damaged one is left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from quorate.metadata_log.audit.audit_lines import AUDIT_DIRECTORY
from quorate.metadata_log.audit.chained_lines import BEGIN, decode_chained, encode_chained

REFUSED_NAME: Final = "refused"
REFUSED_BEFORE_NAME: Final = "refused.before"
#: Of each of the two files.
REFUSED_BYTES: Final = 4 * 1024 * 1024


class Refusal(NamedTuple):
    """A kind of refused requests. Where it was refused before anybody knew who asks there is no principal."""

    #: Method and route.
    request: str
    principal: str | None
    address: str | None
    #: Kafka's name of it.
    error: str
    #: How it was proved who asks, as in an audit line; None: it was refused before anybody knew.
    proof: str | None = None


class RefusalLine(NamedTuple):
    """Requests of one kind that were refused for one reason within half a second or so."""

    #: Of the first of them, milliseconds since 1970.
    time_ms: int
    #: How many.
    times: int
    #: Method and route; None: requests of so many kinds that they were only counted. Then all below is None.
    request: str | None
    principal: str | None
    address: str | None
    #: The first one's.
    request_id: str | None
    #: Kafka's name of the error.
    error: str | None
    message: str | None
    #: As in ``Refusal``; older lines do not say it.
    proof: str | None = None


def encode_refusals(lines: Iterable[RefusalLine], after: bytes = BEGIN) -> tuple[bytes, bytes]:
    """The lines as a file holds them, behind the line with the digest ``after``, and the digest of the last."""
    return encode_chained((json.dumps(line).encode() for line in lines), after)


def decode_refusals(data: bytes) -> Iterator[RefusalLine]:
    """The lines that are whole."""
    for line in decode_chained(data):
        yield RefusalLine(*json.loads(line.text))


def refusal_files(directory: Path) -> list[Path]:
    """The files of refusals of a metadata directory, oldest first."""
    files = (directory / AUDIT_DIRECTORY / name for name in (REFUSED_BEFORE_NAME, REFUSED_NAME))
    return [file for file in files if file.exists()]


def read_refusals(directory: Path, lines_max: int) -> list[RefusalLine]:
    """The newest lines of a metadata directory, oldest first.

    Raises:
        OSError: a file is there and cannot be read.
    """
    lines: list[RefusalLine] = []
    for name in (REFUSED_BEFORE_NAME, REFUSED_NAME):
        try:
            lines += decode_refusals((directory / AUDIT_DIRECTORY / name).read_bytes())
        except FileNotFoundError:
            continue
    return lines[-lines_max:]
