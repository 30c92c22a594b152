"""Standstills of an event loop: what everybody waits who is served by it, on top of all else.

A timer that is due every 10 ms comes late by as much as something else kept the loop. It costs a thousandth of a core.
"""

from __future__ import annotations

import asyncio
import math
import time
from bisect import bisect_left
from collections.abc import Callable
from typing import Final

#: Upper ends in seconds: close to each other where a quorum's heartbeats and elections are.
STANDSTILL_BUCKETS: Final = (
    *(0.01, 0.015, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.5, 0.75),
    *(1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 30.0),
)
#: What is shorter happens all the time, and nobody notices.
_LEAST_S: Final = 0.005
_INTERVAL_S: Final = 0.01
#: Whoever sent something has given up waiting by then, and may have asked somebody else.
LONG_S: Final = 2.0
#: Behind a long standstill: what came meanwhile is read within this time.
_WAKING_S: Final = 1.0


class StandstillTimes:
    """Counts of standstills by how long they were; the first bucket has those of 5 to 10 ms."""

    __slots__ = ("counts", "total_seconds")

    def __init__(self) -> None:
        self.counts = [0] * (len(STANDSTILL_BUCKETS) + 1)
        self.total_seconds = 0.0

    def note(self, seconds: float) -> None:
        """One more."""
        self.counts[bisect_left(STANDSTILL_BUCKETS, seconds)] += 1
        self.total_seconds += seconds

    def copy(self) -> StandstillTimes:
        """As of now."""
        copied = StandstillTimes()
        copied.counts[:] = self.counts
        copied.total_seconds = self.total_seconds
        return copied

    def buckets(self) -> list[tuple[str, float]]:
        """Cumulative, as Prometheus wants them."""
        ends = [*map(str, STANDSTILL_BUCKETS), "+Inf"]
        return [(end, float(sum(self.counts[: place + 1]))) for place, end in enumerate(ends)]


class Standstills:
    """The standstills of one loop, by their cause; its thread writes."""

    def __init__(self) -> None:
        #: By cause: the loop was at ``work``, for half of the time on a processor at least; or ``waiting`` for one, for
        #: a disk, or for the interpreter, which another thread had.
        self.by_cause = {"waiting": StandstillTimes(), "work": StandstillTimes()}
        #: When the loop was looked at last; None: nobody looks.
        self._looked_s: float | None = None
        self._woke_s, self._stood_s = -math.inf, 0.0
        #: From when on somebody may have sent something.
        self._open_s = math.inf

    def note(self, late_s: float, worked_s: float) -> None:
        """A timer was late by so much; ``worked_s``: processor time of its thread since the one before it."""
        if late_s >= _LEAST_S:
            self.by_cause["work" if 2 * worked_s >= late_s else "waiting"].note(late_s)

    def open(self, now_s: float) -> None:
        """From now on something may be sent to who is served by the loop: it stood still before for nobody, as while a
        process loads its state.
        """
        self._open_s = now_s

    def note_look(self, now_s: float, late_s: float) -> None:
        """The loop was looked at, so much later than it was to be."""
        self._looked_s = now_s
        stood_s = min(late_s, now_s - self._open_s)
        if stood_s >= LONG_S:
            self._woke_s, self._stood_s = now_s, stood_s

    def just_ended(self, now_s: float) -> float:
        """Seconds of a long standstill which ends only now, or has just ended; 0: there is none. What is read now may
        have come long ago. ``now_s``: as in ``note_look``.
        """
        if self._looked_s is None:
            return 0.0
        since_s = now_s - max(self._looked_s, self._open_s)  # what comes is read before the timers' turn, or behind it
        if since_s >= LONG_S:
            return since_s
        return self._stood_s if now_s - self._woke_s < _WAKING_S else 0.0

    def copy(self) -> Standstills:
        """As of now."""
        copied = Standstills()
        copied.by_cause = {cause: times.copy() for cause, times in self.by_cause.items()}
        return copied


class StandstillWatch:
    """Looks at the running loop until it is closed."""

    def __init__(
        self,
        found: Standstills,
        now_s: Callable[[], float] = time.monotonic,
        worked_s: Callable[[], float] = time.thread_time,
    ) -> None:
        """``found``: what it writes to. ``worked_s``: processor time of the loop's thread so far."""
        self._found = found
        self._now_s = now_s
        self._worked_s = worked_s
        self._loop = asyncio.get_running_loop()
        self._worked_before_s = worked_s()
        found.note_look(now_s(), 0.0)
        self._arm()

    def close(self) -> None:
        """Look no more."""
        self._timer.cancel()

    def _arm(self) -> None:
        self._due_s = self._now_s() + _INTERVAL_S
        self._timer = self._loop.call_later(_INTERVAL_S, self._look)

    def _look(self) -> None:
        worked_s, now_s = self._worked_s(), self._now_s()
        self._found.note(now_s - self._due_s, worked_s - self._worked_before_s)
        self._found.note_look(now_s, now_s - self._due_s)
        self._worked_before_s = worked_s
        self._arm()
