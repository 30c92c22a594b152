"""The lease: until when a broker counts on its session. Times are milliseconds."""

import pytest

from quorate.broker.lifecycle.lease import LEASE_SHARE
from quorate.broker.lifecycle.lifecycle import BrokerLifecycle, SendRegistration
from quorate.metadata_log.errors import ErrorCode
from tests.unit.broker.lifecycle.test_lifecycle import OTHER, heartbeat, lifecycle, running


def promise(
    machine: BrokerLifecycle, sent_ms: float, answered_ms: float, session_ms: int, *, is_fenced: bool = False
) -> None:
    """A heartbeat that leaves and is answered at these times."""
    heartbeat(machine, sent_ms)
    machine.answered_heartbeat(
        answered_ms, is_caught_up=True, is_fenced=is_fenced, should_shut_down=False, session_ms=session_ms
    )


def test_lease_is_counted_from_the_sending_and_ends_before_what_was_promised() -> None:
    """A share is taken off for clocks that differ."""
    machine = running()
    promise(machine, 2_000, 3_500, 9_000)

    assert machine.lease.valid_until_ms == 2_000 + LEASE_SHARE * 9_000
    assert machine.lease.is_valid(9_199)
    assert not machine.lease.is_valid(9_200)


def test_lease_begins_with_a_promise() -> None:
    machine = lifecycle()
    machine.next_command(0)
    machine.answered_registration(0, 7)

    assert not machine.lease.is_valid(0)


def test_lease_does_not_shrink_by_a_smaller_promise() -> None:
    machine = running()
    promise(machine, 2_000, 2_000, 9_000)

    promise(machine, 4_000, 4_000, 0)

    assert machine.lease.valid_until_ms == 2_000 + LEASE_SHARE * 9_000


@pytest.mark.parametrize("end", ["fenced", "forgotten", "leaves", "fails", "registered anew"])
def test_lease_ends_with_the_session(end: str) -> None:
    machine = running()
    promise(machine, 2_000, 2_000, 9_000)
    if end == "fenced":
        promise(machine, 4_000, 4_000, 9_000, is_fenced=True)
    elif end == "forgotten":
        heartbeat(machine, 4_000)
        machine.failed(4_000, ErrorCode.BROKER_ID_NOT_REGISTERED, "unknown")
    elif end == "leaves":
        machine.begin_shutdown(4_000)
        machine.begin_shutdown(4_000)
    elif end == "fails":
        machine.saw_registration(8, OTHER)
    else:
        machine.register_again(4_000)
        assert machine.next_command(4_000) == SendRegistration(7)
        machine.answered_registration(4_000, 8)

    assert not machine.lease.is_valid(4_001)


def test_lease_goes_on_where_a_registration_is_amended() -> None:
    machine = running()
    promise(machine, 2_000, 2_000, 9_000)
    machine.register_again(4_000)
    machine.next_command(4_000)
    machine.answered_registration(4_000, 7)

    assert machine.lease.is_valid(9_199)
