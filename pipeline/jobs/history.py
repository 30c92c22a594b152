"""Every version of every partition, broker, topic and config of some clusters' logs, as tables by day.

Two steps. Workers read tasks of some 32 MB and give cells: a task's records of one bucket of topics, as bytes. Each
bucket's cells then meet in one worker, which has its versions made and written; the JVM only moves bytes. The rare
records of a log go to all its buckets, for they say which transactions count and which topics there are. A cluster has
buckets of its own, so that what is made of its log does not depend on which others are read beside it.

Tables that are gone on with are read as one more base, like a checkpoint: what of their versions holds still meets the
new records in the buckets. Only what changes is then written, and brought into the tables (``history.appended``).
"""

from __future__ import annotations

import gc
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import astuple, replace
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from quorate.metadata_log.errors import QuorateError
from quorate.metadata_log.records.hidden_values import IsSecret, hides
from quorate.pipeline.errors import BadSetting, error_from_json, error_to_json
from quorate.pipeline.files.inputs import find_inputs
from quorate.pipeline.files.ranges import task_from_json
from quorate.pipeline.files.storage import files_under, remove_file
from quorate.pipeline.files.walk import RecordSelection
from quorate.pipeline.history.appended import AppendedTables
from quorate.pipeline.history.bucket_keys import partition_keys
from quorate.pipeline.history.catalogue import CatalogueVersions
from quorate.pipeline.history.cells import decode_rare, decode_tables, encode_rare, encode_tables, split_rows
from quorate.pipeline.history.counting import HistoryCounts
from quorate.pipeline.history.held import changes_of, is_held, read_held
from quorate.pipeline.history.partitions import partition_versions
from quorate.pipeline.history.plan import ClusterHistoryPlan, HistoryOptions, HistoryPlan
from quorate.pipeline.history.reading import read_task
from quorate.pipeline.history.report import HistoryReport
from quorate.pipeline.history.resuming import ClusterRead
from quorate.pipeline.history.states import States
from quorate.pipeline.history.timeline import Timeline
from quorate.pipeline.history.writing import DAY, part_name, write_days, write_empty
from quorate.pipeline.spark.worker_use import Clock, WorkerUse
from quorate.pipeline.tables.history_schema import TABLES
from quorate.pipeline.tables.result_directory import ResultDirectory, holds_something
from quorate.pipeline.tables.written import NOTHING, Written

_CELLS: Final = "key int, mass binary, rare binary, end_offset long, error string"
_CELL_SCHEMA: Final = pa.schema(
    [
        ("key", pa.int32()),
        ("mass", pa.binary()),
        ("rare", pa.binary()),
        ("end_offset", pa.int64()),
        ("error", pa.string()),
    ]
)
_RESULTS: Final = "cluster int, name string, rows long, files long, size long, text string, state binary"
#: The names of the rows that say what was read, what went wrong, and what a page draws.
_READ: Final = "read"
_ERROR: Final = "error"
_COUNTS: Final = "counts"


def make_history(spark: SparkSession, paths: Sequence[str], out: str | Path, options: HistoryOptions) -> HistoryReport:
    """Write the tables of the clusters' history to ``out``, or append to what is there, all or none.

    Of several clusters one that fails is left out whole, and named in the report; where all of them do, it is an error.

    Raises:
        InputError: the files are not each cluster's log from somewhere on, or of several clusters that may not be
            mixed; or, where tables are gone on with, not the log that they were made of.
        BadSetting: an offset for several. DeltaMissing, StorageError, NotShared: as ``ResultDirectory`` and
            ``AppendedTables``.
        WorkerError: damage, or a record that cannot be, found by a worker.
    """
    started = time.monotonic()
    refused: dict[str, QuorateError] = {}
    clusters = find_inputs(paths, cluster_id=options.cluster_id, mixed=options.mixed, refused=refused)
    if options.end_offset is not None and len(clusters) > 1:
        ids = ", ".join(cluster.cluster_id for cluster in clusters)
        raise BadSetting(f"offset {options.end_offset} means nothing for several clusters ({ids}): give one's paths")
    if options.append and holds_something(str(out)):
        with AppendedTables(out) as tables:
            tables.require_secrets(hidden=hides(options.is_secret))
            plan = HistoryPlan.of(clusters, options, refused, tables)
            report = _made(spark, plan, refused, tables.staging, States(clusters, tables.staging, tables.run))
            report = replace(report, seconds=round(time.monotonic() - started, 2))
            return replace(report, tables=tables.commit(report.clusters, report.as_json(), report.tables))
    plan = HistoryPlan.of(clusters, options, refused)
    with ResultDirectory(out, options.table_format, day=DAY) as directory:
        states = States(clusters, directory.staging, 0) if options.append else None
        report = _made(spark, plan, refused, directory.staging, states)
        report = replace(report, seconds=round(time.monotonic() - started, 2))
        empty = [name for name, one in report.tables.items() if not one.rows]
        written = report.tables | {name: write_empty(TABLES[name], directory.staging, name) for name in empty}
        directory.commit(report.as_json(), written)
    return report


