"""Broker events, incarnations and outages, out of hand-made versions."""

from itertools import pairwise

from quorate.snapshots.incidents.brokers import (
    DIRECTORIES_LOST,
    FENCED,
    REGISTERED,
    RESTARTED,
    SHUTDOWN,
    STOPPED,
    UNFENCED,
    UNREGISTERED,
    BrokerVersion,
    events,
    incarnations,
    outages,
)

#: One state of a broker: offset (seconds too), process, fenced, in controlled shutdown, directories.
State = tuple[int, str, bool, bool, tuple[str, ...]]
UP = (False, False, ("d1", "d2"))
DOWN = (True, False, ("d1", "d2"))


def history(*states: State, removed_at: int | None = None, broker: int = 7) -> list[BrokerVersion]:
    """The versions of one broker, each holding until the next."""
    ends = [after[0] for _, after in pairwise(states)] + [removed_at]
    return [
        BrokerVersion("c", broker, process, "a", fenced, shutdown, dirs, at, at * 1_000_000,
                      end, None if end is None else end * 1_000_000, end is not None and end == removed_at)
        for (at, process, fenced, shutdown, dirs), end in zip(states, ends, strict=True)
    ]  # fmt: skip


def kinds(versions: list[BrokerVersion]) -> list[tuple[str, int]]:
    return [(event.kind, event.offset) for event in events(versions)]


def test_a_crash_and_the_return_of_a_new_process() -> None:
    versions = history((1, "p", *DOWN), (2, "p", *UP), (10, "p", *DOWN), (20, "q", *DOWN), (25, "q", *UP))

    assert kinds(versions) == [(REGISTERED, 1), (UNFENCED, 2), (FENCED, 10), (REGISTERED, 20), (UNFENCED, 25)]
    first, second = incarnations(versions)
    assert (first.end, first.down_offset, first.fenced_us, first.fencings) == ("crash", 10, 10_000_000, 1)
    assert (second.end, second.down_offset) == ("running", None)
    (outage,) = outages(events(versions))
    assert (outage.kind, outage.offset, outage.back_offset, outage.registrations) == (FENCED, 10, 25, 1)


def test_a_controlled_shutdown_begins_before_the_fencing() -> None:
    stopping = (False, True, ("d1", "d2"))
    versions = history((1, "p", *DOWN), (2, "p", *UP), (10, "p", *stopping), (12, "p", True, True, ("d1", "d2")))

    assert kinds(versions)[2:] == [(SHUTDOWN, 10), (STOPPED, 12)]
    assert [(one.end, one.down_offset) for one in incarnations(versions)] == [("controlled_shutdown", 12)]
    (outage,) = outages(events(versions))
    assert (outage.kind, outage.offset, outage.fenced_offset, outage.back_offset) == (SHUTDOWN, 10, 12, None)


def test_a_session_that_was_lost_for_a_while_is_no_restart() -> None:
    versions = history((1, "p", *DOWN), (2, "p", *UP), (10, "p", *DOWN), (13, "p", *UP))

    (one,) = incarnations(versions)
    assert (one.end, one.fenced_us, one.fencings) == ("running", 3_000_000, 1)
    (outage,) = outages(events(versions))
    assert (outage.registrations, outage.back_offset) == (0, 13)


def test_a_new_process_may_register_before_the_old_one_is_fenced() -> None:
    versions = history((1, "p", *DOWN), (2, "p", *UP), (10, "q", *DOWN), (13, "q", *UP))

    assert kinds(versions)[2:] == [(RESTARTED, 10), (UNFENCED, 13)]
    assert [one.end for one in incarnations(versions)] == ["restarted", "running"]
    assert [(outage.kind, outage.back_offset) for outage in outages(events(versions))] == [(RESTARTED, 13)]


def test_fencing_what_is_fenced_says_nothing_new() -> None:
    versions = history((1, "p", *DOWN), (2, "p", *DOWN))

    assert kinds(versions) == [(REGISTERED, 1)]
    assert [one.end for one in incarnations(versions)] == ["never_unfenced"]
    assert outages(events(versions)) == []


def test_a_lost_directory_is_named_and_is_no_outage() -> None:
    versions = history((1, "p", *UP), (5, "p", False, False, ("d2",)))

    assert [(event.kind, event.log_dirs) for event in events(versions)][2:] == [(DIRECTORIES_LOST, ("d1",))]
    assert incarnations(versions)[0].log_dirs_lost == 1
    assert outages(events(versions)) == []


def test_unregistering_ends_an_outage_without_a_return() -> None:
    versions = history((1, "p", *UP), (5, "p", *DOWN), removed_at=8)

    assert kinds(versions)[2:] == [(FENCED, 5), (UNREGISTERED, 8)]
    (outage,) = outages(events(versions))
    assert outage.unregistered
    assert outage.back_offset is None


def test_brokers_are_told_apart() -> None:
    both = history((1, "p", *UP), (9, "p", *DOWN)) + history((2, "x", *UP), broker=8)

    assert [(outage.broker_id, outage.offset) for outage in outages(events(both))] == [(7, 9)]


def test_no_versions_no_events() -> None:
    assert events([]) == []
    assert incarnations([]) == []
    assert outages([]) == []
