"""What one process finds is what the workers of Spark find: both sets of rules on the same made-up versions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from quorate.pipeline.incidents.merging import merge, merged_instants
from quorate.pipeline.incidents.partitions.bucket import by_time_of, parts_of, tables_of
from quorate.pipeline.incidents.tables import rows_of
from quorate.snapshots.incidents.brokers import BrokerVersion, events, incarnations, outages
from quorate.snapshots.incidents.findings import IncidentFindings, at
from quorate.snapshots.incidents.min_isr import BROKER, TOPIC, ConfigSpan
from quorate.snapshots.incidents.serial.search import LogVersions, search
from quorate.snapshots.incidents.serial.versions import PartitionHistory, PartitionVersion
from quorate.snapshots.incidents.telling.story import incidents
from quorate.snapshots.incidents.thresholds import INSTANT_SHARE, Thresholds
from tests.incident_versions import CLUSTER, SECOND, changes_of, known, partition, versions_of

THRESHOLDS = Thresholds(
    mass_partitions=40, flaps=0, slow_reassignment=timedelta(seconds=5), flap_window=timedelta(seconds=20)
)
Rows = Sequence[Mapping[str, Any]]


def life(dice: Random, topic: str, number: int) -> Rows:
    """A partition to which anything happens that a log can hold."""
    offset = dice.randrange(5)
    replicas = dice.sample(range(1, 5), 3)
    born = {"replicas": replicas, "isr": replicas, "leader": replicas[0]}
    changes: list[tuple[int, Mapping[str, Any]]] = [(offset, born)]
    if dice.random() < 0.3:
        changes[0] = offset, {**born, "change": "base", "isr": replicas[:1]}
    epoch = 0
    for place in range(dice.randrange(12)):
        # Within a transaction all hold from one offset on.
        offset += dice.choice([0, 1, 1, 2, 7])
        replicas = dice.choice([replicas, replicas, dice.sample(range(1, 5), dice.randint(1, 3))])
        epoch += dice.random() < 0.5
        isr = dice.sample(replicas, dice.randint(0, len(replicas)))
        change: dict[str, Any] = {
            "record_offset": (offset + 1) * 100 + place,
            "leader": dice.choice([-1, *isr, dice.randint(1, 4)]),
            "leader_epoch": epoch,
            "isr": isr,
            "replicas": replicas,
            "adding_replicas": dice.choice([[], [], dice.sample(replicas, 1)]),
            "removing_replicas": dice.choice([[], [], dice.sample(replicas, 1)]),
            "eligible_leader_replicas": dice.choice([None, [], sorted(dice.sample(range(1, 5), 2))]),
            "last_known_elr": dice.choice([None, [], [dice.randint(1, 4)]]),
        }
        kept = dice.sample(sorted(change), dice.randint(1, len(change)))
        changes.append((offset, {name: change[name] for name in {*kept, "record_offset"}}))
    gone = offset + dice.randrange(3) if topic == "t0" else None
    return partition(*changes, topic=topic, number=number, gone=gone)


def plain(rows: Rows) -> PartitionHistory:
    """The same versions as plain values."""
    first, last = rows[0], rows[-1]
    gone = (last["valid_to_offset"], last["valid_to"]) if last["removed"] else None
    found = PartitionHistory(
        first["topic_id"], first["topic"], first["partition"], first["change"] == "base", gone=gone
    )
    lists = ("isr", "replicas", "adding_replicas", "removing_replicas", "eligible_leader_replicas", "last_known_elr")
    found.versions = [
        PartitionVersion(
            row["valid_from_offset"], row["valid_from"], row["leader"], row["leader_epoch"],
            *(tuple(row[name] or ()) for name in lists),
        )
        for row in rows
    ]  # fmt: skip
    return found


def process(dice: Random, broker_id: int) -> list[BrokerVersion]:
    """A broker that comes and goes in any way that a log can hold."""
    edges = sorted(dice.sample(range(60), 4))
    ends: list[int | None] = [*edges[1:], None]
    return [
        BrokerVersion(
            CLUSTER, broker_id, dice.choice("ab"), None, dice.random() < 0.5, dice.random() < 0.3,
            tuple(dice.sample("xy", dice.randint(1, 2))), at, at * SECOND, end, end and end * SECOND, False,
        )
        for at, end in zip(edges, ends, strict=True)
    ]  # fmt: skip


def by_workers(
    lives: Sequence[Rows], versions: list[BrokerVersion], spans: list[ConfigSpan], end_us: int | None = None
) -> IncidentFindings:
    happened = events(versions)
    of = known(happened, spans, THRESHOLDS)
    changes = changes_of(versions_of(*lives), of)
    tables = tables_of(changes, of)
    parts = parts_of(changes, tables, of)
    found = IncidentFindings([], happened, incarnations(versions), outages(happened))
    ends_us = {} if end_us is None else {CLUSTER: end_us, "another": 10**15}
    merge(found, {name: [part] for name, part in parts.items()}, THRESHOLDS, of.now_us, ends_us)
    merged = merged_instants([by_time_of(changes, tables)["instants"]], THRESHOLDS.mass_partitions // INSTANT_SHARE)
    found.instants = rows_of(pa.table(merged))
    return found


def by_one(
    lives: Sequence[Rows], versions: list[BrokerVersion], spans: list[ConfigSpan], end_us: int | None = None
) -> IncidentFindings:
    return search(LogVersions(CLUSTER, list(map(plain, lives)), versions, min_isr=spans), THRESHOLDS, end_us).findings


def _place(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return row["time"], row["cause"], row["broker"] or -1, row["cause_offset"] or -1


def comparable(found: IncidentFindings) -> dict[str, Any]:
    """Every list of it; of those without an order of their own what is in them."""
    lists = {name: getattr(found, name) for name in IncidentFindings.__slots__}
    lists["instants"] = sorted(lists["instants"], key=_place)
    # By it the tables of Spark find the first one.
    lists["flapping"] = [{key: row[key] for key in row if key != "least_first"} for row in lists["flapping"]]
    return lists


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("end_us", [None, 1, 5_000 * SECOND], ids=["no-log", "log-ends-before", "log-ends-behind"])
def test_one_process_finds_what_workers_find(seed: int, end_us: int | None) -> None:
    """Whether the log's end is known, and goes on behind the last change of a partition."""
    dice = Random(seed)
    lives = [life(dice, f"t{number % 4}", number) for number in range(dice.choice([1, 5, 40]))]
    versions = [version for broker_id in range(1, 5) for version in process(dice, broker_id)]
    spans = [
        ConfigSpan(CLUSTER, TOPIC, "t1", "2", 10, 10 * SECOND, 20, 20 * SECOND),
        ConfigSpan(CLUSTER, BROKER, "", "3", 15, 15 * SECOND, None, None),
    ]

    expected, found = by_workers(lives, versions, spans, end_us), by_one(lives, versions, spans, end_us)

    assert comparable(found) == comparable(expected)
    assert (found.spans[0].end == at(5_000 * SECOND)) is (end_us == 5_000 * SECOND)
    assert incidents(found, THRESHOLDS) == incidents(expected, THRESHOLDS)


def test_made_up_lives_reach_every_list_of_findings() -> None:
    dice = Random(1)
    lives = [life(dice, f"t{number % 4}", number) for number in range(200)]
    found = by_one(lives, process(dice, 1), [])
    of_the_log = ("failovers", "unclean_allowed")
    assert [name for name, rows in comparable(found).items() if not rows and name not in of_the_log] == []


def test_history_without_partitions_has_no_span() -> None:
    found = search(LogVersions(CLUSTER, brokers=process(Random(2), 1)), THRESHOLDS)
    assert (found.findings.spans, found.reassignments, bool(found.findings.events)) == ([], [], True)
