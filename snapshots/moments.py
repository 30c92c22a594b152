"""A moment in a log's history, and which batches lie before it.

An offset: the state of all records below it. A time: the state before the first batch that is later. An epoch: the
state at the end of it. Inside a transaction each is the state before the transaction began.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from metadata_log.batch import BatchHeader
from metadata_log.errors import QuorateError

#: As a moment is written: what ``parse_moment`` takes, but for whether the calendar has such a day.
MOMENT_FORM: Final = (
    r"^([0-9]{1,19}|epoch:[0-9]{1,10}|[0-9]{4}-[0-9]{2}-[0-9]{2}([T ][0-9:.]{2,18}(Z|[+-][0-9:]{2,8})?)?)$"
)
_FORM: Final = re.compile(MOMENT_FORM)
_EPOCH: Final = "epoch:"


class InvalidMoment(QuorateError, ValueError):
    """A text that names no moment."""


@dataclass(frozen=True, slots=True)
class Moment:
    """Exactly one of the fields is set."""

    #: Exclusive end of what is replayed.
    offset: int | None = None
    #: Milliseconds since 1970: no batch behind one that is later is replayed, nor is that one.
    time_ms: int | None = None
    #: No batch of a higher epoch is replayed.
    epoch: int | None = None

    def __str__(self) -> str:
        if self.offset is not None:
            return f"offset {self.offset}"
        if self.epoch is not None:
            return f"the end of epoch {self.epoch}"
        assert self.time_ms is not None
        return datetime.fromtimestamp(self.time_ms / 1000, UTC).isoformat(timespec="milliseconds")

    def is_before(self, header: BatchHeader) -> bool:
        """Whether replay ends before this batch."""
        if self.offset is not None:
            return header.base_offset >= self.offset
        if self.time_ms is not None:
            return header.timestamp > self.time_ms
        assert self.epoch is not None
        return header.epoch > self.epoch

    def is_reached_at(self, end_offset: int) -> bool:
        """Whether a state that ends there is known to be the one, whatever comes behind it."""
        return self.offset is not None and end_offset >= self.offset

    def reaches(self, end_offset: int, epoch: int, time_ms: int) -> bool:
        """Whether a state that ends there, of a last batch of this epoch and time, is at the moment or before it."""
        if self.offset is not None:
            return end_offset <= self.offset
        if self.time_ms is not None:
            return time_ms <= self.time_ms
        assert self.epoch is not None
        return epoch <= self.epoch

    def lies_beyond(self, end_offset: int, epoch: int) -> bool:
        """Whether a log that ends there, in this epoch, does not reach the moment. It reaches every time."""
        if self.offset is not None:
            return end_offset < self.offset
        return self.epoch is not None and epoch < self.epoch

    def shortfall(self, end_offset: int, epoch: int) -> str:
        """Where a log ends that ``lies_beyond``, and what was wanted."""
        if self.offset is not None:
            return f"at offset {end_offset}, before {self.offset}"
        return f"in epoch {epoch}, before epoch {self.epoch}"


def parse_moment(text: str) -> Moment:
    """``2000``, ``epoch:7``, or a time of ISO 8601, in UTC where it names no zone: ``2026-01-31T12:00:00Z``.

    Raises:
        InvalidMoment: it is none of them.
    """
    if _FORM.fullmatch(text):
        if text.isdigit():
            return Moment(offset=int(text))
        if text.startswith(_EPOCH):
            return Moment(epoch=int(text.removeprefix(_EPOCH)))
        try:
            time = datetime.fromisoformat(text)
            return Moment(time_ms=round((time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp() * 1000))
        except (ValueError, OverflowError):
            pass
    raise InvalidMoment(f"{text[:80]!r} is no moment: an offset, a time as 2026-01-31T12:00:00Z, or epoch:7")
