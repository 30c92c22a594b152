"""Every version of every partition, broker, topic and config of some clusters' logs, as tables by day.

Two steps. Workers read tasks of some 32 MB and give cells: a task's records of one bucket of topics, as bytes. Each
bucket's cells then meet in one worker, which has its versions made and written; the JVM only moves bytes. The rare
records of a log go to all its buckets, for they say which transactions count and which topics there are. A cluster has
buckets of its own, so that what is made of its log does not depend on which others are read beside it.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from metadata_log.records import SnapshotHeaderRecord
from pipeline.errors import BadSetting
from pipeline.history.bucket_keys import partition_keys
from pipeline.history.catalogue import catalogue_versions
from pipeline.history.cells import decode_rare, decode_tables, encode_rare, encode_tables, split_rows
from pipeline.history.partitions import partition_versions
from pipeline.history.reading import is_of_checkpoint, read_task
from pipeline.history.schema import TABLES
from pipeline.history.timeline import Timeline
from pipeline.history.writing import DAY, write_days, write_empty
from pipeline.inputs import InputCluster, InputFile, find_inputs, replay_base
from pipeline.ranges import RANGE_BYTES, Task, plan_checkpoint, plan_log, task_from_json, task_to_json
from pipeline.result_directory import ResultDirectory
from pipeline.table_format import TableFormat
from pipeline.walk import Wanted, read_range
from pipeline.worker_use import Clock, WorkerUse
from pipeline.written import NOTHING, Written

#: Bytes of log in a bucket: some million records, whose versions take a worker a few hundred MB.
BUCKET_BYTES: Final = 64 * 1024 * 1024
_CELLS: Final = "key int, mass binary, rare binary, records long, end_offset long"
_RESULTS: Final = "cluster int, name string, rows long, files long, size long"
#: The name of the row that says what was read.
_READ: Final = "read"


@dataclass(frozen=True, slots=True)
class ClusterRead:
    """What a history has of one cluster."""

    cluster_id: str
    #: Offsets: from the first record that is in it, to the end (exclusive).
    first_offset: int
    end_offset: int
    records: int


@dataclass(frozen=True, slots=True)
class HistoryReport:
    """What a history came to."""

    #: By id.
    clusters: list[ClusterRead]
    #: Of all clusters, as the tables.
    records: int
    #: By table.
    tables: dict[str, Written]
    seconds: float
    #: Processor seconds of the workers by what they did.
    processor_seconds: dict[str, float]
    #: Of the worker that took most, in MB.
    worker_mb_max: int

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class HistoryOptions:
    """How a history is made.

    Attributes:
        end_offset: only records below it; None = all. cluster_id: of files that do not tell. mixed: there may be
        several clusters. table_format: of the tables. range_bytes: of log in a task. bucket_bytes: of log in a bucket;
        what a worker holds at once follows from it.
    """

    end_offset: int | None = None
    cluster_id: str | None = None
    mixed: bool = False
    table_format: TableFormat = TableFormat.PARQUET
    range_bytes: int = RANGE_BYTES
    bucket_bytes: int = BUCKET_BYTES


def make_history(spark: SparkSession, paths: Sequence[str], out: Path, options: HistoryOptions) -> HistoryReport:
    """Write the tables of the clusters' history to ``out``, all or none.

    Raises:
        InputError: the files are not each cluster's log from somewhere on, or of several clusters that may not be
            mixed. BadSetting: an offset for several. DeltaMissing, StorageError, NotShared: as
            ``ResultDirectory``.
        CorruptBatch, FoldRefused: damage, or a record that cannot be; as ``WorkerError`` from a worker.
    """
    started = time.monotonic()
    clusters = find_inputs(paths, cluster_id=options.cluster_id, mixed=options.mixed)
    if options.end_offset is not None and len(clusters) > 1:
        ids = ", ".join(cluster.cluster_id for cluster in clusters)
        raise BadSetting(f"offset {options.end_offset} means nothing for several clusters ({ids}): give one's paths")
    plan = _Plan.of(clusters, options)
    with ResultDirectory(out, options.table_format, day=DAY) as directory:
        keys = partition_keys(len(plan.cluster_of_bucket))
        use = WorkerUse(spark)
        cells = _cells(spark, plan, keys, use)
        rows = _results(cells, plan, keys, str(directory.staging), use).collect()
        report = _report(plan, rows, use, time.monotonic() - started)
        empty = [name for name, one in report.tables.items() if not one.rows]
        written = report.tables | {name: write_empty(TABLES[name], directory.staging, name) for name in empty}
        directory.commit(report.as_json(), written)
    return report


def _report(plan: _Plan, rows: Sequence[Any], use: WorkerUse, seconds: float) -> HistoryReport:
    tables = dict.fromkeys(TABLES, NOTHING)
    read = [ClusterRead(one.cluster_id, one.first_offset, one.first_offset, 0) for one in plan.clusters]
    for row in rows:
        if row.name in tables:
            tables[row.name] += Written(row.rows, row.files, row.size)
            continue
        one = read[row.cluster]
        read[row.cluster] = replace(one, records=one.records + row.rows, end_offset=max(one.end_offset, row.size))
    return HistoryReport(
        clusters=read,
        records=sum(one.records for one in read),
        tables=tables,
        seconds=round(seconds, 2),
        processor_seconds=use.processor_seconds,
        worker_mb_max=use.mb_max,
    )


# --- the plan ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _ClusterPlan:
    """What is read of one cluster, and into which buckets."""

    cluster_id: str
    buckets: range
    first_offset: int
    #: Of the checkpoint that the history begins with: the last offset that it covers, and that record's time.
    base: tuple[int, int] | None


@dataclass(frozen=True, slots=True)
class _Plan:
    """What is read, and how it is shared out. Travels to the workers."""

    clusters: list[_ClusterPlan]
    #: By bucket the number of its cluster.
    cluster_of_bucket: list[int]
    #: The number of a task's cluster, and the task as JSON; those of a cluster's checkpoint come first.
    tasks: list[tuple[int, str]]
    #: None = all there is.
    end_offset: int | None

    @classmethod
    def of(cls, clusters: Sequence[InputCluster], options: HistoryOptions) -> _Plan:
        plan = cls([], [], [], options.end_offset)
        for number, cluster in enumerate(clusters):
            checkpoint = _first_checkpoint(cluster, options.end_offset)
            first = 0 if checkpoint is None else checkpoint.offset
            log = plan_log(cluster, first_offset=first, end_offset=options.end_offset, range_bytes=options.range_bytes)
            held = [] if checkpoint is None else plan_checkpoint(cluster, checkpoint, range_bytes=options.range_bytes)
            size = sum(file.size for file in cluster.segments)
            before, count = len(plan.cluster_of_bucket), max(1, -(-size // options.bucket_bytes))
            base = None if checkpoint is None else (first - 1, _time_of(held[0]))
            plan.clusters.append(_ClusterPlan(cluster.cluster_id, range(before, before + count), first, base))
            plan.cluster_of_bucket.extend([number] * count)
            plan.tasks.extend((number, task_to_json(task)) for task in (*held, *log))
        return plan


def _first_checkpoint(cluster: InputCluster, end_offset: int | None) -> InputFile | None:
    """The oldest checkpoint whose tail is there, None where the log begins at offset 0.

    Raises:
        InputError: there is neither, or nothing below the end that was asked for.
    """
    first = cluster.first_offset
    if first == 0:
        return None
    for file in cluster.checkpoints:
        if first is not None and file.offset >= first and (end_offset is None or file.offset <= end_offset):
            return file
    return replay_base(cluster, end_offset).checkpoint


def _time_of(task: Task) -> int:
    """The time of the last record that a checkpoint covers, milliseconds since 1970."""
    for chunk in read_range(task.ranges[0], chunk_bytes=4096):
        for _, record, _ in chunk.records():
            if isinstance(record, SnapshotHeaderRecord):
                return record.last_contained_log_timestamp
    return 0


# --- reading -----------------------------------------------------------------------------------------


def _cells(spark: SparkSession, plan: _Plan, keys: list[int], use: WorkerUse) -> DataFrame:
    """One row a task and bucket; it holds the task's rare records too, which all buckets need."""

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        gc.disable()  # millions of values, and no cycles
        for batch in batches:
            for number in batch.column(0).to_pylist():
                cluster, task = plan.tasks[number]
                one = plan.clusters[cluster]
                wanted = Wanted(first_offset=one.first_offset, end_offset=plan.end_offset)
                its_keys = keys[one.buckets.start : one.buckets.stop]
                yield _read_task(task_from_json(task), wanted, its_keys, use.clock())

    # A number a partition: the tasks themselves travel with the function.
    count = len(plan.tasks)
    return spark.range(0, count, 1, max(1, count)).mapInArrow(read, _CELLS)


