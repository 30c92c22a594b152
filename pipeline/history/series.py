"""What the page of a history draws, counted by Spark from the tables themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import reduce
from pathlib import Path
from typing import Final

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as sf

from pipeline.history.schema import TABLES

#: What is counted day by day: its name, and the table of its versions.
_PARTITIONS: Final = "partition_versions"
_HELD: Final = {"partitions": _PARTITIONS, "topics": "topic_versions"}
#: The columns that are counted.
_OF_ALL: Final = "cluster_id string, valid_from timestamp, valid_to timestamp, change string, removed boolean"
_OF_PARTITIONS: Final = f"{_OF_ALL}, topic string, partition int, leader int"
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


def history_series(spark: SparkSession, tables: Path, cluster_ids: Sequence[str]) -> dict[str, HistorySeries]:
    """Count the versions in a directory that the history job has written: by cluster, in as many steps as for one."""
    # Named columns: Spark would else run a job for each table to learn of all of them.
    versions = {
        name: spark.read.schema(_OF_PARTITIONS if name == _PARTITIONS else _OF_ALL).parquet(str(tables / name))
        for name in TABLES
    }
    days_of = _days_of(versions)
    last_us = {
        cluster: max((one.last_us for of_table in by_table.values() for one in of_table.values()), default=0)
        for cluster, by_table in days_of.items()
    }
    topics = _busy(versions[_PARTITIONS], last_us)
    return {one: _series(days_of.get(one, {}), last_us.get(one, 0), topics.get(one, [])) for one in cluster_ids}


def _series(of: Mapping[str, Mapping[date, _Day]], last_us: int, topics: list[BusyTopic]) -> HistorySeries:
    """The series of one cluster."""
    days_of = {name: of.get(name, {}) for name in TABLES}
    begun = {name: {day: one.begun for day, one in days_of[name].items() if one.begun} for name in TABLES}
    known = sorted(set().union(*begun.values()))
    if not known:
        return HistorySeries([], {}, {}, [], [])
    end = max([known[-1], *(day for of_table in days_of.values() for day, one in of_table.items() if one.ended)])
    first_day = max(known[0], end - timedelta(_DAYS_MAX - 1))
    days = [first_day + timedelta(one) for one in range((end - first_day).days + 1)]
    hours = {day: one.leaderless_us(day, last_us) / 3_600_000_000 for day, one in days_of[_PARTITIONS].items()}
    return HistorySeries(
        days=days,
        begun={name: [counts.get(day, 0) for day in days] for name, counts in begun.items()},
        held={name: _standing(days_of[table], days) for name, table in _HELD.items()},
        leaderless_hours=[hours.get(day, 0.0) for day in days],
        topics=topics,
    )


@dataclass(frozen=True, slots=True)
class _Day:
    """Versions of one table on a day; times in microseconds since 1970."""

    #: That began, and the last time that one did; that began because something was made; whose subject was removed.
    begun: int
    last_us: int
    made: int
    ended: int
    #: Of those that began without a leader: how long they lasted, of those that ended; of the others how many there
    #: are, and how far in the day they began, together.
    lasted_us: int
    open: int
    since_midnight_us: int

    def leaderless_us(self, day: date, last_us: int) -> int:
        """Of those that began on the day, together; what has not ended lasts until the history does."""
        midnight_us = int(datetime.combine(day, time(), UTC).timestamp()) * 1_000_000
        return self.lasted_us + self.open * (last_us - midnight_us) - self.since_midnight_us


def _days_of(versions: Mapping[str, DataFrame]) -> dict[str, dict[str, dict[date, _Day]]]:
    """By cluster, table and day, counted in one step for all of them."""
    events = [_beginnings(name, table) for name, table in versions.items()]
    events += [_ends(name, versions[name]) for name in _HELD.values()]
    counted = reduce(DataFrame.unionByName, events).groupBy("cluster_id", "name", "on")
    sums = (sf.sum(name).alias(name) for name in ("begun", "made", "ended", "lasted_us", "open", "since_midnight_us"))
    found: dict[str, dict[str, dict[date, _Day]]] = {}
    for row in counted.agg(sf.max("last_us").alias("last_us"), *sums).collect():
        day = _Day(**{name: row[name] for name in _Day.__slots__})
        found.setdefault(row["cluster_id"], {}).setdefault(row["name"], {})[row["on"]] = day
    return found


def _beginnings(name: str, table: DataFrame) -> DataFrame:
    began, ended = sf.unix_micros("valid_from"), sf.unix_micros("valid_to")
    is_leaderless = sf.col("leader") == -1 if name == _PARTITIONS else sf.lit(False)
    is_open = is_leaderless & sf.col("valid_to").isNull()
    midnight = sf.unix_micros(sf.date_trunc("day", "valid_from"))
    return table.select(
        "cluster_id",
        sf.lit(name).alias("name"),
        sf.to_date("valid_from").alias("on"),
        sf.lit(1).alias("begun"),
        began.alias("last_us"),
        _number(sf.col("change").isin("created", "base")).alias("made"),
        sf.lit(0).alias("ended"),
        sf.when(is_leaderless & ~is_open, ended - began).otherwise(0).alias("lasted_us"),
        _number(is_open).alias("open"),
        sf.when(is_open, began - midnight).otherwise(0).alias("since_midnight_us"),
    )


def _ends(name: str, table: DataFrame) -> DataFrame:
    nothing = (sf.lit(0).alias(one) for one in ("begun", "last_us", "made", "lasted_us", "open", "since_midnight_us"))
    ended = sf.lit(1).alias("ended")
    return table.where("removed").select(
        "cluster_id", sf.lit(name).alias("name"), sf.to_date("valid_to").alias("on"), ended, *nothing
    )


def _number(condition: Column) -> Column:
    return sf.when(condition, 1).otherwise(0)


def _standing(of_table: Mapping[date, _Day], days: list[date]) -> list[int]:
    """How many there are at the end of each day; what began before the first of them counts from it on."""
    count = sum(one.made - one.ended for day, one in of_table.items() if day < days[0])
    found = []
    for day in days:
        if day in of_table:
            count += of_table[day].made - of_table[day].ended
        found.append(count)
    return found


def _busy(partitions: DataFrame, last_us: Mapping[str, int]) -> dict[str, list[BusyTopic]]:
    """By cluster those that changed most, of all clusters in one step."""
    is_open = (sf.col("leader") == -1) & sf.col("valid_to").isNull()
    began, ended = sf.unix_micros("valid_from"), sf.unix_micros("valid_to")
    columns = (
        sf.count("*").alias("versions"),
        sf.count_distinct("partition").alias("partitions"),
        sf.sum(sf.when((sf.col("leader") == -1) & ~is_open, ended - began).otherwise(0)).alias("lasted_us"),
        sf.count_if(is_open).alias("open"),
        # Times since 1970 of a hundred thousand partitions are more than a long holds.
        sf.sum(sf.when(is_open, began).otherwise(0).cast("decimal(38,0)")).alias("open_since_us"),
    )
    place = sf.row_number().over(Window.partitionBy("cluster_id").orderBy(sf.desc("versions"), "topic"))
    of_topic = partitions.groupBy("cluster_id", "topic").agg(*columns).withColumn("place", place)
    found: dict[str, list[BusyTopic]] = {}
    for row in of_topic.where(sf.col("place") <= _TOPICS_SHOWN).orderBy("cluster_id", "place").collect():
        still_us = row["open"] * last_us[row["cluster_id"]] - int(row["open_since_us"])
        leaderless = timedelta(microseconds=row["lasted_us"] + still_us)
        topic = BusyTopic(row["topic"], row["versions"], row["partitions"], leaderless)
        found.setdefault(row["cluster_id"], []).append(topic)
    return found
