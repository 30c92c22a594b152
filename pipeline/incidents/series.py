"""What the page draws: counts over time, thinned to what a picture can show, and the leaders of a few partitions."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sf

from pipeline.incidents.changes import KEY
from pipeline.incidents.findings import Span
from pipeline.incidents.intervals import counts_over_time
from pipeline.incidents.search import Search, rows

#: More points than a picture is wide tell nothing.
POINTS_MAX: Final = 2_000
_PARTITIONS_SHOWN: Final = 40

#: A number of things from each time on.
Steps = list[tuple[datetime, int]]


@dataclass(slots=True)
class Series:
    """The pictures of one cluster."""

    #: By name of what is counted: leaderless, under_replicated, under_min_isr.
    health: dict[str, Steps] = field(default_factory=dict)
    #: By broker: partitions that it leads.
    led: dict[int, Steps] = field(default_factory=dict)
    #: By partition, those that were without a leader for longest first: leaders from each time on, -1 = none.
    leaders: dict[str, Steps] = field(default_factory=dict)


def series_of(search: Search, span: Span) -> Series:
    """The pictures of one of the clusters that were searched."""
    width_us = max(1, int((span.end - span.begin) / timedelta(microseconds=1)) // POINTS_MAX)
    found = Series()
    for name in ("leaderless", "under_replicated", "under_min_isr"):
        table = search.tables[name].where(sf.col("cluster_id") == span.cluster_id)
        found.health[name] = _worst(counts_over_time(table), width_us)
    changes = search.changes.where(sf.col("cluster_id") == span.cluster_id)
    found.led = _led(changes, width_us)
    found.leaders = _leaders(changes, search.tables["leaderless"].where(sf.col("cluster_id") == span.cluster_id))
    return found


def _bucket(width_us: int) -> Column:
    return sf.floor(sf.unix_micros("time") / width_us)


def _worst(counts: DataFrame, width_us: int) -> Steps:
    """The highest count of each stretch of time, and the last one, for it holds until the next."""
    worst = counts.groupBy(_bucket(width_us).alias("bucket")).agg(
        sf.max_by("time", "count").alias("at"), sf.max("count").alias("most"),
        sf.max("time").alias("until"), sf.max_by("count", "time").alias("last"),
    )  # fmt: skip
    steps: Steps = []
    for row in rows(worst.orderBy("bucket")):
        steps += sorted({(row["at"], row["most"]), (row["until"], row["last"])})
    return steps


def _led(changes: DataFrame, width_us: int) -> dict[int, Steps]:
    taken = changes.where("before is null or leader != before.leader")
    first_or_changed = sf.array(
        sf.struct(sf.col("leader").alias("broker"), sf.lit(1).alias("step")),
        sf.struct(sf.col("before.leader").alias("broker"), sf.lit(-1).alias("step")),
    )
    deltas = taken.select("time", sf.inline(first_or_changed))
    last_leader = sf.max_by("leader", sf.struct("offset", "record_offset")).alias("broker")
    gone = changes.where("gone_offset is not null").groupBy(*KEY, sf.col("gone_time").alias("time")).agg(last_leader)
    deltas = deltas.unionByName(gone.select("time", "broker", sf.lit(-1).alias("step")))
    net = deltas.where("broker >= 0").groupBy("broker", _bucket(width_us).alias("bucket"))
    steps = net.agg(sf.max("time").alias("time"), sf.sum("step").alias("step"))
    until_now = Window.partitionBy("broker").orderBy("bucket").rowsBetween(Window.unboundedPreceding, 0)
    found: dict[int, Steps] = {}
    counted = steps.select("broker", "time", sf.sum("step").over(until_now).alias("count")).orderBy("broker", "time")
    for row in rows(counted):
        found.setdefault(row["broker"], []).append((row["time"], row["count"]))
    return found


def _leaders(changes: DataFrame, leaderless: DataFrame) -> dict[str, Steps]:
    lasted = sf.coalesce(sf.unix_millis("to_time"), sf.unix_millis(sf.current_timestamp())) - sf.unix_millis(
        "from_time"
    )
    worst = leaderless.groupBy(*KEY).agg(sf.sum(lasted).alias("without"))
    worst = worst.orderBy(sf.desc("without"), "topic_id", "partition").limit(_PARTITIONS_SHOWN)
    taken = changes.where("before is null or leader != before.leader").join(sf.broadcast(worst), list(KEY))
    name = sf.concat_ws("-", "topic", "partition").alias("name")
    found: dict[str, Steps] = {}
    for row in rows(taken.select(name, "time", "leader", "without").orderBy(sf.desc("without"), "name", "time")):
        found.setdefault(row["name"], []).append((row["time"], row["leader"]))
    return found
