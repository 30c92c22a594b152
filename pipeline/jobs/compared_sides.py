"""The state of one side of a comparison: what a log adds up to, or what held in tables, at one moment.

- Tables of the history job hold every moment from where they begin on, and no entries: quotas, ACLs and the like.
- Tables of the replay job hold one moment.
- Anything else is a log or a checkpoint, whose state the replay job makes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from quorate.pipeline.comparing.entries import OF_TABLES
from quorate.pipeline.comparing.rows import ComparedMoment, Rows
from quorate.pipeline.errors import BadSetting, PipelineError
from quorate.pipeline.files.inputs import InputError, find_inputs
from quorate.pipeline.files.storage import is_directory, read
from quorate.pipeline.jobs.replay import ReplayOptions, replay, state_manifest
from quorate.pipeline.tables.result_directory import MANIFEST
from quorate.pipeline.tables.table_clusters import chosen_cluster
from quorate.pipeline.tables.table_reading import read_table

_TABLES: Final = {
    "topics": "topic_versions",
    "partitions": "partition_versions",
    "brokers": "broker_versions",
    "configs": "config_versions",
}
_ENTRIES: Final = "entries"


class NoState(PipelineError):
    """A side that has no state to compare."""


def moment(text: str | None) -> ComparedMoment:
    """The moment that somebody wrote: an offset, or an ISO time, in UTC where it names no zone.

    Raises:
        BadSetting: it is neither.
    """
    if text is None:
        return ComparedMoment()
    if text.isascii() and text.isdigit():
        return ComparedMoment(offset=int(text))
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise BadSetting(f"{text!r} is no moment: give an offset, or a time as 2026-01-31T12:00:00Z") from None
    return ComparedMoment(time=time if time.tzinfo else time.replace(tzinfo=UTC))


@dataclass(frozen=True, slots=True)
class RequestedSide:
    """One side as it was asked for."""

    path: str
    moment: ComparedMoment
    #: Of tables which of their clusters, None where there is one; of a log whose it is where no file tells it.
    cluster_id: str | None = None


@dataclass(frozen=True, slots=True)
class ComparedSide:
    """One side: its rows by kind."""

    path: str
    cluster_id: str
    moment: str
    tables: dict[str, Rows]
    #: Rows of the table of entries that are in no other; None where there is no such table.
    entries: list[Mapping[str, str]] | None
    #: Whether secrets are hidden in what it is read from.
    hides_secrets: bool


def state_of(spark: SparkSession, asked: RequestedSide, scratch: Path, option: str) -> ComparedSide:
    """The state of one cluster at a moment.

    Args:
        scratch: a directory that is not there, for the tables of a log's state; they are read as long as the state is.
        option: by which one of several clusters in tables is chosen.

    Raises:
        NoState: no log, no checkpoint, no tables, or a moment that they do not hold.
        WhichCluster: not the cluster that is asked for, or several of which none is. StorageError, PipelineError: as
            ``replay``.
    """
    found = {name for name in (*_TABLES.values(), _ENTRIES) if is_directory(f"{asked.path}/{name}")}
    if found - {_ENTRIES}:
        return _of_history(spark, asked, option)
    if found:
        return _of_tables(spark, asked, asked.path, option)
    return _of_log(spark, asked, scratch, option)


# --- a log -------------------------------------------------------------------------------------------


def _of_log(spark: SparkSession, asked: RequestedSide, scratch: Path, option: str) -> ComparedSide:
    at, time = asked.moment.offset, asked.moment.time
    try:
        (cluster,) = find_inputs([asked.path], cluster_id=asked.cluster_id)
    except InputError as error:
        raise NoState(f"{error} (a side is a log, a checkpoint, or tables of history or replay)") from error
    if at is None and time is None and not cluster.segments:
        at = cluster.checkpoints[-1].offset
    time_ms = None if time is None else int(time.timestamp() * 1000)
    replay(spark, [asked.path], scratch, ReplayOptions(at, time_ms, cluster_id=asked.cluster_id))
    return _of_tables(
        spark, RequestedSide(asked.path, ComparedMoment(), asked.cluster_id), str(scratch), option, str(asked.moment)
    )


# --- tables -------------------------------------------------------------------------------------------


@contextmanager
def _readable(directory: str) -> Iterator[None]:
    try:
        yield
    except (OSError, pa.ArrowException) as error:
        raise NoState(f"{directory}: its tables cannot be read ({error}); make them again") from error


def _rows(directory: str, name: str, cluster_id: str, at: ComparedMoment | None = None) -> Rows:
    with _readable(directory):
        found = Rows.of(f"{directory}/{name}", cluster_id, at)
    if not found.files:
        raise NoState(f"{directory}/{name}: holds no file of a table; make the tables again")
    return found


# --- tables of one state -----------------------------------------------------------------------------


def _of_tables(
    spark: SparkSession, asked: RequestedSide, directory: str, option: str, at: str | None = None
) -> ComparedSide:
    """``at``: of which moment they are, in words; None where their offset says it."""
    manifest = state_manifest(directory)
    offset, wanted = manifest["offset"], asked.moment
    if wanted.time is not None or wanted.offset not in (None, offset):
        raise NoState(f"{directory}: holds the state at offset {offset} alone; ask for no other moment than that")
    chosen = chosen_cluster(directory, {manifest["cluster_id"]}, asked.cluster_id, option)
    tables = {kind: _rows(directory, kind, chosen) for kind in _TABLES}
    is_other = ~pc.field("kind").isin(OF_TABLES)
    with _readable(directory):
        entries = read_table(f"{directory}/{_ENTRIES}", ("kind", "data"), is_other).to_pylist()
    said = f"offset {offset}" if at in (None, f"offset {offset}") else f"{at}, offset {offset}"
    return ComparedSide(asked.path, chosen, said, tables, entries, bool(manifest.get("hides_secrets", False)))


# --- tables of a history -----------------------------------------------------------------------------


def _of_history(spark: SparkSession, asked: RequestedSide, option: str) -> ComparedSide:
    directory, at = asked.path, asked.moment
    missing = [name for name in _TABLES.values() if not is_directory(f"{directory}/{name}")]
    if missing:
        raise NoState(f"{directory}: holds no {missing[0]}; make the tables with: quorate pipeline history")
    bases = _bases(directory)
    chosen = chosen_cluster(directory, bases, asked.cluster_id, option)
    _require_moment(directory, at, bases[chosen], chosen)
    tables = {kind: _rows(directory, name, chosen, at) for kind, name in _TABLES.items()}
    hides_secrets = bool(_manifest(directory).get("hides_secrets", False))
    return ComparedSide(directory, chosen, str(at), tables, None, hides_secrets)


@dataclass(frozen=True, slots=True)
class _Base:
    """The begin of a cluster's history: the last offset of a checkpoint and its time, or nothing."""

    offset: int | None = None
    time: datetime | None = None


