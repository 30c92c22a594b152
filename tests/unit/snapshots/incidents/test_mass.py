"""Instants that belong together."""

from datetime import UTC, datetime, timedelta
from typing import Any

from quorate.snapshots.incidents.mass import mass_events

GAP = timedelta(seconds=10)


def instant(seconds: int, count: int, cause: str = "replicas_caught_up", broker: int | None = 7) -> dict[str, Any]:
    return {
        "cluster_id": "c", "cause": cause, "broker": broker, "cause_offset": None,
        "time": datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds), "from_offset": seconds * 1000,
        "to_offset": seconds * 1000 + count - 1, "partitions": count, "leaders_moved": 1, "leaders_lost": None,
        "isr_shrunk": 0, "isr_grown": count,
    }  # fmt: skip


def test_instants_that_follow_each_other_closely_are_one_event() -> None:
    (event,) = mass_events([instant(8, 60), instant(1, 50), instant(17, 5)], GAP, 100)

    assert (event["partitions"], event["from_offset"], event["to_offset"]) == (115, 1000, 17004)
    assert event["to_time"] - event["time"] == timedelta(seconds=16)
    assert (event["leaders_moved"], event["leaders_lost"]) == (3, 0)


def test_a_pause_another_cause_or_another_broker_divides() -> None:
    rows = [instant(1, 200), instant(30, 201), instant(2, 202, "preferred_election"), instant(3, 203, broker=8)]

    assert [row["partitions"] for row in mass_events(rows, GAP, 100)] == [200, 202, 203, 201]


def test_what_stays_small_is_no_mass_event() -> None:
    assert mass_events([instant(1, 40), instant(2, 59)], GAP, 100) == []
