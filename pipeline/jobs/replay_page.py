"""The page of `replay --html`: what the tables of a state come to, broker by broker."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from quorate.pipeline.jobs.replay import ReplayResult
from quorate.pipeline.pages import HtmlPage, bars
from quorate.pipeline.tables.state_tables import PARTITIONS
from quorate.pipeline.tables.table_frames import table_frame

_NO_LEADER = -1
_LISTS = ("replicas", "isr", "adding_replicas", "removing_replicas")
_READ = pa.schema([PARTITIONS.field(name) for name in ("topic", "leader", *_LISTS)])


def replay_page(spark: SparkSession, tables: str | Path, result: ReplayResult) -> HtmlPage:
    """Count what the replay job has written."""
    page = HtmlPage(f"State of cluster {result.cluster_id} at offset {result.offset:,}", f"digest {result.digest}")
    names = {"entries": "Records of the state that are no partition's"}
    facts = [(names.get(name, name.capitalize()), count) for name, count in sorted(result.rows.items())]
    if not result.rows.get("partitions"):
        page.facts(facts)
        page.text("There is no partition.")
        return page
    partitions = table_frame(spark, f"{tables}/partitions", _READ).cache()
    leaderless = sf.count_if(sf.col("leader") == _NO_LEADER).alias("leaderless")
    under_replicated = sf.count_if(sf.size("isr") < sf.size("replicas")).alias("under_replicated")
    (health,) = partitions.agg(
        leaderless,
        under_replicated,
        sf.count_if((sf.size("adding_replicas") > 0) | (sf.size("removing_replicas") > 0)).alias("moving"),
    ).collect()
    page.facts(
        [
            *facts,
            ("Without a leader", health["leaderless"]),
            ("Under-replicated", health["under_replicated"]),
            ("Being reassigned", health["moving"]),
        ]
    )
    replicas, in_isr = (
        {
            row[0]: row[1]
            for row in partitions.select(sf.explode(name).alias("broker")).groupBy("broker").count().collect()
        }
        for name in ("replicas", "isr")
    )
    leaders = {row[0]: row[1] for row in partitions.groupBy("leader").count().collect()}
    brokers = sorted(replicas.keys() | (leaders.keys() - {_NO_LEADER}))
    page.section("Brokers", "Replicas that each of them has, those that are in sync, and partitions that it leads.")
    series = {"replicas": replicas, "in sync": in_isr, "leads": leaders}
    counted = {name: [counts.get(broker, 0) for broker in brokers] for name, counts in series.items()}
    page.plot("Replicas and leaders", bars(brokers, counted, unit="partitions"))
    page.table("Brokers", ["broker", *counted], list(zip(map(str, brokers), *counted.values(), strict=True)))
    by_topic = partitions.groupBy("topic").agg(sf.count("*").alias("partitions"), leaderless, under_replicated)
    order = (sf.desc("leaderless"), sf.desc("under_replicated"), sf.desc("partitions"), "topic")
    worst = by_topic.orderBy(*order).limit(200)
    rows = [tuple(row) for row in worst.collect()]
    columns = ["topic", "partitions", "without a leader", "under-replicated"]
    page.table("Topics", columns, rows, total=result.rows.get("topics"), text="Those in the worst state first.")
    return page