def _bases(directory: str) -> dict[str, _Base]:
    """By cluster."""
    columns = ("cluster_id", "valid_from_offset", "valid_from", "change")
    with _readable(directory):
        rows = pa.concat_tables([read_table(f"{directory}/{_TABLES[kind]}", columns) for kind in ("brokers", "topics")])
    earliest = rows.filter(pc.field("change") == "base").group_by("cluster_id").aggregate(
        [("valid_from_offset", "min"), ("valid_from", "min")]
    )  # fmt: skip
    found = {cluster: _Base() for cluster in pc.unique(rows["cluster_id"]).to_pylist()}
    for row in earliest.to_pylist():
        found[row["cluster_id"]] = _Base(row["valid_from_offset_min"], row["valid_from_min"])
    return found


def _require_moment(directory: str, at: ComparedMoment, base: _Base, cluster_id: str) -> None:
    if at.offset is not None:
        if base.offset is not None and at.offset <= base.offset:
            raise NoState(f"{directory}: begins at offset {base.offset + 1}, after {at}; ask for a later one")
        end = _end_of(directory, cluster_id)
        if at.offset > end:
            raise NoState(f"{directory}: ends at offset {end}, before {at}; ask for an offset up to {end}")
    if at.time is not None and base.time is not None and at.time < base.time:
        begin = base.time.astimezone(UTC).isoformat()
        raise NoState(f"{directory}: begins at {begin}, after {at}; ask for a later time")


def _end_of(directory: str, cluster_id: str) -> int:
    """The offset (exclusive) up to which a history goes."""
    try:
        clusters = _manifest(directory)["clusters"]
        return next(int(one["end_offset"]) for one in clusters if one["cluster_id"] == cluster_id)
    except (ValueError, KeyError, TypeError, StopIteration) as error:
        raise NoState(f"{directory}: its {MANIFEST} does not tell where it ends; make the tables again") from error


def _manifest(directory: str) -> dict[str, Any]:
    try:
        return dict(json.loads(read(f"{directory}/{MANIFEST}")))
    except (OSError, ValueError, TypeError) as error:
        raise NoState(f"{directory}: its {MANIFEST} cannot be read ({error}); make the tables again") from error
