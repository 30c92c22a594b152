"""The running event loop as the controller's scheduler."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable


class LoopScheduler:
    """``controller.event_queue.Scheduler`` on the loop that runs when it is made."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()

    def call_soon(self, callback: Callable[[], None]) -> None:
        """Call back in the next turn of the loop."""
        self._loop.call_soon(callback)

    def call_later(self, delay_ms: float, callback: Callable[[], None]) -> asyncio.TimerHandle:
        """Call back after a delay."""
        return self._loop.call_later(delay_ms / 1000, callback)

    def monotonic_ms(self) -> float:
        """For intervals and deadlines."""
        # Not the loop's own time: uvloop's counts whole milliseconds, and most events take a fraction of one.
        return time.monotonic() * 1000

    def wall_ms(self) -> int:
        """Milliseconds since 1970."""
        return time.time_ns() // 1_000_000
