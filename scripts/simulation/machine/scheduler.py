"""Virtual time: events in order, one at a time."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any


class VirtualScheduler:
    """A heap of events. Equal times keep the order in which they were scheduled."""

    def __init__(self) -> None:
        #: Virtual seconds since the start.
        self.now = 0.0
        #: Events handled so far.
        self.count = 0
        self._heap: list[tuple[float, int, Callable[..., None], tuple[Any, ...]]] = []
        self._sequence = 0

    def at(self, time: float, action: Callable[..., None], *arguments: Any) -> None:
        """Call ``action`` at ``time``, or now if that is past."""
        self._sequence += 1
        heapq.heappush(self._heap, (max(time, self.now), self._sequence, action, arguments))

    def after(self, delay: float, action: Callable[..., None], *arguments: Any) -> None:
        """Call ``action`` after ``delay`` seconds."""
        self.at(self.now + delay, action, *arguments)

    def step(self) -> bool:
        """Handle the next event; False when there is none."""
        if not self._heap:
            return False
        self.now, _, action, arguments = heapq.heappop(self._heap)
        self.count += 1
        action(*arguments)
        return True