def _made(
    spark: SparkSession, plan: HistoryPlan, refused: Mapping[str, QuorateError], directory: str, states: States | None
) -> HistoryReport:
    """Have the tables written to a directory, or the changes of those that are gone on with.

    Args:
        states: note where each cluster's history ends; None: it is not to be gone on with.
    """
    use = WorkerUse(spark)
    keys = partition_keys(len(plan.cluster_of_bucket))
    cells = _cells(spark, plan, keys, use)
    rows = _results(cells, plan, keys, directory, use).collect() if keys else []
    failed = _failed(plan, rows, refused)
    _remove(directory, plan, failed)
    good = [row for row in rows if plan.clusters[row.cluster].cluster_id not in failed]
    report = replace(_report(plan, good, use), failed=failed, hides_secrets=hides(plan.is_secret))
    if states is None:
        return report
    ends = {plan.clusters[row.cluster].cluster_id: row for row in good if row.name == _READ and row.state is not None}
    noted = [states.note(one, int(ends[one.cluster_id].text), ends[one.cluster_id].state) for one in report.clusters]
    return replace(report, clusters=noted)


def _failed(plan: HistoryPlan, rows: Sequence[Any], refused: Mapping[str, QuorateError]) -> dict[str, str]:
    """The reasons why nothing is made of some clusters.

    Raises:
        QuorateError: there is no other.
    """
    errors = dict(refused)
    for row in sorted((row for row in rows if row.name == _ERROR), key=lambda row: row.text):
        errors.setdefault(plan.clusters[row.cluster].cluster_id, error_from_json(row.text))
    if errors and all(one.cluster_id in errors for one in plan.clusters):
        raise next(iter(errors.values()))
    return {name: str(error) for name, error in sorted(errors.items())}


def _remove(directory: str, plan: HistoryPlan, failed: Collection[str]) -> None:
    """Remove what some buckets of these clusters have written, before another one failed."""
    for cluster in plan.clusters:
        for bucket in cluster.buckets if cluster.cluster_id in failed else ():
            for path in files_under(directory):
                if path.endswith(f"/part-{part_name(bucket)}.parquet"):
                    remove_file(path)


def _report(plan: HistoryPlan, rows: Sequence[Any], use: WorkerUse) -> HistoryReport:
    tables = dict.fromkeys(TABLES, NOTHING)
    read: dict[int, ClusterRead] = {}
    counts: dict[str, HistoryCounts] = {}
    for row in rows:
        if row.name == _COUNTS:
            counts.setdefault(plan.clusters[row.cluster].cluster_id, HistoryCounts()).add(
                HistoryCounts.from_json(row.text)
            )
            continue
        if row.name in tables:
            tables[row.name] += Written(row.rows, row.files, row.size)
            continue
        cluster = plan.clusters[row.cluster]
        first = cluster.new_offset
        end = max(row.size, first)
        read[row.cluster] = ClusterRead(cluster.cluster_id, first, end, end - first)  # offsets are dense
    return HistoryReport(
        clusters=[read[number] for number in sorted(read)],
        records=sum(one.records for one in read.values()),
        tables=tables,
        seconds=0,
        processor_seconds=use.processor_seconds,
        worker_mb_max=use.mb_max,
        counts=counts,
    )


# --- reading -----------------------------------------------------------------------------------------


def _cells(spark: SparkSession, plan: HistoryPlan, keys: list[int], use: WorkerUse) -> DataFrame:
    """One row a task and bucket; it holds the task's rare records too, which all buckets need."""

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        gc.disable()  # millions of values, and no cycles
        for batch in batches:
            for number in batch.column(0).to_pylist():
                cluster, task = plan.tasks[number]
                one = plan.clusters[cluster]
                its_keys = keys[one.buckets.start : one.buckets.stop]
                yield _read_task(task, one, its_keys, use.clock())

    # A number a partition: the tasks themselves travel with the function.
    count = len(plan.tasks)
    return spark.range(0, count, 1, max(1, count)).mapInArrow(read, _CELLS)


