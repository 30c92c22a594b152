"""A clock that stands still while nobody looks at it.

A process that was stopped or held up finds the words of its followers in its sockets, and its timers due before
them. The time in which nobody could be heard counts against nobody.
"""

from __future__ import annotations

from collections.abc import Callable


class AttendedClock:
    """Milliseconds, of which no more than ``gap_max_ms`` pass between two looks.

    It must be looked at more often than that, or it is slow.
    """

    def __init__(self, now_ms: Callable[[], float], gap_max_ms: float) -> None:
        self._now_ms = now_ms
        self._gap_max_ms = gap_max_ms
        self._seen_ms = now_ms()
        self._attended_ms = 0.0

    def now_ms(self) -> float:
        """The time attended so far."""
        seen_ms, self._seen_ms = self._seen_ms, self._now_ms()
        self._attended_ms += min(self._seen_ms - seen_ms, self._gap_max_ms)
        return self._attended_ms
