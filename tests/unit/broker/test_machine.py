"""The clock of a process of brokers."""

import time

import pytest

from quorate.broker.machine import real_machine


def test_clock_goes_on_while_the_machine_is_suspended(monkeypatch: pytest.MonkeyPatch) -> None:
    """A session ends meanwhile, so a lease must."""
    read = time.clock_gettime
    machine = real_machine()
    before_ms = machine.now_ms()
    suspended = {time.CLOCK_BOOTTIME: 100.0}
    monkeypatch.setattr(time, "clock_gettime", lambda clock: read(clock) + suspended.get(clock, 0.0))

    assert machine.now_ms() - before_ms >= 100_000
    assert machine.now_ms() == pytest.approx(time.clock_gettime(time.CLOCK_BOOTTIME) * 1000, abs=10_000)
