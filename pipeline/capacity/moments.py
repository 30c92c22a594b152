"""The times at which a history is looked at."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

#: More are not told apart in a plot; each costs a column of counts for every broker.
MOMENTS_MAX: Final = 120
_DAY: Final = timedelta(days=1)
_MICROSECOND: Final = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class SampleTimes:
    """Times `step_us` apart, the first at `first`; microseconds since 1970, UTC."""

    first_us: int
    step_us: int
    count: int

    @classmethod
    def between(cls, first: datetime, last: datetime) -> SampleTimes:
        """Return the days' ends from the first day to the last, or evenly spread times of a shorter or longer history.

        The last one is not before `last`: it shows how everything ended.
        """
        start, end = _microseconds(first), _microseconds(last)
        day = _DAY // _MICROSECOND
        days = end // day - start // day + 1
        if 4 <= days <= MOMENTS_MAX:
            return cls((start // day + 1) * day, day, days)
        step = max(1, -(-(end - start) // (MOMENTS_MAX - 1)))
        return cls(start, step, -(-(end - start) // step) + 1)

    def times(self) -> list[datetime]:
        epoch = datetime.fromisoformat("1970-01-01T00:00:00+00:00")
        return [epoch + timedelta(microseconds=self.first_us + at * self.step_us) for at in range(self.count)]


def _microseconds(time: datetime) -> int:
    return (time - datetime.fromisoformat("1970-01-01T00:00:00+00:00")) // _MICROSECOND
