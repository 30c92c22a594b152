"""Audit lines, one for each change, beside the log: who asked for it, and in which event it was decided.

They have no place in Kafka's records, so they stand in files of their own in the metadata directory, named by base
offset and epoch of their first line. Within a file each event begins where the one before it ended, or later: where
offsets are decided again, a file begins. A line is JSON in a chain (``chained_lines``). Nothing depends on them: a line
that is cut short or damaged is left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from json.encoder import encode_basestring_ascii
from pathlib import Path
from typing import Final, NamedTuple

from quorate.metadata_log.audit.chained_lines import BEGIN, decode_chained, encode_chained

AUDIT_DIRECTORY: Final = "audit"
AUDIT_SUFFIX: Final = ".audit"


class AuditLine(NamedTuple):
    """One event that wrote records."""

    #: Of the controller that decided. Offsets of an epoch that did not commit are used again in a later one.
    epoch: int
    base_offset: int
    #: Exclusive. Of a pass over many partitions the end of its first slice.
    end_offset: int
    event: str
    #: Who asked, from where; None where the controller acted by itself.
    principal: str | None
    address: str | None
    request_id: str | None
    #: How it was proved who that is: certificate, token, ...; ``said``: not at all. None: older lines say nothing.
    proof: str | None = None
    #: The principal that asked in this one's name.
    proxy: str | None = None
    #: The ACL, or the rule, that allowed it: one of them, and of a request about several things of the last one.
    allowed_by: str | None = None


def encode_audit_lines(lines: Iterable[AuditLine], after: bytes = BEGIN) -> tuple[bytes, bytes]:
    """The lines as a file holds them, behind the line with the digest ``after``, and the digest of the last."""
    return encode_chained(map(_text, lines), after)


def _text(line: AuditLine) -> bytes:
    """The line as JSON; put together by hand it takes a third of the time."""
    epoch, base_offset, end_offset, event, *texts = line
    who = ",".join(map(_optional, texts))
    return f"[{epoch},{base_offset},{end_offset},{encode_basestring_ascii(event)},{who}]".encode()


def _optional(text: str | None) -> str:
    return "null" if text is None else encode_basestring_ascii(text)


def decode_audit_lines(data: bytes, position: int = 0) -> Iterator[AuditLine]:
    """The lines that are whole, from a position on. A line that was begun before it is none."""
    for line in decode_chained(data, position):
        yield AuditLine(*json.loads(line.text))


def audit_file_name(first: AuditLine) -> str:
    """The name of a file by its first line."""
    return f"{first.base_offset:020d}-{first.epoch:010d}{AUDIT_SUFFIX}"


def audit_file_offset(file: Path) -> int:
    """The base offset of a file's first line, by its name."""
    return int(file.name[:20])


def audit_files(directory: Path) -> list[Path]:
    """The audit files of a metadata directory, or of one that holds them, oldest first."""
    inner = directory / AUDIT_DIRECTORY
    return sorted((inner if inner.is_dir() else directory).glob(f"*{AUDIT_SUFFIX}"))
