"""From when to when something was true of a partition: the runs in its changes, and how many ran at any time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as sf

from pipeline.incidents.changes import KEY, in_order
from pipeline.incidents.min_isr import MinIsrSteps

REMOVED: Final = "topic_removed"
OPEN: Final = "open"
MIN_ISR_CHANGED: Final = "min_isr_changed"


def leaderless() -> Column:
    """No broker leads the partition."""
    return sf.col("leader") < 0


def under_replicated() -> Column:
    """Fewer in the ISR than replicas, those not counted that a reassignment is still adding (as Kafka counts)."""
    return sf.size("isr") < sf.size(sf.array_except("replicas", "adding_replicas"))


def runs(changes: DataFrame, condition: Column, at_end: Sequence[str] = ()) -> DataFrame:
    """One row per run of versions in which the condition holds.

    Args:
        changes: ``changes.partition_changes``, or rows made of it, with any further columns.
        condition: of one row.
        at_end: columns of the row that ended the run, to be given as the struct ``end``.

    Returns:
        The key, ``topic``, ``from_offset``, ``from_time``, ``to_offset``, ``to_time`` (null: it holds still),
        ``cause``, ``broker`` and ``cause_offset`` of the change that began it, and ``ended_by``: the cause of the
        change that ended it, ``topic_removed`` or ``open``.
    """
    seen = changes.withColumn("now", sf.coalesce(condition, sf.lit(False)))
    seen = seen.withColumn("was", sf.coalesce(sf.lag("now").over(in_order()), sf.lit(False)))
    edges = seen.where(sf.col("now") != sf.col("was"))
    following = sf.lead(sf.struct("offset", "time", "cause", *at_end)).over(in_order())
    begun = edges.withColumn("end", following).where("now")
    return begun.select(
        *KEY,
        "topic",
        sf.col("offset").alias("from_offset"),
        sf.col("time").alias("from_time"),
        sf.coalesce("end.offset", "gone_offset").alias("to_offset"),
        sf.coalesce("end.time", "gone_time").alias("to_time"),
        "cause",
        sf.col("subject").alias("broker"),
        "cause_offset",
        sf.when(sf.col("end").isNotNull(), sf.col("end.cause"))
        .when(sf.col("gone_offset").isNotNull(), REMOVED)
        .otherwise(OPEN)
        .alias("ended_by"),
        *(["end"] if at_end else []),
    )


def under_min_isr(spark: SparkSession, changes: DataFrame, steps: MinIsrSteps) -> DataFrame:
    """Runs with fewer in the ISR than min.insync.replicas asks for, whichever of the two changed.

    As in Kafka a topic of fewer replicas than that needs them all.
    """
    table = spark.createDataFrame(
        steps.rows(), "cluster_id string, topic string, steps array<struct<from:bigint,to:bigint,us:bigint,value:int>>"
    )
    of_topic = table.where("topic is not null").withColumnRenamed("steps", "of_topic")
    of_cluster = table.where("topic is null").drop("topic").withColumnRenamed("steps", "of_cluster")
    wide = changes.join(sf.broadcast(of_topic), ["cluster_id", "topic"], "left")
    wide = wide.join(sf.broadcast(of_cluster), ["cluster_id"], "left")
    holding = sf.array(
        sf.struct(
            sf.lit(-1).alias("from"),
            sf.lit(None).alias("to"),
            sf.lit(0).alias("us"),
            sf.lit(steps.default).alias("value"),
        )
    ).cast("array<struct<from:bigint,to:bigint,us:bigint,value:int>>")
    wide = wide.withColumn("until", sf.lead("offset").over(in_order())).withColumn(
        "steps", sf.coalesce("of_topic", "of_cluster", holding)
    )
    touching = sf.filter(
        "steps",
        lambda step: (
            (sf.col("until").isNull() | (step["from"] < sf.col("until")))
            & (step["to"].isNull() | (step["to"] > sf.col("offset")))
        ),
    )
    later = sf.col("step.from") > sf.col("offset")
    pieces = wide.withColumn("step", sf.explode(touching)).select(
        *KEY,
        "topic",
        "isr",
        "replicas",
        "gone_offset",
        "gone_time",
        "record_offset",
        sf.greatest("offset", "step.from").alias("offset"),
        sf.when(later, sf.timestamp_micros("step.us")).otherwise(sf.col("time")).alias("time"),
        sf.when(later, MIN_ISR_CHANGED).otherwise(sf.col("cause")).alias("cause"),
        sf.when(~later, sf.col("subject")).alias("subject"),
        sf.when(~later, sf.col("cause_offset")).alias("cause_offset"),
        sf.least("step.value", sf.size("replicas")).alias("needed"),
    )
    return runs(pieces, sf.size("isr") < sf.col("needed"))


def counts_over_time(intervals: DataFrame) -> DataFrame:
    """How many of the runs were on, at each time at which that number changed: ``cluster_id``, ``time``, ``count``."""
    begins = intervals.select("cluster_id", sf.col("from_time").alias("time"), sf.lit(1).alias("step"))
    ends = intervals.where("to_time is not null").select(
        "cluster_id", sf.col("to_time").alias("time"), sf.lit(-1).alias("step")
    )
    net = begins.union(ends).groupBy("cluster_id", "time").agg(sf.sum("step").alias("step"))
    until_now = Window.partitionBy("cluster_id").orderBy("time").rowsBetween(Window.unboundedPreceding, 0)
    return net.where("step != 0").select("cluster_id", "time", sf.sum("step").over(until_now).alias("count"))
