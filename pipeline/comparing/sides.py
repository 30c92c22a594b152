"""The state of one side of a comparison: what held at one moment in the tables of the history job."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from pipeline.errors import BadSetting, PipelineError
from pipeline.table_clusters import chosen_cluster

_TABLES: Final = {
    "topics": "topic_versions",
    "partitions": "partition_versions",
    "brokers": "broker_versions",
    "configs": "config_versions",
}
#: What says when a version held, not what it is; ``day`` is the directory it lies in.
_VALIDITY: Final = (
    "valid_from_offset", "valid_to_offset", "valid_from", "valid_to", "record_offset", "change", "removed", "day",
)  # fmt: skip


class NoState(PipelineError):
    """A side that has no state to compare."""


@dataclass(frozen=True, slots=True)
class Moment:
    """An offset: all records below it; or a time: all records up to it; or neither: the end."""

    offset: int | None = None
    time: datetime | None = None

    def __str__(self) -> str:
        if self.time is not None:
            return self.time.isoformat()
        return "the end" if self.offset is None else f"offset {self.offset}"

    def holds(self) -> Column:
        """Whether a version held then."""
        if self.time is not None:
            at = sf.lit(self.time)
            return (sf.col("valid_from") <= at) & (sf.col("valid_to").isNull() | (sf.col("valid_to") > at))
        end = sf.col("valid_to_offset")
        if self.offset is None:
            return end.isNull()
        return (sf.col("valid_from_offset") < self.offset) & (end.isNull() | (end >= self.offset))


def moment(text: str | None) -> Moment:
    """The moment that somebody wrote: an offset, or an ISO time, in UTC where it names no zone.

    Raises:
        BadSetting: it is neither.
    """
    if text is None:
        return Moment()
    if text.isascii() and text.isdigit():
        return Moment(offset=int(text))
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise BadSetting(f"{text!r} is no moment: give an offset, or a time as 2026-01-31T12:00:00Z") from None
    return Moment(time=time if time.tzinfo else time.replace(tzinfo=UTC))


@dataclass(frozen=True, slots=True)
class State:
    """One side: its tables by kind."""

    path: str
    cluster_id: str
    moment: str
    tables: dict[str, DataFrame]


def state_of(spark: SparkSession, directory: Path, at: Moment, cluster_id: str | None, option: str) -> State:
    """The state of one cluster at a moment.

    Args:
        cluster_id: which of the tables' clusters; None where there is one. option: by which one is chosen.

    Raises:
        NoState: no such tables, or a moment before the history begins.
        WhichCluster: not the cluster that is asked for, or several of which none is.
    """
    missing = [name for name in _TABLES.values() if not (directory / name).is_dir()]
    if missing:
        raise NoState(f"{directory}: holds no {missing[0]}; make the tables with: quorate pipeline history")
    whole = {kind: spark.read.parquet(str(directory / name)) for kind, name in _TABLES.items()}
    rows = (
        whole["brokers"].select("cluster_id", "valid_from_offset", "change")
        .unionByName(whole["topics"].select("cluster_id", "valid_from_offset", "change"))
        .groupBy("cluster_id").agg(sf.min(sf.when(sf.col("change") == "base", sf.col("valid_from_offset"))))
        .collect()
    )  # fmt: skip
    bases: dict[str, int | None] = dict(rows)
    chosen = chosen_cluster(directory, bases, cluster_id, option)
    base = bases[chosen]
    if base is not None and at.offset is not None and at.offset <= base:
        raise NoState(f"{directory}: begins at offset {base + 1}, behind {at}; ask for a later one")
    holds = at.holds() & (sf.col("cluster_id") == chosen)
    tables = {kind: table.where(holds).drop(*_VALIDITY) for kind, table in whole.items()}
    return State(str(directory), chosen, str(at), tables)
