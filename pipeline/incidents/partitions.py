"""Incidents of single partitions: elections that may have lost data, reassignments, flapping ISRs."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sf

from pipeline.incidents.changes import KEY, in_order
from pipeline.incidents.kinds import LAST_KNOWN, UNCLEAN

_OF_ELECTION: Final = (*KEY, "topic", "offset")


def risky_elections(changes: DataFrame) -> DataFrame:
    """Elections of a leader that was neither in the ISR nor eligible, and what they may have cost.

    Returns:
        The key, ``topic``, ``offset``, ``time``, ``kind`` (unclean, or of the last known leader), ``leader``,
        ``last_isr`` (the last one under a leader), ``ahead`` (its other members, each with the time it had been in the
        ISR), ``left_isr`` (when the new leader left the ISR; null: it never was in it, as far as the history goes),
        ``isr_ended`` (when that last leadership ended) and ``exposed_ms``: how long others could acknowledge writes
        that the new leader may not have: 0 if it was in the last ISR, null if that is not known.
    """
    elections = changes.where(sf.col("cause").isin(UNCLEAN, LAST_KNOWN)).select(
        *_OF_ELECTION, "time", sf.col("cause").alias("kind"), "leader"
    )
    past = changes.select(
        *KEY, sf.col("offset").alias("then"), sf.col("time").alias("at"), "isr", sf.col("leader").alias("led_by")
    ).withColumns({"isr_end": sf.lead("at").over(Window.partitionBy(*KEY).orderBy("then"))})
    pairs = elections.join(past, list(KEY)).where("then < offset")
    stands = sf.col("led_by") >= 0
    has_leader = sf.array_contains("isr", sf.col("leader"))
    known = pairs.groupBy(*_OF_ELECTION, "time", "kind", "leader").agg(
        sf.max_by("isr", sf.when(stands, sf.col("then"))).alias("last_isr"),
        sf.max_by("isr_end", sf.when(stands, sf.col("then"))).alias("isr_ended"),
        sf.max_by("isr_end", sf.when(has_leader, sf.col("then"))).alias("left_isr"),
    )
    lost_ms = sf.unix_millis("isr_ended") - sf.unix_millis("left_isr")
    ahead = _members_ahead(known, past)
    return known.join(ahead, list(_OF_ELECTION), "left").select(
        *_OF_ELECTION,
        "time",
        "kind",
        "leader",
        "last_isr",
        "ahead",
        "left_isr",
        "isr_ended",
        sf.when(sf.array_contains("last_isr", sf.col("leader")), 0).otherwise(lost_ms).alias("exposed_ms"),
    )


def _members_ahead(known: DataFrame, past: DataFrame) -> DataFrame:
    """For each election the replicas that were in its last ISR and were not elected, longest membership first."""
    others = known.select(
        *_OF_ELECTION, "isr_ended", sf.explode(sf.array_except("last_isr", sf.array("leader"))).alias("replica")
    )
    absent = others.join(past, list(KEY)).where("then < offset and not array_contains(isr, replica)")
    # Nothing of interest is behind the end of the last ISR: that version, which lacks them all, is not an absence.
    absent = absent.where("at < isr_ended").groupBy(*_OF_ELECTION, "replica").agg(sf.max("isr_end").alias("since"))
    start = past.groupBy(*KEY).agg(sf.min("at").alias("start"))
    member = others.join(absent, [*_OF_ELECTION, "replica"], "left").join(start, list(KEY))
    held = sf.unix_millis("isr_ended") - sf.unix_millis(sf.coalesce("since", "start"))
    return member.groupBy(*_OF_ELECTION).agg(
        sf.reverse(
            sf.array_sort(sf.collect_list(sf.struct(held.alias("in_isr_ms"), sf.col("replica").alias("broker"))))
        ).alias("ahead")
    )


def reassignments(changes: DataFrame) -> DataFrame:
    """Every change of replicas, from its first record to its last.

    Returns:
        As ``intervals.runs`` (``to_offset`` equals ``from_offset`` where the replicas were there already), and
        ``replicas`` (those at the start), ``adding``, ``removing``, ``waiting_for`` (added brokers that
        were not in the ISR when it ended, or are not now), ``outcome``: ``completed``,
        ``cancelled``, ``topic_removed`` or ``open``.
    """
    whole = in_order().rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)
    state = sf.struct("replicas", "adding_replicas", "removing_replicas", "isr")
    rows = changes.withColumn("latest", sf.last(state).over(whole)).withColumn("first", state)
    is_open = sf.size("adding_replicas") + sf.size("removing_replicas") > 0
    closed = _closed(_open_runs(rows, is_open))
    was_open = sf.size("before.adding_replicas") + sf.size("before.removing_replicas") > 0
    at_once = changes.where(
        ~is_open & ~was_open & ~sf.col("replicas").eqNullSafe(sf.col("before.replicas")) & sf.col("before").isNotNull()
    )
    none = sf.array().cast("array<int>")
    return closed.unionByName(
        at_once.select(
            *KEY,
            "topic",
            sf.col("offset").alias("from_offset"),
            sf.col("time").alias("from_time"),
            sf.col("offset").alias("to_offset"),
            sf.col("time").alias("to_time"),
            sf.col("before.replicas").alias("replicas"),
            sf.array_except("replicas", "before.replicas").alias("adding"),
            sf.array_except("before.replicas", "replicas").alias("removing"),
            none.alias("waiting_for"),
            sf.lit("completed").alias("outcome"),
        )
    )


def _open_runs(rows: DataFrame, is_open: Column) -> DataFrame:
    """The runs of open reassignments, each with its state at the start and the last one before its end."""
    seen = rows.withColumn("now", is_open).withColumn("was", sf.coalesce(sf.lag("now").over(in_order()), sf.lit(False)))
    edges = seen.where("now != was")
    edges = edges.withColumn("end", sf.lead(sf.struct("offset", "time", "before", "replicas", "isr")).over(in_order()))
    return edges.where("now")


def _closed(begun: DataFrame) -> DataFrame:
    ended = sf.col("end").isNotNull()
    last = {
        name: sf.when(ended, sf.col(f"end.before.{name}")).otherwise(sf.col(f"latest.{name}"))
        for name in ("replicas", "adding_replicas", "removing_replicas")
    }
    isr = sf.when(ended, sf.col("end.isr")).otherwise(sf.col("latest.isr"))
    target = sf.array_except(last["replicas"], last["removing_replicas"])
    outcome = (
        sf.when(ended & (sf.array_sort("end.replicas") == sf.array_sort(target)), "completed")
        .when(ended, "cancelled")
        .when(sf.col("gone_offset").isNotNull(), "topic_removed")
        .otherwise("open")
    )
    return begun.select(
        *KEY,
        "topic",
        sf.col("offset").alias("from_offset"),
        sf.col("time").alias("from_time"),
        sf.coalesce("end.offset", "gone_offset").alias("to_offset"),
        sf.coalesce("end.time", "gone_time").alias("to_time"),
        sf.col("before.replicas").alias("replicas"),
        last["adding_replicas"].alias("adding"),
        last["removing_replicas"].alias("removing"),
        sf.array_except(last["adding_replicas"], isr).alias("waiting_for"),
        outcome.alias("outcome"),
    )


def flapping(changes: DataFrame, more_than: int, window: timedelta) -> DataFrame:
    """Partitions whose ISR shrank and grew again more often than that within the time.

    Returns:
        The key, ``topic``, ``first_offset``, ``from_time`` and ``to_time`` of the flaps, ``flaps`` in all, ``most``
        within one window, and ``broker``: the one that came back most often.
    """
    moves = changes.where("size(lost) > 0 or size(gained) > 0").withColumn(
        "shrank", sf.lag(sf.size("lost") > 0).over(in_order())
    )
    flaps = moves.where("size(gained) > 0 and shrank")
    recent = Window.partitionBy(*KEY).orderBy(sf.unix_millis("time"))
    recent = recent.rangeBetween(-int(window.total_seconds() * 1000), 0)
    counted = flaps.withColumn("near", sf.count("*").over(recent))
    return (
        counted.groupBy(*KEY, "topic")
        .agg(
            sf.min("offset").alias("first_offset"),
            sf.min("time").alias("from_time"),
            sf.max("time").alias("to_time"),
            sf.count("*").alias("flaps"),
            sf.max("near").alias("most"),
            sf.mode(sf.get("gained", sf.lit(0))).alias("broker"),
        )
        .where(sf.col("most") > more_than)
    )
