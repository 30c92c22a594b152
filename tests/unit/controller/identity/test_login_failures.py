"""Who tries passwords is slowed down by address, and nobody else is."""

from __future__ import annotations

import pytest

from quorate.controller.identity import login_failures
from quorate.controller.identity.login_failures import FAILURES_MAX, FORGOTTEN_MS, LoginFailures
from quorate.metadata_log.errors import Overloaded


class Stage:
    """Failures by a clock that a test moves."""

    def __init__(self) -> None:
        self.now_ms = 1_700_000_000_000.0
        self.failures = LoginFailures(lambda: self.now_ms)

    def is_let(self, address: str) -> bool:
        try:
            self.failures.check(address)
        except Overloaded:
            return False
        return True

    def fail(self, address: str, times: int = FAILURES_MAX) -> None:
        for _ in range(times):
            self.failures.note(address)


def test_address_that_failed_too_often_waits_for_each_further_try_and_others_do_not() -> None:
    s = Stage()
    s.fail("10.0.0.1", FAILURES_MAX - 1)
    assert s.is_let("10.0.0.1")
    s.fail("10.0.0.1", 1)
    assert [s.is_let(one) for one in ("10.0.0.1", "10.0.0.2", "")] == [False, True, True]
    s.now_ms += FORGOTTEN_MS
    assert s.is_let("10.0.0.1")
    s.fail("10.0.0.1", 1)
    assert not s.is_let("10.0.0.1")
    s.now_ms -= 1_000_000
    assert not s.is_let("10.0.0.1"), "a clock that goes back forgets nothing"
    s.now_ms += 2_000_000
    s.fail("10.0.0.1", FAILURES_MAX - 1)
    assert s.is_let("10.0.0.1")


def test_addresses_of_one_network_of_ipv6_are_one() -> None:
    s = Stage()
    for host in range(FAILURES_MAX):
        s.fail(f"2001:db8::{host:x}", 1)
    assert [s.is_let(one) for one in ("2001:db8::ffff:1", "2001:db8:0:1::1")] == [False, True]


def test_those_who_failed_last_are_remembered_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(login_failures, "ADDRESSES_MAX", 2)
    s = Stage()
    for address in ("10.0.0.1", "10.0.0.2", "10.0.0.1", "10.0.0.3"):
        s.fail(address)
    assert [s.is_let(f"10.0.0.{host}") for host in (1, 2, 3)] == [False, True, False]
    assert len(s.failures._counts) == 2
