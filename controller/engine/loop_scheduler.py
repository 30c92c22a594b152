"""The running event loop as the controller's scheduler."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from quorate.controller.engine.faults import FaultHandler
from quorate.metadata_log.steady_clock import steady_ms


class LoopScheduler:
    """``engine.event_queue.Scheduler`` on the loop that runs when it is made. What a callback raises is fatal."""

    def __init__(self, faults: FaultHandler) -> None:
        self._loop = asyncio.get_running_loop()
        self._faults = faults

    def call_soon(self, callback: Callable[[], None]) -> None:
        """Call back in the next turn of the loop."""
        self._loop.call_soon(self._run, callback)

    def call_later(self, delay_ms: float, callback: Callable[[], None]) -> asyncio.TimerHandle:
        """Call back after a delay."""
        return self._loop.call_later(delay_ms / 1000, self._run, callback)

    def monotonic_ms(self) -> float:
        """For intervals and deadlines."""
        # Not the loop's own time: uvloop's counts whole milliseconds, and most events take a fraction of one. And it
        # stands still while the machine is suspended: what is promised to brokers then would be longer than it holds.
        return steady_ms()

    def wall_ms(self) -> int:
        """Milliseconds since 1970."""
        return time.time_ns() // 1_000_000

    def _run(self, callback: Callable[[], None]) -> None:
        try:
            callback()
        except Exception as error:  # noqa: BLE001  # the loop would log it and go on, with half of a change made
            self._faults.fatal("an event of the controller", error)
