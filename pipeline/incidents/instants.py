"""What happened to many partitions at once, and what each broker event did: counts by instant and cause."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sf

from pipeline.incidents.changes import elr_lost
from pipeline.incidents.kinds import REMOVED, UNCLEAN_STOP


def _counts() -> list[Column]:
    """Sums over changes; ``one_partition`` is an example of them."""
    deposed = sf.col("before").isNotNull() & (sf.col("leader") != sf.col("before.leader"))
    return [
        sf.min("offset").alias("from_offset"),
        sf.max("offset").alias("to_offset"),
        sf.count("*").alias("partitions"),
        sf.count_if(deposed).alias("leaders_moved"),
        sf.count_if(deposed & (sf.col("leader") < 0)).alias("leaders_lost"),
        sf.count_if(sf.size("lost") > 0).alias("isr_shrunk"),
        sf.count_if(sf.size("gained") > 0).alias("isr_grown"),
    ]


def instants(changes: DataFrame, at_least: int) -> DataFrame:
    """Changes by time, cause and broker, of the times and causes that have at least so many.

    The time of a batch is that of all its records, so a batch's changes are never torn apart.
    """
    broker = sf.coalesce("subject", sf.get("gained", sf.lit(0))).alias("broker")
    grouped = changes.groupBy("cluster_id", "time", "cause", broker, "cause_offset").agg(*_counts())
    gone = changes.where("before is null and gone_offset is not null")
    removed = gone.groupBy("cluster_id", sf.col("gone_time").alias("time")).agg(
        sf.min("gone_offset").alias("from_offset"),
        sf.max("gone_offset").alias("to_offset"),
        sf.count("*").alias("partitions"),
    )
    removed = removed.withColumns({"cause": sf.lit(REMOVED)})
    both = grouped.unionByName(removed, allowMissingColumns=True)
    together = sf.sum("partitions").over(Window.partitionBy("cluster_id", "time", "cause"))
    return both.withColumn("together", together).where(sf.col("together") >= at_least).drop("together")


def effects(changes: DataFrame) -> DataFrame:
    """What each broker event took away, by ``cluster_id``, ``cause``, ``broker`` and ``cause_offset``."""
    caused = changes.where("cause_offset is not null").withColumn("broker", sf.col("subject"))
    return caused.groupBy("cluster_id", "cause", "broker", "cause_offset").agg(
        sf.min("time").alias("from_time"), sf.max("time").alias("to_time"), *_counts()
    )


def unclean_stops(changes: DataFrame) -> DataFrame:
    """Partitions that took a broker out of the ELR as it registered again, by broker and time."""
    dropped = changes.where(sf.col("cause") == UNCLEAN_STOP).withColumn("broker", sf.get(elr_lost(), sf.lit(0)))
    return dropped.groupBy("cluster_id", "broker", "time").agg(
        sf.min("offset").alias("from_offset"), sf.count("*").alias("partitions")
    )


def grouped_elections(elections: DataFrame) -> DataFrame:
    """Rows of ``partitions.risky_elections`` by time, kind and leader; ``ahead`` and ``exposed_ms`` at their worst."""
    worst = sf.max_by("ahead", "exposed_ms")
    return elections.groupBy("cluster_id", "time", "kind", "leader").agg(
        sf.min("offset").alias("from_offset"),
        sf.max("offset").alias("to_offset"),
        sf.count("*").alias("partitions"),
        sf.max("exposed_ms").alias("exposed_ms"),
        sf.coalesce(worst, sf.first("ahead"), sf.array()).alias("ahead"),
        sf.slice(sf.array_sort(sf.collect_set("topic")), 1, 20).alias("topics"),
        sf.min_by(sf.concat_ws("-", "topic", "partition"), "offset").alias("first_partition"),
    )


def grouped_runs(intervals: DataFrame) -> DataFrame:
    """Runs of one condition by what began and what ended them, with the time they add up to."""
    lasted = sf.unix_millis("to_time") - sf.unix_millis("from_time")
    return intervals.groupBy("cluster_id", "cause", "broker", "cause_offset", "ended_by").agg(
        sf.count("*").alias("partitions"),
        sf.min("from_offset").alias("from_offset"),
        sf.min("from_time").alias("from_time"),
        sf.max("to_offset").alias("to_offset"),
        sf.max("to_time").alias("to_time"),
        sf.sum(lasted).alias("total_ms"),
        sf.max(lasted).alias("longest_ms"),
        sf.min_by(sf.concat_ws("-", "topic", "partition"), "from_offset").alias("first_partition"),
    )
