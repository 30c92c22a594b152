"""What the buckets of topics give is, put together, what one bucket of all would give."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from quorate.pipeline.incidents.merging import merge, merged_instants
from quorate.pipeline.incidents.partitions.bucket import Known, by_time_of, parts_of, tables_of
from quorate.pipeline.incidents.partitions.series import series, stretches_of, summed_up, widths_us
from quorate.pipeline.incidents.tables import rows_of
from quorate.snapshots.incidents import kinds
from quorate.snapshots.incidents.brokers import FENCED, UNFENCED, BrokerEvent, outages
from quorate.snapshots.incidents.findings import IncidentFindings
from quorate.snapshots.incidents.telling.story import incidents
from quorate.snapshots.incidents.thresholds import Thresholds
from tests.incident_versions import SECOND, changes_of, known, partition, versions_of

THRESHOLDS = Thresholds(
    mass_partitions=4, flaps=0, slow_reassignment=timedelta(seconds=5), flap_window=timedelta(seconds=100)
)
EVENTS = [BrokerEvent("c", 1, FENCED, 41, 40 * SECOND), BrokerEvent("c", 1, UNFENCED, 61, 60 * SECOND)]
KNOWN = known(EVENTS, thresholds=THRESHOLDS)

Rows = Sequence[Mapping[str, Any]]


def story(number: int, dice: Random) -> Rows:
    """A partition that loses its leader at 40, has another or none, and is whole again some time after 60."""
    back = dice.randrange(60, 70)
    leader = dice.choice([2, -1])
    changes: list[tuple[int, Mapping[str, Any]]] = [
        (10 + number % 3, {}),
        (40, {"leader": leader, "isr": [2, 3] if leader > 0 else [], "eligible_leader_replicas": []}),
        (back, {"leader": 1, "isr": [1]} if leader < 0 else {"isr": [1, 2, 3]}),
        (back + 1, {"leader": 1, "isr": [1, 2, 3]}),
    ]
    if number % 4 == 0:
        moving = {"replicas": [1, 2, 3, 4], "adding_replicas": [4], "removing_replicas": [2]}
        changes.append((72, moving))
        changes += [(80, {"replicas": [1, 3, 4], "adding_replicas": [], "removing_replicas": []})] * (number % 8 == 0)
    return partition(*changes, topic=f"t{number % 5}", number=number, gone=95 if number % 5 == 4 else None)


STORIES = [story(number, Random(number)) for number in range(40)]


def found_in(buckets: Sequence[Sequence[Rows]], of: Known = KNOWN) -> tuple[IncidentFindings, Any]:
    """The findings and pictures of these buckets of partitions."""
    parts: dict[str, list[pa.Table]] = {}
    for bucket in buckets:
        changes = changes_of(versions_of(*bucket), of)
        tables = tables_of(changes, of)
        for name, part in {**parts_of(changes, tables, of), **by_time_of(changes, tables)}.items():
            parts.setdefault(name, []).append(part)
    findings = IncidentFindings([], EVENTS, outages=outages(EVENTS))
    merge(findings, parts, of.thresholds, of.now_us, {})
    findings.instants = rows_of(merged_instants(parts["instants"], 4))
    widths = {**widths_us(findings.spans), "c": 7 * SECOND}
    steps = pa.concat_tables(parts["steps"])
    place = stretches_of(steps, widths) % 2
    stretches = [row for one in (0, 1) for row in rows_of(summed_up(steps.filter(pa.array(place == one)), widths))]
    leaders = [row for part in parts["leaders"] for row in rows_of(part)]
    return findings, series(findings.spans, stretches, leaders)


@pytest.fixture(scope="module")
def together() -> tuple[IncidentFindings, Any]:
    return found_in([STORIES])


def comparable(findings: IncidentFindings) -> dict[str, Any]:
    return {
        name: sorted(map(str, getattr(findings, name)))
        for name in IncidentFindings.__slots__
        if isinstance(getattr(findings, name), list)
    }


def test_buckets_together_give_what_one_gives(together: tuple[IncidentFindings, Any]) -> None:
    buckets = [[one for one in STORIES if int(one[0]["topic"][1:]) in topics] for topics in ((0, 1), (2,), (3, 4))]

    findings, drawn = found_in(buckets)

    assert comparable(findings) == comparable(together[0])
    assert drawn == together[1]


def test_counts_are_those_of_the_partitions(together: tuple[IncidentFindings, Any]) -> None:
    findings, _ = together
    leaderless = [one for one in STORIES if one[1]["leader"] == -1]

    assert [(span.from_offset, span.to_offset, span.partitions) for span in findings.spans] == [(10, 95, 40)]
    (effect,) = findings.effects
    assert (effect["cause"], effect["broker"], effect["cause_offset"]) == (FENCED, 1, 41)
    assert (effect["partitions"], effect["leaders_moved"], effect["leaders_lost"]) == (40, 40, len(leaderless))
    (removed,) = [row for row in findings.instants if row["cause"] == kinds.REMOVED]
    assert (removed["partitions"], removed["from_offset"], removed["leaders_moved"]) == (8, 95, None)
    assert sum(row["partitions"] for row in findings.leaderless) == len(leaderless)
    assert sum(row["partitions"] for row in findings.elections) == len(leaderless)


def test_few_changes_at_one_time_are_no_instant(together: tuple[IncidentFindings, Any]) -> None:
    by_cause: dict[tuple[Any, str], int] = {}
    for row in together[0].instants:
        key = (row["time"], row["cause"])
        by_cause[key] = by_cause.get(key, 0) + row["partitions"]

    assert min(by_cause.values()) >= 4


def test_reassignments_that_are_open_are_told_as_such(together: tuple[IncidentFindings, Any]) -> None:
    findings, _ = together
    told = [one for one in incidents(findings, THRESHOLDS) if one.kind.startswith("reassignment")]

    assert {row["outcome"]: row["count"] for row in findings.reassignment_outcomes} == {
        "completed": 5, "open": 4, "topic_removed": 1,
    }  # fmt: skip
    kinds_of = {f"{one.details['topic']}-{one.details['partition']}": (one.kind, one.is_open) for one in told}
    assert kinds_of["t2-12"] == ("reassignment_open", True)
    assert kinds_of["t0-0"] == ("reassignment_slow", False)
    (still,) = [one for one in told if one.details["partition"] == 12]
    assert (still.to_offset, still.details["waiting_for"], still.cause) == (None, [4], "slow")
    assert "is open since 23.0 s; [4] have not caught up" in still.text  # from 72 to the history's end


def test_pictures_count_at_every_time(together: tuple[IncidentFindings, Any]) -> None:
    drawn = together[1]["c"]
    leaderless = [one for one in STORIES if one[1]["leader"] == -1]

    assert max(count for _, count in drawn.health["leaderless"]) == len(leaderless)
    assert drawn.health["leaderless"][-1][1] == 0
    assert {broker: steps[-1][1] for broker, steps in drawn.led.items()} == {1: 32, 2: 0}
    longest = max(leaderless, key=lambda one: one[2]["valid_from"] - one[1]["valid_from"])
    first = next(iter(drawn.leaders.values()))
    assert [leader for _, leader in first] == [1, -1, 1]
    assert len(drawn.leaders) == len(leaderless)
    assert (first[2][0] - first[1][0]).total_seconds() == longest[2]["valid_from_offset"] - 40
