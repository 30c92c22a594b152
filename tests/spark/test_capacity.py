"""The capacity job on small tables: counts at each moment, the state at an offset, which cluster, what it refuses."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from quorate.metadata_log.ids import uuid_text
from quorate.pipeline.jobs.capacity import NoTables, Wishes, capacity
from quorate.pipeline.planning.files import write_plan
from quorate.pipeline.tables.table_clusters import WhichCluster

DAY = timedelta(days=1)
START = datetime(2026, 11, 1, 6, tzinfo=UTC)
INTS = pa.list_(pa.int32())
TIME = pa.timestamp("us", "UTC")
VALID = [
    ("valid_from_offset", pa.int64()),
    ("valid_to_offset", pa.int64()),
    ("valid_from", TIME),
    ("valid_to", TIME),
]
STATE = [
    ("cluster_id", pa.string()),
    ("topic", pa.string()),
    ("partition", pa.int32()),
    ("replicas", INTS),
    ("directories", pa.list_(pa.string())),
    ("removing_replicas", INTS),
    ("adding_replicas", INTS),
    ("leader", pa.int32()),
]
BROKER = [
    ("cluster_id", pa.string()),
    ("broker_id", pa.int32()),
    ("rack", pa.string()),
    ("fenced", pa.bool_()),
    ("log_dirs", pa.list_(pa.string())),
]

#: (topic, partition, replicas, leader, days of validity; offsets are hundredfold days).
VERSIONS: list[tuple[str, int, list[int], int, float, float | None]] = [
    ("orders", 0, [11, 12], 11, 0.0, 2.5),
    ("orders", 0, [11, 12], -1, 2.5, 3.5),
    ("orders", 0, [11, 12], 12, 3.5, None),
    ("orders", 1, [11, 12], 11, 0.2, None),
    ("orders", 2, [11, 12], 11, 1.2, None),
    ("short", 0, [12, 11], 12, 1.3, 1.4),
    ("gone", 0, [12, 11, 13], 12, 0.1, 4.1),
]
BROKERS: list[tuple[int, str, bool, float, float | None]] = [
    (11, "a", False, 0.0, None),
    (12, "b", False, 0.0, None),
    (13, "a", True, 0.0, 5.0),
    (13, "a", False, 5.0, None),
]


def validity(start: float, end: float | None) -> dict[str, Any]:
    return {
        "valid_from_offset": int(start * 100),
        "valid_to_offset": None if end is None else int(end * 100),
        "valid_from": START + start * DAY,
        "valid_to": None if end is None else START + end * DAY,
    }


def write_history(directory: Path) -> None:
    partitions = [
        {
            "cluster_id": "one",
            "topic": topic,
            "partition": partition,
            "replicas": replicas,
            "directories": [],
            "removing_replicas": [],
            "adding_replicas": [],
            "leader": leader,
            **validity(start, end),
        }
        for topic, partition, replicas, leader, start, end in VERSIONS
    ]
    brokers = [
        {
            "cluster_id": "one",
            "broker_id": broker,
            "rack": rack,
            "fenced": fenced,
            "log_dirs": [],
            **validity(start, end),
        }
        for broker, rack, fenced, start, end in BROKERS
    ]
    write_table(directory / "partition_versions", partitions, pa.schema([*STATE, *VALID]))
    write_table(directory / "broker_versions", brokers, pa.schema([*BROKER, *VALID]))


def write_table(directory: Path, rows: list[dict[str, Any]], schema: pa.Schema) -> None:
    directory.mkdir(parents=True)
    pq.write_table(pa.Table.from_pylist(rows, schema), directory / "part-0.parquet")


def test_trend_of_a_history_counts_what_holds_at_each_moment(spark: SparkSession, tmp_path: Path) -> None:
    """The same counts, made one moment after another from the versions."""
    write_history(tmp_path)
    found = capacity(spark, [], Wishes(), tables=tmp_path)
    trend = found.trend
    assert trend is not None
    assert trend.times == [datetime(2026, 11, 2, tzinfo=UTC) + at * DAY for at in range(5)]

    for at, time in enumerate(trend.times):
        days = (time - START) / DAY
        held = [one for one in VERSIONS if one[4] <= days and (one[5] is None or days < one[5])]
        assert trend.partitions[at] == len(held)
        assert trend.replicas[at] == sum(len(one[2]) for one in held)
        assert trend.topics[at] == len({one[0] for one in held})
        assert trend.leaderless[at] == sum(one[3] < 0 for one in held)
        for broker in (11, 12, 13):
            assert trend.replicas_on[broker][at] == sum(broker in one[2] for one in held)
            counts = trend.leaders_on.get(broker)
            assert (0 if counts is None else counts[at]) == sum(one[3] == broker for one in held)


def test_plan_of_the_last_state_gives_an_empty_broker_its_share(spark: SparkSession, tmp_path: Path) -> None:
    """Broker 13 is back since day five, and holds nothing: one of six replicas in rack a goes to it, and no more."""
    write_history(tmp_path)
    found = capacity(spark, [], Wishes(), tables=tmp_path)
    files = write_plan(found.named, found.plan, tmp_path / "plan")

    assert found.cluster_id == "one"
    assert {one.broker: (one.replicas_before, one.replicas_after) for one in found.summary.brokers} == {
        11: (3, 2),
        12: (3, 3),
        13: (0, 1),
    }
    assert (found.summary.moves, found.summary.fewest_moves) == (1, 1)
    (file,) = files
    document = json.loads(file.read_text())
    assert document["version"] == 1
    assert all(set(one) == {"topic", "partition", "replicas"} for one in document["partitions"])
    assert sum(13 in one["replicas"] for one in document["partitions"]) == 1


def test_lost_directories_are_read_from_tables(spark: SparkSession, tmp_path: Path) -> None:
    """Broker 11 has another directory than its replica of orders-0 lies in: 12 is to lead."""
    mine, failed = uuid_text(bytes(15) + b"\xc8"), uuid_text(bytes(15) + b"\xc9")
    row: list[Any] = ["one", "orders", 0, [11, 12], [failed, mine], [], [], 12]
    write_table(tmp_path / "partitions", [dict(zip((name for name, _ in STATE), row, strict=True))], pa.schema(STATE))
    rows: list[list[Any]] = [["one", id_, None, False, [mine]] for id_ in (11, 12)]
    brokers = [dict(zip((name for name, _ in BROKER), one, strict=True)) for one in rows]
    write_table(tmp_path / "brokers", brokers, pa.schema(BROKER))
    found = capacity(spark, [], Wishes(), tables=tmp_path)

    assert (found.summary.lost, found.summary.lost_moved, found.summary.moves) == (1, 0, 0)
    assert [one.preferred_after for one in found.summary.brokers] == [0, 1]


def test_plan_for_an_offset_is_that_of_the_state_below_it(spark: SparkSession, tmp_path: Path) -> None:
    """At offset 400 broker 13 is fenced, and keeps what it has."""
    write_history(tmp_path)
    summary = capacity(spark, [], Wishes(at=400), tables=tmp_path).summary

    assert summary.partitions == 4
    assert {one.broker: one.role for one in summary.brokers} == {11: "takes", 12: "takes", 13: "keeps"}


def test_plan_of_state_tables_has_no_trend(spark: SparkSession, tmp_path: Path) -> None:
    """The replay job's tables are one state."""
    row: list[Any] = ["one", "orders", 0, [11, 12], [], [], [], 11]
    write_table(tmp_path / "partitions", [dict(zip((name for name, _ in STATE), row, strict=True))], pa.schema(STATE))
    rows: list[list[Any]] = [["one", id_, None, False, []] for id_ in (11, 12)]
    brokers = [dict(zip((name for name, _ in BROKER), one, strict=True)) for one in rows]
    write_table(tmp_path / "brokers", brokers, pa.schema(BROKER))
    found = capacity(spark, [], Wishes(sizes={("orders", 0): 10.0}), tables=tmp_path)

    assert found.trend is None
    assert found.summary.changed == 0
    assert found.summary.bytes_moved == 0


