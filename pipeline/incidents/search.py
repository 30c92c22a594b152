"""Run the queries over version tables and gather what they found."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.storagelevel import StorageLevel

from pipeline.incidents import instants, intervals, partitions
from pipeline.incidents.brokers import BrokerVersion, events, incarnations, outages
from pipeline.incidents.causes import BrokerTimeline
from pipeline.incidents.changes import partition_changes
from pipeline.incidents.failovers import Epoch, failovers
from pipeline.incidents.findings import Findings, Row, Span
from pipeline.incidents.min_isr import NAME as MIN_ISR
from pipeline.incidents.min_isr import ConfigSpan, MinIsrSteps, min_isr_steps
from pipeline.incidents.thresholds import Thresholds

UNCLEAN_ALLOWED: Final = "unclean.leader.election.enable"
#: Rows of single partitions that a report holds; the tables have them all.
ROWS_MAX: Final = 1_000
#: An instant of fewer changes is not looked at when mass events are joined: a tenth of the threshold.
_INSTANT_SHARE: Final = 10


@dataclass(frozen=True, slots=True)
class VersionTables:
    """The tables that the history job writes, as far as incidents need them."""

    partitions: DataFrame
    brokers: DataFrame
    configs: DataFrame


@dataclass(frozen=True, slots=True)
class Search:
    """What was found, and the whole tables behind it."""

    findings: Findings
    tables: dict[str, DataFrame]
    changes: DataFrame


@contextmanager
def searched(
    spark: SparkSession,
    versions: VersionTables,
    epochs: Iterable[Epoch],
    thresholds: Thresholds,
    progress: Callable[[str], None] = lambda _: None,
) -> Iterator[Search]:
    """The findings, and while the context lasts their tables: they stand on rows that are kept on disk until then."""
    brokers = broker_versions(versions.brokers)
    configs = config_spans(versions.configs)
    found = events(brokers)
    progress("partitions' changes")
    changes = partition_changes(versions.partitions, BrokerTimeline(found), _us(thresholds.same_event))
    changes = changes.persist(StorageLevel.DISK_ONLY)
    findings = Findings(_spans(changes), found, incarnations(brokers), outages(found), failovers(epochs))
    findings.unclean_allowed = _unclean_allowed(configs)
    try:
        steps = min_isr_steps((span for name, span in configs if name == MIN_ISR), thresholds.min_isr)
        tables = _tables(spark, changes, steps, thresholds)
        _gather(findings, changes, tables, thresholds, progress)
        yield Search(findings, tables, changes)
    finally:
        changes.unpersist()


def _tables(
    spark: SparkSession, changes: DataFrame, steps: MinIsrSteps, thresholds: Thresholds
) -> dict[str, DataFrame]:
    window = thresholds.flap_window
    return {
        "leaderless": intervals.runs(changes, intervals.leaderless()),
        "under_replicated": intervals.runs(changes, intervals.under_replicated()),
        "under_min_isr": intervals.under_min_isr(spark, changes, steps),
        "risky_elections": partitions.risky_elections(changes),
        "reassignments": partitions.reassignments(changes),
        "isr_flapping": partitions.flapping(changes, thresholds.flaps, window),
        "instants": instants.instants(changes, max(1, thresholds.mass_partitions // _INSTANT_SHARE)),
    }


def _gather(
    findings: Findings,
    changes: DataFrame,
    tables: dict[str, DataFrame],
    thresholds: Thresholds,
    progress: Callable[[str], None],
) -> None:
    progress("mass events and causes")
    findings.instants = rows(tables["instants"])
    findings.effects = rows(instants.effects(changes))
    findings.unclean_stops = rows(instants.unclean_stops(changes))
    for name in ("leaderless", "under_replicated", "under_min_isr"):
        progress(name.replace("_", " "))
        setattr(findings, name, rows(instants.grouped_runs(tables[name])))
    progress("elections and reassignments")
    findings.elections = rows(instants.grouped_elections(tables["risky_elections"]))
    findings.reassignment_outcomes = rows(tables["reassignments"].groupBy("cluster_id", "outcome").count())
    findings.reassignments = _slow(tables["reassignments"], findings.spans, thresholds.slow_reassignment)
    findings.flapping = rows(tables["isr_flapping"].orderBy(sf.desc("most"), "first_offset").limit(ROWS_MAX))


def rows(frame: DataFrame) -> list[Row]:
    """The rows of a small table; times keep their zone."""
    return [dict(row) for row in frame.toArrow().to_pylist()]


def _spans(changes: DataFrame) -> list[Span]:
    last = sf.greatest(sf.max("offset"), sf.max("gone_offset"))
    found = changes.groupBy("cluster_id").agg(
        sf.min("offset"),
        last,
        sf.min("time"),
        sf.greatest(sf.max("time"), sf.max("gone_time")),
        sf.count_distinct("topic_id", "partition"),
    )
    return sorted((Span(*row.values()) for row in rows(found)), key=lambda span: span.cluster_id)


def _slow(table: DataFrame, spans: list[Span], slow: timedelta) -> list[Row]:
    """The open ones, and those that took longer, the longest first; each with how long it ``lasted``."""
    ends = {span.cluster_id: span.end for span in spans}
    took = sf.unix_millis("to_time") - sf.unix_millis("from_time")
    wanted = table.where((sf.col("outcome") == "open") | (took > int(slow.total_seconds() * 1000)))
    found = rows(wanted.orderBy(sf.desc(sf.coalesce(took, sf.lit(1 << 60))), "from_offset").limit(ROWS_MAX))
    return [dict(row, lasted=(row["to_time"] or ends[row["cluster_id"]]) - row["from_time"]) for row in found]


def broker_versions(table: DataFrame) -> list[BrokerVersion]:
    """The rows of ``broker_versions``."""
    wanted = table.select(
        "cluster_id",
        "broker_id",
        "incarnation_id",
        "rack",
        "fenced",
        "in_controlled_shutdown",
        "log_dirs",
        "valid_from_offset",
        sf.unix_micros("valid_from").alias("from_us"),
        "valid_to_offset",
        sf.unix_micros("valid_to").alias("to_us"),
        "removed",
    )
    return [BrokerVersion(**_renamed(row)) for row in rows(wanted)]


def config_spans(table: DataFrame) -> list[tuple[str, ConfigSpan]]:
    """The versions of the configs that matter here, each with its name."""
    wanted = table.where(sf.col("name").isin(MIN_ISR, UNCLEAN_ALLOWED)).select(
        "name",
        "cluster_id",
        "resource_type",
        sf.col("resource").alias("resource_name"),
        "value",
        "valid_from_offset",
        sf.unix_micros("valid_from").alias("from_us"),
        "valid_to_offset",
        sf.unix_micros("valid_to").alias("to_us"),
    )
    return [(row.pop("name"), ConfigSpan(**_renamed(row))) for row in rows(wanted)]


def _renamed(row: Row) -> dict[str, Any]:
    values = {"valid_from_offset": "from_offset", "valid_to_offset": "to_offset"}
    return {values.get(name, name): tuple(value) if isinstance(value, list) else value for name, value in row.items()}


def _unclean_allowed(configs: list[tuple[str, ConfigSpan]]) -> frozenset[tuple[str, str]]:
    """Topics that allowed it at some time; the empty name stands for the cluster's default."""
    return frozenset(
        (span.cluster_id, span.resource_name)
        for name, span in configs
        if name == UNCLEAN_ALLOWED and span.value == "true"
    )


def _us(time: timedelta) -> int:
    return time // timedelta(microseconds=1)


def micros(time: datetime) -> int:
    """Microseconds since 1970."""
    return int(time.timestamp() * 1_000_000)
