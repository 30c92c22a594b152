"""What the page of a history draws, counted by Spark from the tables themselves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any, Final

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from pipeline.history.schema import TABLES

#: What is counted day by day: its name, and the table of its versions.
_HELD: Final = {"partitions": "partition_versions", "topics": "topic_versions"}
_TOPICS_SHOWN: Final = 50
#: Of a longer history the last days are drawn; what came before them counts in what is there.
_DAYS_MAX: Final = 3_660


@dataclass(frozen=True, slots=True)
class BusyTopic:
    """A topic whose partitions changed most."""

    topic: str
    versions: int
    partitions: int
    #: Time without a leader, of all its partitions together.
    leaderless: timedelta


@dataclass(frozen=True, slots=True)
class HistorySeries:
    """By day (UTC), without a gap from the first change to the last."""

    days: list[date]
    #: By table: versions that began.
    begun: dict[str, list[int]]
    #: Partitions and topics there at the end of each day.
    held: dict[str, list[int]]
    #: Hours without a leader, of all partitions together, by the day on which they began.
    leaderless_hours: list[float]
    topics: list[BusyTopic]


def history_series(spark: SparkSession, tables: Path, cluster_id: str) -> HistorySeries:
    """Count the versions of one cluster in a directory that the history job has written."""
    is_its = sf.col("cluster_id") == cluster_id
    versions = {name: spark.read.parquet(str(tables / name)).where(is_its) for name in TABLES}
    count_and_last = sf.struct(sf.count("*").alias("count"), sf.max("valid_from").alias("last"))
    begun = {name: _by_day(table, "valid_from", count_and_last) for name, table in versions.items()}
    known = sorted(set().union(*begun.values()))
    if not known:
        return HistorySeries([], {}, {}, [], [])
    last = max(row["last"] for counts in begun.values() for row in counts.values())
    partitions = versions["partition_versions"]
    lasted = sf.unix_micros(sf.coalesce("valid_to", sf.lit(last))) - sf.unix_micros("valid_from")
    leaderless = sf.sum(sf.when(sf.col("leader") == -1, lasted).otherwise(0))
    hours = _by_day(partitions, "valid_from", leaderless / 3_600_000_000)
    ended = {
        name: _by_day(versions[table].where("removed"), "valid_to", sf.count("*")) for name, table in _HELD.items()
    }
    end = max([known[-1], *(day for days in ended.values() for day in days)])
    first_day = max(known[0], end - timedelta(_DAYS_MAX - 1))
    days = [first_day + timedelta(one) for one in range((end - first_day).days + 1)]
    made = {
        name: _by_day(versions[table].where("change in ('created', 'base')"), "valid_from", sf.count("*"))
        for name, table in _HELD.items()
    }
    return HistorySeries(
        days=days,
        begun={name: [counts[day]["count"] if day in counts else 0 for day in days] for name, counts in begun.items()},
        held={name: _standing(made[name], ended[name], days) for name in _HELD},
        leaderless_hours=[hours.get(day, 0.0) for day in days],
        topics=_busy(partitions, leaderless),
    )


def _by_day(table: DataFrame, time: str, value: Column) -> dict[date, Any]:
    day = sf.to_date(time).alias("on")
    return {row["on"]: row["value"] for row in table.groupBy(day).agg(value.alias("value")).collect()}


def _standing(made: Mapping[date, float], ended: Mapping[date, float], days: list[date]) -> list[int]:
    """How many there are at the end of each day; what began before the first of them counts from it on."""
    count = sum(int(value) for day, value in made.items() if day < days[0])
    count -= sum(int(value) for day, value in ended.items() if day < days[0])
    found = []
    for day in days:
        count += int(made.get(day, 0)) - int(ended.get(day, 0))
        found.append(count)
    return found


def _busy(partitions: DataFrame, leaderless: Column) -> list[BusyTopic]:
    columns = (sf.count("*").alias("versions"), sf.count_distinct("partition").alias("partitions"))
    rows = partitions.groupBy("topic").agg(*columns, leaderless.alias("us")).orderBy(sf.desc("versions"), "topic")
    return [
        BusyTopic(row["topic"], row["versions"], row["partitions"], timedelta(microseconds=int(row["us"])))
        for row in rows.limit(_TOPICS_SHOWN).collect()
    ]