def _read_task(task: str, cluster: ClusterHistoryPlan, keys: list[int], clock: Clock) -> pa.RecordBatch:
    try:
        if is_held(task):
            found = read_held(task, cluster.cluster_id)
        else:
            found = read_task(task_from_json(task), RecordSelection(cluster.first_offset, cluster.end_offset))
    except QuorateError as error:
        # All buckets of the cluster hear of it; other clusters do not suffer.
        return _cell_batch(keys, error=[error_to_json(error)] * len(keys))
    clock.stop("read")
    cells = [encode_tables(tables) for tables in split_rows(found.rows, len(keys))]
    rare = encode_rare(found.rare)
    clock.stop("share")
    count = len(keys)
    return _cell_batch(
        keys,
        mass=cells,
        rare=[rare] * count,
        end_offset=[found.end_offset] * count,
    )


def _cell_batch(keys: list[int], **columns: list[Any]) -> pa.RecordBatch:
    kinds = {"mass": pa.binary(), "rare": pa.binary(), "end_offset": pa.int64()}
    nothing = [None] * len(keys)
    filled = {
        name: pa.array(columns.get(name, nothing), kind) for name, kind in {**kinds, "error": pa.string()}.items()
    }
    return pa.RecordBatch.from_pydict({"key": pa.array(keys, pa.int32()), **filled})


# --- versions ----------------------------------------------------------------------------------------


def _results(cells: DataFrame, plan: HistoryPlan, keys: list[int], directory: str, use: WorkerUse) -> DataFrame:
    """Make and write each bucket's versions; a row for each table and bucket, and one for what was read."""

    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        gc.disable()
        parts = [batch for batch in batches if batch.num_rows]
        if not parts:
            return
        cells = pa.Table.from_batches(parts)
        for key in pc.unique(cells["key"]).to_pylist():
            yield _write_bucket(cells.filter(pc.field("key") == key), keys.index(key), plan, directory, use.clock())

    return cells.repartition(len(keys), "key").mapInArrow(write, _RESULTS)


def _write_bucket(cells: pa.Table, bucket: int, plan: HistoryPlan, directory: str, clock: Clock) -> pa.RecordBatch:
    number = plan.cluster_of_bucket[bucket]
    errors = sorted(cells["error"].drop_null().to_pylist())
    if errors:
        return _result_batch([(number, _ERROR, 0, 0, 0, errors[0], None)])
    cluster = plan.clusters[number]
    end_offset = max(cells["end_offset"].to_pylist())
    try:
        timeline = Timeline(decode_rare(cells["rare"].to_pylist()), max(end_offset, cluster.first_offset))
        tables, state = _versions(cells, timeline, cluster, bucket, clock, plan.is_secret)
    except QuorateError as error:
        return _result_batch([(number, _ERROR, 0, 0, 0, error_to_json(error), None)])
    written = {name: write_days(table, directory, name, part_name(bucket)) for name, table in tables.items()}
    clock.stop("write")
    rows: list[tuple[Any, ...]] = [(number, name, *astuple(one), None, None) for name, one in written.items()]
    rows.append((number, _COUNTS, 0, 0, 0, HistoryCounts.of(tables).to_json(), None))
    clock.stop("count")
    return _result_batch([*rows, (number, _READ, 0, 0, end_offset, str(timeline.settled), state)])


def _versions(
    cells: pa.Table,
    timeline: Timeline,
    cluster: ClusterHistoryPlan,
    bucket: int,
    clock: Clock,
    is_secret: IsSecret,
) -> tuple[dict[str, pa.Table], bytes | None]:
    """A bucket's tables, or their changes; and from the first bucket the state at the end, but for partitions."""
    rows = decode_tables(cells["mass"].to_pylist())
    clock.stop("take")
    tables = {"partition_versions": partition_versions(rows, timeline, cluster.cluster_id, cluster.base)}
    state = None
    if bucket == cluster.buckets.start:
        catalogue = CatalogueVersions.of(timeline, cluster.base)
        tables |= catalogue.tables(cluster.cluster_id, is_secret)
        state = encode_rare(catalogue.state())
    if cluster.held is not None:
        tables = {name: changes_of(table) for name, table in tables.items()}
    clock.stop("versions")
    return tables, state


def _result_batch(rows: list[tuple[Any, ...]]) -> pa.RecordBatch:
    columns = [list(column) for column in zip(*rows, strict=True)]
    kinds = (pa.int32(), pa.string(), pa.int64(), pa.int64(), pa.int64(), pa.string(), pa.binary())
    arrays = [pa.array(column, kind) for column, kind in zip(columns, kinds, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, names=["cluster", "name", "rows", "files", "size", "text", "state"])
