"""A cluster's growth and evenness, and the plan that evens it out: from logs, or tables of history or replay.

The state and the changes are added up by Spark; the plan is made in the driver, from arrays of some bytes a replica.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as f

from quorate.controller.planning.cluster import ReassignmentPlan
from quorate.pipeline.capacity.moments import SampleTimes
from quorate.pipeline.capacity.state import LAST, readings, state_tables
from quorate.pipeline.capacity.trend import RecordsByDay, Trend, standing, standing_on
from quorate.pipeline.errors import PipelineError
from quorate.pipeline.files.inputs import find_inputs
from quorate.pipeline.files.storage import checked, is_directory
from quorate.pipeline.fold.reading import fold_task
from quorate.pipeline.fold.state import state_at
from quorate.pipeline.planning.summary import PlanSummary, planned
from quorate.pipeline.planning.tables import NamedCluster, named_cluster
from quorate.pipeline.source.data_source import FORMAT
from quorate.pipeline.tables.history_schema import BROKER_VERSIONS, PARTITION_VERSIONS
from quorate.pipeline.tables.state_tables import PARTITIONS
from quorate.pipeline.tables.state_tables import TABLES as STATE_TABLES
from quorate.pipeline.tables.table_clusters import chosen_cluster
from quorate.pipeline.tables.table_frames import table_frame

#: What the planner needs of a state.
_PARTITION_COLUMNS = ("topic", "partition", "replicas", "directories", "removing_replicas", "adding_replicas", "leader")
_BROKER_COLUMNS = ("broker_id", "rack", "fenced", "log_dirs")


class NoTables(PipelineError):
    """A directory that has neither the tables of a history nor those of a state."""


@dataclass(frozen=True)
class Capacity:
    """The result of the job.

    Attributes:
        trend: None where there are no version tables. records: empty where no log was read.
    """

    cluster_id: str
    named: NamedCluster
    plan: ReassignmentPlan
    summary: PlanSummary
    trend: Trend | None
    records: RecordsByDay
    racks: dict[int, str | None]

    def as_json(self) -> dict[str, Any]:
        return {
            "cluster_id": self.cluster_id,
            "plan": self.summary.as_json(),
            "trend": None if self.trend is None else self.trend.as_json(),
            "records": self.records.as_json(),
        }


@dataclass(frozen=True)
class _Tables:
    """Partitions and brokers: every version of them (`is_history`), or those of one state."""

    partitions: DataFrame
    brokers: DataFrame
    is_history: bool

    def of(self, cluster_id: str) -> _Tables:
        is_it = f.col("cluster_id") == cluster_id
        return _Tables(self.partitions.where(is_it), self.brokers.where(is_it), self.is_history)

    def state(self, at: int | None) -> tuple[DataFrame, DataFrame]:
        """Return the state below an offset, or at the end."""
        if not self.is_history:
            return self.partitions, self.brokers
        end = f.col("valid_to_offset")
        holds = end.isNull() if at is None else (f.col("valid_from_offset") < at) & (end.isNull() | (end >= at))
        return self.partitions.where(holds), self.brokers.where(holds)


@dataclass(frozen=True)
class Wishes:
    """The wishes that the plan is to follow besides the rules.

    Attributes:
        at: plan for the state of all records below this offset; None: the last. drained, excluded: broker ids (see
            `planning.cluster.BrokerRole`). sizes: bytes of a replica, by topic and partition.
    """

    at: int | None = None
    drained: Collection[int] = ()
    excluded: Collection[int] = ()
    sizes: Mapping[tuple[str, int], float] | None = None


def capacity(
    spark: SparkSession,
    paths: Sequence[str],
    wishes: Wishes,
    *,
    tables: str | Path | None = None,
    cluster_id: str | None = None,
) -> Capacity:
    """Read logs, or tables, or both; count, and plan.

    Args:
        paths: logs of one cluster: their records are counted by type and day, and where there are no tables the state
            is folded from them. tables: a directory with partition_versions and broker_versions, or with partitions
            and brokers; of these only the former tell of growth. cluster_id: which of the tables' clusters.

    Raises:
        NoTables, WhichCluster, UnknownBroker, BadDirectories, NoPlan. StorageError: a log that cannot be read.
    """
    trend = None
    if tables is None:
        cluster_id, state = _folded(spark, paths, cluster_id, wishes.at)
    else:
        directory = checked(str(tables))
        opened = _open(spark, directory)
        cluster_id = _which(opened, directory, cluster_id)
        opened = opened.of(cluster_id)
        partitions, brokers = opened.state(wishes.at)
        state = partitions.select(*_PARTITION_COLUMNS).toArrow(), brokers.select(*_BROKER_COLUMNS).toArrow()
        trend = _trend(opened.partitions) if opened.is_history else None
    named = named_cluster(*state, drained=wishes.drained, excluded=wishes.excluded, sizes=wishes.sizes)
    plan, summary = planned(named)
    racks = {one.broker: one.rack for one in summary.brokers}
    return Capacity(cluster_id, named, plan, summary, trend, _records_by_day(spark, paths, cluster_id), racks)


def _folded(
    spark: SparkSession, paths: Sequence[str], cluster_id: str | None, at: int | None
) -> tuple[str, tuple[pa.Table, pa.Table]]:
    """Return the cluster of some logs, and its state: tasks folded by the workers, put together here."""
    (cluster,) = find_inputs(paths, cluster_id=cluster_id)
    moment = LAST if at is None else at
    plan = readings(cluster, at)
    read = spark.sparkContext.parallelize(plan, max(len(plan), 1))
    tasks = read.map(lambda one: fold_task(one.task, one.wanted, (moment,))[0]).collect()
    return cluster.cluster_id, state_tables(state_at(tasks, moment))


def _open(spark: SparkSession, directory: str) -> _Tables:
    for (partitions, schema), (brokers, of_brokers) in (
        (("partition_versions", PARTITION_VERSIONS), ("broker_versions", BROKER_VERSIONS)),
        (("partitions", PARTITIONS), ("brokers", STATE_TABLES["brokers"])),
    ):
        if is_directory(f"{directory}/{partitions}") and is_directory(f"{directory}/{brokers}"):
            return _Tables(
                table_frame(spark, f"{directory}/{partitions}", _columns(schema, _PARTITION_COLUMNS)),
                table_frame(spark, f"{directory}/{brokers}", _columns(of_brokers, _BROKER_COLUMNS)),
                is_history=schema is PARTITION_VERSIONS,
            )
    raise NoTables(f"{directory} holds no tables of partitions and brokers: make them with quorate pipeline history")


def _columns(schema: pa.Schema, wanted: Collection[str]) -> pa.Schema:
    """Return of a schema what is read here: some columns, the cluster, and when versions hold."""
    names = {"cluster_id", *wanted, "valid_from_offset", "valid_to_offset", "valid_from", "valid_to"}
    return pa.schema([field for field in schema if field.name in names])


def _which(tables: _Tables, directory: str, asked: str | None) -> str:
    there = {row.cluster_id for row in tables.brokers.select("cluster_id").distinct().collect()}
    return chosen_cluster(directory, there, asked)


def _trend(versions: DataFrame) -> Trend | None:
    ends = versions.agg(f.min("valid_from"), f.max(f.greatest("valid_from", f.coalesce("valid_to", "valid_from"))))
    row = ends.head()
    if row is None or row[0] is None:
        return None
    moments = SampleTimes.between(_utc(row[0]), _utc(row[1]))
    seen = _seen(versions, moments).cache()
    try:
        whole = seen.groupBy("at").agg(
            f.sum("more").alias("partitions"),
            f.sum(f.col("more") * f.size("replicas")).alias("replicas"),
            f.sum(f.when(f.col("partition") == 0, f.col("more")).otherwise(0)).alias("topics"),
            f.sum(f.when(f.col("leader") < 0, f.col("more")).otherwise(0)).alias("leaderless"),
        )
        rows = whole.collect()
        on = seen.select("at", "more", f.explode("replicas").alias("broker"))
        leads = seen.where(f.col("leader") >= 0).select("at", "more", f.col("leader").alias("broker"))
        replicas_on, leaders_on = (_by_broker(changes, moments) for changes in (on, leads))
    finally:
        seen.unpersist()
    of = {
        name: standing(((row["at"], row[name]) for row in rows), moments.count)
        for name in ("topics", "partitions", "replicas", "leaderless")
    }
    return Trend(moments.times(), **of, replicas_on=replicas_on, leaders_on=leaders_on)


def _seen(versions: DataFrame, moments: SampleTimes) -> DataFrame:
    """Return what changes at a moment: each version that holds at one is there once with +1 and once with -1.

    A version that begins and ends between two moments is not seen. Its moments are those from the first at or after
    its beginning to before the first at or after its end.
    """

    def moment(time: Column) -> Column:
        since = f.unix_micros(time) - f.lit(moments.first_us)
        return f.greatest(f.ceil(since / f.lit(moments.step_us)), f.lit(0)).cast("int")

    begins = moment(f.col("valid_from"))
    # Not by coalesce: `greatest` takes no notice of a null.
    ends = f.when(f.col("valid_to").isNull(), f.lit(moments.count)).otherwise(moment(f.col("valid_to")))
    spans = versions.select("partition", "replicas", "leader", begins.alias("begins"), ends.alias("ends"))
    steps = f.array(
        f.struct(f.col("begins").alias("at"), f.lit(1).alias("more")),
        f.struct(f.col("ends").alias("at"), f.lit(-1).alias("more")),
    )
    seen = spans.where(f.col("begins") < f.col("ends")).withColumn("step", f.explode(steps))
    return seen.select("partition", "replicas", "leader", "step.at", "step.more").where(f.col("at") < moments.count)


def _by_broker(changes: DataFrame, moments: SampleTimes) -> dict[int, Any]:
    rows = changes.groupBy("broker", "at").agg(f.sum("more").alias("more")).collect()
    return standing_on(((row["broker"], row["at"], row["more"]) for row in rows), moments.count)


def _records_by_day(spark: SparkSession, paths: Sequence[str], cluster_id: str) -> RecordsByDay:
    if not paths:
        return RecordsByDay([], {})
    read = spark.read.format(FORMAT).options(columns="time,type", clusterId=cluster_id)
    counts = read.load([str(path) for path in paths]).groupBy(f.to_date("time").alias("day"), "type").count()
    rows: list[Row] = counts.collect()
    days = sorted({row["day"] for row in rows})
    place = {day: at for at, day in enumerate(days)}
    records: dict[str, Any] = {}
    for row in rows:
        records.setdefault(row["type"], np.zeros(len(days), np.int64))[place[row["day"]]] = row["count"]
    # The most frequent first.
    ordered = sorted(records.items(), key=lambda one: -one[1].sum())
    return RecordsByDay([day.isoformat() for day in days], dict(ordered))


def _utc(time: datetime) -> datetime:
    """Return a time as Spark gives it, which is one of this machine's zone without saying so."""
    return time.astimezone(UTC)
