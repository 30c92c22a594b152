"""Durations of controller changes."""

from quorate.snapshots.incidents.failovers import Epoch, failovers


def test_a_failover_is_measured_from_the_last_record_of_the_old_epoch() -> None:
    old = Epoch("c", 1, 1, 0, 0, 1, 500_000, 99, 10_000_000)
    new = Epoch("c", 2, 3, 100, 12_000_000, 101, 13_500_000, 200, 99_000_000)

    (change,) = failovers([new, old])

    assert (change.old_leader, change.new_leader, change.last_offset, change.elected_offset) == (1, 3, 99, 100)
    assert (change.election_ms, change.failover_ms) == (2_000, 3_500)


def test_an_epoch_without_data_has_no_end_of_its_failover() -> None:
    old = Epoch("c", 1, 1, 0, 0, 1, 500_000, 99, 10_000_000)
    new = Epoch("c", 4, None, 100, 12_000_000, None, None, 100, 12_000_000)

    (change,) = failovers([old, new])

    assert (change.epoch, change.new_leader, change.failover_ms) == (4, None, None)


def test_epochs_of_two_clusters_do_not_follow_each_other() -> None:
    assert failovers([Epoch("c", 1, 1, 0, 0, 1, 1, 9, 9), Epoch("d", 2, 1, 0, 0, 1, 1, 9, 9)]) == []
