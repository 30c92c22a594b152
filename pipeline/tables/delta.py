"""Delta tables: beside the Parquet files of a table a log that says which of them are in it, and what is in them.

The files of a new table are the same as without it; nothing is written twice. Paths in the log are relative to the
table, so it stays valid where the directory gets another name. A change of a table writes files anew and leaves those
that they replace, for readers of earlier versions: only the log tells which are in it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.dataset as pads
import pyarrow.parquet as pq

from quorate.pipeline.files.storage import is_remote
from quorate.pipeline.tables.table_format import require_delta
from quorate.pipeline.tables.written import Written

_LOG: Final = "_delta_log"
#: By this name a table's log keeps which of our changes it has.
_APP: Final = "quorate-history"


def make_delta(directory: Path, day: str | None) -> None:
    """Make a Delta table of each directory in ``directory``, all of which hold Parquet files.

    Args:
        day: the column that directories ``NAME=2026-01-05`` in a table stand for; None where there are none. A table
            without a row has the column too, but no file: Parquet's lies beside its log, for those who read no Delta.
    """
    from deltalake import DeltaTable, Field, Schema, convert_to_deltalake  # an extra of its own

    for table in sorted(path for path in directory.iterdir() if path.is_dir() and not path.name.startswith("_")):
        if day is None:
            convert_to_deltalake(table)
        elif any(table.glob(f"{day}=*")):
            convert_to_deltalake(table, partition_by=Schema([Field(day, "date")]), partition_strategy="hive")
        else:
            schema = pq.read_schema(next(table.glob("*.parquet"))).append(pa.field(day, pa.date32()))
            DeltaTable.create(table, schema, partition_by=day)


def is_delta(table: str) -> bool:
    """Whether a directory is a Delta table. Those in a store are never: none are written there."""
    return not is_remote(table) and os.path.isdir(f"{table}/{_LOG}")


@dataclass(frozen=True, slots=True)
class LiveFile:
    """A file that is in a Delta table."""

    path: str
    size: int
    rows: int
    #: As the log has it: ``null_count.NAME``, ``min.NAME``, ``max.NAME`` of columns; None or missing: it does not tell.
    statistics: dict[str, Any]


def live_files(table: str) -> list[LiveFile]:
    """The files that are in a Delta table, by path.

    Raises:
        DeltaMissing: the package that reads its log is not installed.
    """
    require_delta()
    from deltalake import DeltaTable

    actions = pa.table(DeltaTable(table).get_add_actions(flatten=True)).to_pylist()
    return [
        LiveFile(f"{table}/{one['path']}", one["size_bytes"], one["num_records"], one)
        for one in sorted(actions, key=lambda one: str(one["path"]))
    ]


def open_files(table: str, cluster_id: str) -> dict[str, int]:
    """The files of a Delta table of versions in which some of a cluster's may be that hold still, with their bytes."""
    found = {}
    for one in live_files(table):
        told = one.statistics
        least, most = told.get("min.cluster_id") or cluster_id, told.get("max.cluster_id") or cluster_id
        if told.get("null_count.valid_to_offset") != 0 and least <= cluster_id <= most:
            found[one.path] = one.size
    return found


def table_sum(table: str) -> Written:
    """The files and rows in a Delta table."""
    live = live_files(table)
    return Written(sum(one.rows for one in live), len(live), sum(one.size for one in live))


def has_change(table: str, number: int) -> bool:
    """Whether a Delta table has a change of ours of this number, or a later one."""
    from deltalake import DeltaTable

    return (DeltaTable(table).transaction_version(_APP) or 0) >= number


@dataclass(frozen=True, slots=True)
class Change:
    """Rows to be appended to a table of versions, and versions in it that end.

    Attributes:
        rows: a directory of Parquet files. Those that end have ``base`` in the column ``change``; they name the version
            by its keys and its day.
        keys: columns that tell what a version is about, of one cluster.
    """

    rows: Path
    keys: Sequence[str]


def apply_change(table: str, change: Change, number: int, day: str) -> None:
    """Bring a change into a Delta table by one commit, which notes its number; nothing happens where it is in already.

    Files are rewritten of those days only on which a version began that ends.
    """
    from deltalake import CommitProperties, DeltaTable, Transaction, WriterProperties, write_deltalake

    if has_change(table, number) or not any(change.rows.rglob("*.parquet")):
        return
    hive = pads.partitioning(pa.schema([(day, pa.date32())]), flavor="hive")
    rows = pads.dataset(str(change.rows), format="parquet", partitioning=hive)
    ends = pads.field("change") == "base"
    days = rows.to_table(columns=[day], filter=ends)[day].unique().to_pylist()
    how = {
        "commit_properties": CommitProperties(app_transactions=[Transaction(_APP, number)]),
        "writer_properties": WriterProperties(compression="ZSTD"),
    }
    delta = DeltaTable(table)
    if not days:
        write_deltalake(delta, rows.scanner().to_reader(), mode="append", **how)
        return
    within = ", ".join(f"DATE '{one}'" for one in days)
    same = " and ".join(f"held.{name} = new.{name}" for name in ("cluster_id", day, *change.keys))
    merger = delta.merge(
        rows.scanner().to_reader(),
        f"held.{day} in ({within}) and held.valid_to_offset is null and new.change = 'base' and {same}",
        source_alias="new",
        target_alias="held",
        **how,
    )
    ended = {name: f"new.{name}" for name in ("valid_to_offset", "valid_to", "removed")}
    merger.when_matched_update(ended).when_not_matched_insert_all(predicate="new.change <> 'base'").execute()
