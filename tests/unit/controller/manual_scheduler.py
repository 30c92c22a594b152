"""A scheduler whose time moves only when a test says so."""

from __future__ import annotations

import heapq
import itertools
from collections import deque
from collections.abc import Callable


class ManualTimer:
    """A wake-up that a test's clock will reach, unless it is cancelled."""

    def __init__(self, callback: Callable[[], None]) -> None:
        self.callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        self.callback = None


class ManualScheduler:
    """``controller.engine.event_queue.Scheduler`` under a test's control."""

    def __init__(self, wall_ms: int = 1_700_000_000_000) -> None:
        self.now_ms = 0.0
        self.wall_start_ms = wall_ms
        self._soon: deque[Callable[[], None]] = deque()
        self._timers: list[tuple[float, int, ManualTimer]] = []
        self._numbers = itertools.count()

    def call_soon(self, callback: Callable[[], None]) -> None:
        self._soon.append(callback)

    def call_later(self, delay_ms: float, callback: Callable[[], None]) -> ManualTimer:
        timer = ManualTimer(callback)
        heapq.heappush(self._timers, (self.now_ms + delay_ms, next(self._numbers), timer))
        return timer

    def monotonic_ms(self) -> float:
        return self.now_ms

    def wall_ms(self) -> int:
        return self.wall_start_ms + int(self.now_ms)

    def run_turn(self) -> bool:
        """What was called soon before this call; False if there was nothing."""
        callbacks, self._soon = self._soon, deque()
        for callback in callbacks:
            callback()
        return bool(callbacks)

    def run(self) -> None:
        """Turns until nothing is left to do now."""
        while self.run_turn():
            pass

    def advance(self, delay_ms: float) -> None:
        """Let time pass, with every timer at its time."""
        end = self.now_ms + delay_ms
        self.run()
        while self._timers and self._timers[0][0] <= end:
            at_ms, _, timer = heapq.heappop(self._timers)
            self.now_ms = max(self.now_ms, at_ms)
            if timer.callback is not None:
                timer.callback()
            self.run()
        self.now_ms = end
