"""A moment in a log's history, and which batches lie before it.

An offset: the state of all records below it. A time: the state after the last batch that is not later. An epoch: the
state at the end of it. Inside a transaction each is the state before the transaction began.

Times go by the clocks of those who wrote the log. Quorate's never fall; Kafka's do where a leader's clock was ahead of
its successor's. What lies before a batch was there when that was written, so the last one decides: a batch whose time
was ahead hides nothing that came after it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from quorate.metadata_log.errors import QuorateError

if TYPE_CHECKING:
    # Of all that write moments down only some read logs: commands should start fast.
    from quorate.metadata_log.batches.batch import BatchHeader

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
    #: Milliseconds since 1970: no batch is replayed behind the last one that is not later.
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

    def in_log(self, start: int, headers: Iterable[BatchHeader]) -> Moment:
        """Itself; a time as the offset that it comes to where a state at ``start`` is followed by such batches."""
        return self if self.time_ms is None else Moment(offset=self.end_in_time(start, headers))

    def end_in_time(self, start: int, headers: Iterable[BatchHeader]) -> int:
        """End of the last of these batches that is not later than this time; ``start`` if all are."""
        assert self.time_ms is not None
        return max((header.end_offset for header in headers if header.timestamp <= self.time_ms), default=start)

    def is_before(self, header: BatchHeader) -> bool:
        """Whether replay ends before this batch. Of a time that takes the whole log: see ``in_log``."""
        if self.offset is not None:
            return header.base_offset >= self.offset
        assert self.epoch is not None, f"{self} has not been looked up in the log"
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

    def lies_beyond(self, end_offset: int, epoch: int, time_ms: int, now_ms: float) -> bool:
        """Whether a log whose last batch ends there, of this epoch and time, does not reach the moment.

        It reaches every time but those that are yet to come: until ``now_ms`` nothing came behind its end. Times are
        of whole milliseconds, and now may be one that was rounded up.
        """
        if self.offset is not None:
            return end_offset < self.offset
        if self.time_ms is not None:
            return max(time_ms, now_ms + 1) < self.time_ms
        return self.epoch is not None and epoch < self.epoch

    def lead(self, first: BatchHeader) -> str:
        """Words for the begin of a log whose first batch is behind the moment, and for the moment."""
        if self.time_ms is not None:
            return f"at {Moment(time_ms=first.timestamp)}, after {self}"
        return f"in epoch {first.epoch}, after epoch {self.epoch}"

    def shortfall(self, end_offset: int, epoch: int, time_ms: int) -> str:
        """Words for the end of a log that the moment ``lies_beyond``, and for the moment."""
        if self.offset is not None:
            return f"at offset {end_offset}, before {self.offset}"
        if self.time_ms is not None:
            return f"at offset {end_offset}, time {Moment(time_ms=time_ms)}, before {self}, which is yet to come"
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
