"""Reads that were answered: a line for each kind of them, beside the audit lines, where settings ask for it."""

from __future__ import annotations

from pathlib import Path
from typing import Final, NamedTuple

from quorate.metadata_log.audit.line_files import LineFiles

READ_FILES: Final = LineFiles("read", "read.before")


class AnsweredRead(NamedTuple):
    """A kind of reads."""

    #: Method and route.
    request: str
    principal: str
    address: str
    #: How it was proved who asks, as in an audit line.
    proof: str
    #: The principal that asked in this one's name; empty: none did.
    proxy: str


class ReadLine(NamedTuple):
    """Reads of one kind within half a second or so."""

    #: Of the first of them, milliseconds since 1970.
    time_ms: int
    #: How many.
    times: int
    #: Method and route; None: reads of so many kinds that they were only counted. Then all below is None.
    request: str | None
    principal: str | None
    address: str | None
    proof: str | None
    proxy: str | None
    #: The first one's.
    request_id: str | None


def read_reads(directory: Path, lines_max: int) -> list[ReadLine]:
    """The newest lines of a metadata directory, oldest first.

    Raises:
        OSError: a file is there and cannot be read.
    """
    return [ReadLine(*values) for values in READ_FILES.values(directory)][-lines_max:]
