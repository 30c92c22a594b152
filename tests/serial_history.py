"""Histories that are begun and gone on with, without Spark: the steps of the job one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable

from quorate.pipeline.files.inputs import find_inputs
from quorate.pipeline.files.ranges import task_from_json
from quorate.pipeline.files.walk import RecordSelection
from quorate.pipeline.history.appended import AppendedTables
from quorate.pipeline.history.catalogue import CatalogueVersions
from quorate.pipeline.history.cells import decode_rare, decode_tables, encode_rare, encode_tables, split_rows
from quorate.pipeline.history.held import changes_of, is_held, read_held
from quorate.pipeline.history.partitions import partition_versions
from quorate.pipeline.history.plan import ClusterHistoryPlan, HistoryOptions, HistoryPlan
from quorate.pipeline.history.reading import read_task
from quorate.pipeline.history.resuming import ClusterRead
from quorate.pipeline.history.states import States
from quorate.pipeline.history.timeline import Timeline
from quorate.pipeline.history.writing import DAY, write_days, write_empty
from quorate.pipeline.tables.history_schema import KEYS, TABLES
from quorate.pipeline.tables.result_directory import ResultDirectory, holds_something
from quorate.pipeline.tables.table_format import TableFormat
from quorate.pipeline.tables.written import NOTHING, Written


def append_history(paths: Sequence[Path], out: Path, *, end: int | None = None, mixed: bool = False) -> int:
    """Begin the tables of some logs' history, or go on with them; return how many bytes of log were to be read."""
    options = HistoryOptions(
        end_offset=end, mixed=mixed, table_format=TableFormat.DELTA, append=True, range_bytes=150_000
    )
    clusters = find_inputs([str(path) for path in paths], mixed=mixed)
    if holds_something(str(out)):
        with AppendedTables(out) as tables:
            plan = HistoryPlan.of(clusters, options, {}, tables)
            read, written = _work(plan, tables.staging, States(clusters, tables.staging, tables.run))
            tables.commit(read, {}, written)
            return _bytes(plan)
    plan = HistoryPlan.of(clusters, options, {})
    with ResultDirectory(out, TableFormat.DELTA, day=DAY) as directory:
        read, written = _work(plan, directory.staging, States(clusters, directory.staging, 0))
        empty = [name for name, one in written.items() if not one.rows]
        written |= {name: write_empty(TABLES[name], directory.staging, name) for name in empty}
        directory.commit({"clusters": [asdict(one) for one in read]}, written)
    return _bytes(plan)


def _bytes(plan: HistoryPlan) -> int:
    tasks = [task_from_json(task) for _, task in plan.tasks if not is_held(task)]
    return sum((one.end_byte or one.file.size) - one.first_byte for task in tasks for one in task.ranges)


def _work(plan: HistoryPlan, directory: str, states: States) -> tuple[list[ClusterRead], dict[str, Written]]:
    written = dict.fromkeys(TABLES, NOTHING)
    read = []
    for number, cluster in enumerate(plan.clusters):
        tasks = [task for of, task in plan.tasks if of == number]
        one, settled, state, tables = _history(cluster, tasks)
        for name, table in tables.items():
            written[name] += write_days(table, directory, name, f"{number:04d}")
        read.append(states.note(one, settled, state))
    return read, written


def _history(cluster: ClusterHistoryPlan, tasks: Sequence[str]) -> tuple[ClusterRead, int, bytes, dict[str, pa.Table]]:
    wanted = RecordSelection(cluster.first_offset, cluster.end_offset)
    found = [
        read_held(task, cluster.cluster_id) if is_held(task) else read_task(task_from_json(task), wanted)
        for task in tasks
    ]
    end = max(cluster.new_offset, *(one.end_offset for one in found))
    timeline = Timeline(decode_rare(encode_rare(one.rare) for one in found), end)
    rows = decode_tables(encode_tables(cells) for one in found for cells in split_rows(one.rows, 1))
    catalogue = CatalogueVersions.of(timeline, cluster.base)
    tables = {
        "partition_versions": partition_versions(rows, timeline, cluster.cluster_id, cluster.base),
        **catalogue.tables(cluster.cluster_id),
    }
    if cluster.held is not None:
        tables = {name: changes_of(table) for name, table in tables.items()}
    first = cluster.new_offset
    read = ClusterRead(cluster.cluster_id, first, end, end - first)
    return read, timeline.settled, encode_rare(catalogue.state()), tables


def delta_tables(out: Path) -> dict[str, pa.Table]:
    """By table the rows that Delta's log says are in it, in one order."""
    return {name: in_order(DeltaTable(out / name).to_pyarrow_table(), name) for name in TABLES}


def in_order(table: pa.Table, name: str) -> pa.Table:
    """The rows of a table of versions, by what they are of and when they begin; without the day, which follows."""
    schema = TABLES[name]
    by = ("cluster_id", *KEYS[name], "valid_from_offset", "record_offset")
    plain = pa.table([table[field].combine_chunks() for field in schema.names], names=schema.names)
    return plain.take(pc.sort_indices(plain, [(field, "ascending") for field in by])).combine_chunks()
