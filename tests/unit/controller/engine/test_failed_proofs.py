"""What was shown and is wrong is counted by kind, and a burst of it is a fault until it is over."""

from __future__ import annotations

from quorate.controller.engine.failed_proofs import BURST, BURST_MS, KINDS, NOTHING, FailedProofs


def test_failures_are_counted_by_kind() -> None:
    failed = FailedProofs()
    for kind in ("bearer", "seal", "bearer"):
        failed.note(kind, "10.0.0.1", 0.0)
    assert failed.counts == {**dict.fromkeys(KINDS, 0), "bearer": 2, "seal": 1}


def test_burst_is_a_fault_that_names_where_most_came_from_and_ends() -> None:
    failed = FailedProofs()
    for number in range(BURST - 1):
        failed.note("bearer", "10.0.0.1" if number else "10.0.0.2", float(number))
    assert failed.sentence(100.0) is None
    failed.note("bearer", "10.0.0.1", 100.0)
    told = failed.sentence(100.0)
    assert told is not None
    assert f"{BURST - 1} of them from 10.0.0.1" in told
    assert failed.sentence(BURST_MS + 1.0) is None


def test_slow_failures_and_those_who_show_nothing_are_no_burst() -> None:
    slow, silent = FailedProofs(), FailedProofs()
    for number in range(3 * BURST):
        slow.note("bearer", "10.0.0.1", number * BURST_MS / (BURST - 2))
        silent.note(NOTHING, "10.0.0.1", 0.0)
    assert slow.sentence(3 * BURST * BURST_MS / (BURST - 2)) is None
    assert silent.sentence(0.0) is None
    assert silent.counts == {**dict.fromkeys(KINDS, 0), NOTHING: 3 * BURST}
