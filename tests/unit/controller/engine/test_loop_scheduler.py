"""The clock and the timers of a controller."""

import asyncio
import time

import pytest

from quorate.controller.engine.counters import Counters
from quorate.controller.engine.environment import ProcessFaults
from quorate.controller.engine.loop_scheduler import LoopScheduler
from tests.waiting import PATIENCE_S


async def test_clock_goes_on_while_the_machine_is_suspended_and_timers_wait_for_what_they_were_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Others are elected meanwhile: what is promised by it must have ended."""
    scheduler, read = LoopScheduler(ProcessFaults(Counters())), time.clock_gettime
    before_ms, fired = scheduler.monotonic_ms(), asyncio.Event()
    suspended = {time.CLOCK_BOOTTIME: 100.0}
    monkeypatch.setattr(time, "clock_gettime", lambda clock: read(clock) + suspended.get(clock, 0.0))

    assert 100_000 <= scheduler.monotonic_ms() - before_ms < 110_000
    scheduler.call_later(1.0, fired.set)
    async with asyncio.timeout(PATIENCE_S):
        await fired.wait()
    assert scheduler.monotonic_ms() - before_ms < 150_000