def _read_task(task: Task, wanted: Wanted, keys: list[int], clock: Clock) -> pa.RecordBatch:
    found = read_task(task, wanted)
    clock.stop("read")
    cells = [encode_tables(tables) for tables in split_rows(found.rows, len(keys))]
    rare = encode_rare(found.rare)
    clock.stop("share")
    count, is_base = len(keys), is_of_checkpoint(task)
    return pa.RecordBatch.from_pydict(
        {
            "key": pa.array(keys, pa.int32()),
            "mass": pa.array(cells, pa.binary()),
            "rare": pa.array([rare] * count, pa.binary()),
            # What is counted is counted once.
            "records": pa.array([0 if is_base else found.record_count] + [0] * (count - 1), pa.int64()),
            "end_offset": pa.array([0 if is_base else found.end_offset] * count, pa.int64()),
        }
    )


# --- versions ----------------------------------------------------------------------------------------


def _results(cells: DataFrame, plan: _Plan, keys: list[int], directory: str, use: WorkerUse) -> DataFrame:
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


def _write_bucket(cells: pa.Table, bucket: int, plan: _Plan, directory: str, clock: Clock) -> pa.RecordBatch:
    number = plan.cluster_of_bucket[bucket]
    cluster = plan.clusters[number]
    end_offset = max(cells["end_offset"].to_pylist())
    timeline = Timeline(decode_rare(cells["rare"].to_pylist()), max(end_offset, cluster.first_offset))
    rows = decode_tables(cells["mass"].to_pylist())
    clock.stop("take")
    tables = {"partition_versions": partition_versions(rows, timeline, cluster.cluster_id, cluster.base)}
    if bucket == cluster.buckets.start:
        tables |= catalogue_versions(timeline, cluster.cluster_id, cluster.base)
    clock.stop("versions")
    written = {name: write_days(table, directory, name, f"{bucket:04d}") for name, table in tables.items()}
    clock.stop("write")
    read = sum(cells["records"].to_pylist())
    rows_out = [(number, name, one.rows, one.files, one.size) for name, one in written.items()]
    rows_out.append((number, _READ, read, 0, end_offset))
    columns = [list(column) for column in zip(*rows_out, strict=True)]
    kinds = (pa.int32(), pa.string(), pa.int64(), pa.int64(), pa.int64())
    arrays = [pa.array(column, kind) for column, kind in zip(columns, kinds, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, names=["cluster", "name", "rows", "files", "size"])
