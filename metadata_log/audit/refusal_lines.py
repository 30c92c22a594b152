"""Requests that were refused, and changed nothing: a line for each kind of them, beside the audit lines."""

from __future__ import annotations

from pathlib import Path
from typing import Final, NamedTuple

from quorate.metadata_log.audit.line_files import LineFiles

REFUSED_FILES: Final = LineFiles("refused", "refused.before")


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


def refusal_files(directory: Path) -> list[Path]:
    """The files of refusals of a metadata directory, oldest first."""
    return REFUSED_FILES.of(directory)


def read_refusals(directory: Path, lines_max: int) -> list[RefusalLine]:
    """The newest lines of a metadata directory, oldest first.

    Raises:
        OSError: a file is there and cannot be read.
    """
    return [RefusalLine(*values) for values in REFUSED_FILES.values(directory)][-lines_max:]