def test_directory_without_tables_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    """And the sentence says how they are made."""
    with pytest.raises(NoTables, match="quorate pipeline history"):
        capacity(spark, [], Wishes(), tables=tmp_path)


def test_cluster_that_the_tables_lack_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    """Those that they have are named."""
    write_history(tmp_path)

    with pytest.raises(WhichCluster, match="no cluster two: they hold one"):
        capacity(spark, [], Wishes(), tables=tmp_path, cluster_id="two")


def test_log_itself_gives_state_and_records_by_day(spark: SparkSession, kafka_data: Path) -> None:
    """Of the captured cluster with 3,061 partitions, two of its four brokers dead."""
    log = kafka_data / "static" / "m2" / "log"
    found = capacity(spark, [str(log)], Wishes())

    expected = json.loads((kafka_data / "static" / "m2" / "expected.json").read_text())
    assert found.summary.partitions == sum(len(topic["partitions"]) for topic in expected["topics"].values()) == 3061
    assert {one.broker: one.role for one in found.summary.brokers} == {
        11: "takes",
        12: "takes",
        13: "keeps",
        14: "keeps",
    }
    assert found.summary.verdict.replicas.is_even
    assert found.summary.verdict.leaders.is_even
    assert found.summary.moves == found.summary.fewest_moves
    assert found.records.counts["TopicRecord"].sum() == 76
    assert next(iter(found.records.counts)) == "PartitionChangeRecord"
