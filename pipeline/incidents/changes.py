"""Every version of every partition beside the one before it, with what that change took away, and why.

One pass sorts the versions by partition and offset; everything else about partitions reads its result, which keeps that
order: intervals, elections and reassignments need no further shuffle.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as sf
from pyspark.sql.types import IntegerType, LongType, StructField, StructType

from pipeline.incidents.causes import CAUSES, BrokerTimeline
from pipeline.incidents.kinds import (
    ASSIGNED_DIRECTORIES,
    BASE,
    CAUGHT_UP,
    CREATED,
    ELECTED,
    LAGGED,
    LAST_KNOWN,
    PREFERRED,
    REASSIGNMENT,
    UNCLEAN,
    UNCLEAN_STOP,
)

KEY: Final = ("cluster_id", "topic_id", "partition")
_STATE: Final = (
    "leader",
    "leader_epoch",
    "isr",
    "replicas",
    "adding_replicas",
    "removing_replicas",
    "eligible_leader_replicas",
    "last_known_elr",
    "leader_recovery_state",
)

#: A cause, as an index into ``CAUSES``, and its event's offset; -1 for none.
_FOUND: Final = StructType([StructField("code", IntegerType()), StructField("offset", LongType())])


def in_order() -> WindowSpec:
    """A partition's versions in order; those of a transaction all hold from its end on. A session must be there."""
    return Window.partitionBy(*KEY).orderBy("offset", "record_offset")


def partition_changes(versions: DataFrame, timeline: BrokerTimeline, within_us: int) -> DataFrame:
    """One row per version.

    Args:
        versions: the table ``partition_versions``.
        timeline: what happened to brokers.
        within_us: how near a broker's event must be to be a loss's cause, whatever its state was.

    Returns:
        The state columns but for directories, ``offset``, ``time``, ``record_offset``, ``before`` (the state
        before, null at creation),
        ``lost`` and ``gained`` (brokers that left and joined the ISR), ``subject`` (the broker that lost leadership or
        ISR membership, null if none), ``cause``, ``cause_offset`` (null unless a broker's event is the cause), and
        ``gone_offset``/``gone_time``: the topic's removal, the same in all rows of a partition.
    """
    whole = in_order().rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)
    seen = versions.select(
        *KEY,
        "topic",
        *_STATE,
        sf.col("valid_from_offset").alias("offset"),
        sf.col("valid_from").alias("time"),
        "record_offset",
        "change",
        sf.when(
            sf.col("removed"), sf.struct(sf.col("valid_to_offset").alias("o"), sf.col("valid_to").alias("t"))
        ).alias("gone"),
    )
    seen = seen.select(
        "*",
        sf.lag(sf.struct(*_STATE)).over(in_order()).alias("before"),
        sf.max("gone").over(whole).alias("end"),
    )
    seen = seen.select(
        *KEY,
        "topic",
        *_STATE,
        "offset",
        "time",
        "record_offset",
        "change",
        "before",
        sf.array_except("before.isr", "isr").alias("lost"),
        sf.array_except("isr", "before.isr").alias("gained"),
        sf.col("end.o").alias("gone_offset"),
        sf.col("end.t").alias("gone_time"),
    )
    return _with_causes(seen.withColumn("subject", _subject()), timeline, within_us)


def _subject() -> Column:
    led = sf.col("before.leader")
    deposed = (led >= 0) & (led != sf.col("leader"))
    return sf.when(deposed, led).otherwise(sf.get("lost", sf.lit(0)))


def _with_causes(seen: DataFrame, timeline: BrokerTimeline, within_us: int) -> DataFrame:
    # Only the rows that lost something are worth a way to Python and back: the others send a null broker.
    is_loss = sf.col("subject").isNotNull() & ~sf.array_contains("isr", sf.col("subject"))
    is_loss &= sf.col("before.replicas").eqNullSafe(sf.col("replicas"))
    asked = seen.withColumn("asked", sf.when(is_loss, sf.col("subject")).otherwise(sf.lit(-1)))
    found = asked.withColumn(
        "found", _broker_event(timeline, within_us)("cluster_id", "asked", "offset", sf.unix_micros("time"))
    )
    names = sf.array(*[sf.lit(name) for name in CAUSES])
    code = sf.col("found.code")
    return found.withColumns(
        {
            "cause": sf.when(code >= 0, sf.get(names, code)).otherwise(_own_cause()),
            "cause_offset": sf.when(code >= 0, sf.col("found.offset")),
        }
    ).drop("found", "asked", "change")


def _own_cause() -> Column:
    """What the change says of itself."""
    was_led = sf.col("before.leader") >= 0
    led = sf.col("leader") >= 0
    deposed = sf.col("before.leader") != sf.col("leader")
    outside = ~sf.array_contains("before.isr", sf.col("leader")) & ~sf.array_contains(
        none_if_null("before.eligible_leader_replicas"), sf.col("leader")
    )
    known = sf.array_contains(none_if_null("before.last_known_elr"), sf.col("leader"))
    moved = ~sf.col("before.replicas").eqNullSafe(sf.col("replicas")) | ~sf.col("before.adding_replicas").eqNullSafe(
        sf.col("adding_replicas")
    )
    return (
        sf.when(sf.col("before").isNull(), sf.when(sf.col("change") == BASE, BASE).otherwise(CREATED))
        .when(led & deposed & outside & ~was_led & known, LAST_KNOWN)
        .when(led & deposed & outside & ~was_led, UNCLEAN)
        .when(moved, REASSIGNMENT)
        .when(was_led & deposed & (sf.get("replicas", sf.lit(0)) == sf.col("leader")), PREFERRED)
        .when(deposed, ELECTED)
        .when(sf.size("lost") > 0, LAGGED)
        .when(sf.size("gained") > 0, CAUGHT_UP)
        .when(sf.col("before.leader_epoch") != sf.col("leader_epoch"), ELECTED)
        .when(sf.size(elr_lost()) > 0, UNCLEAN_STOP)
        .otherwise(ASSIGNED_DIRECTORIES)
    )


def elr_lost() -> Column:
    """Brokers that left the ELR."""
    return sf.array_except(none_if_null("before.eligible_leader_replicas"), none_if_null("eligible_leader_replicas"))


def none_if_null(name: str) -> Column:
    """The array, an empty one for null: a partition from before the ELR was known."""
    return sf.coalesce(sf.col(name), sf.array().cast("array<int>"))


def _broker_event(timeline: BrokerTimeline, within_us: int) -> Callable[..., Column]:
    def broker_event(cluster_ids: pa.Array, brokers: pa.Array, offsets: pa.Array, times: pa.Array) -> pa.Array:
        ids = brokers.to_numpy(zero_copy_only=False).astype(np.int64)
        codes, at = np.full(len(ids), -1, np.int32), np.full(len(ids), -1, np.int64)
        asked = np.flatnonzero(ids >= 0)
        if len(asked):
            codes[asked], at[asked] = timeline.losses(
                cluster_ids.take(pa.array(asked)).to_pylist(),
                ids[asked],
                offsets.to_numpy()[asked],
                times.to_numpy()[asked],
                within_us,
            )
        return pa.StructArray.from_arrays([pa.array(codes), pa.array(at)], names=["code", "offset"])

    found: Callable[..., Column] = sf.arrow_udf(broker_event, returnType=_FOUND)
    return found
