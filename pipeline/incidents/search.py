"""Search version tables with Spark, which only moves bytes: everything is decided in `bucket` and `merging`.

Workers read files of versions and share their rows out by topic. Each bucket of topics meets in one worker, which gives
whole tables, small parts that are merged here, and rows that come together by time in one further step.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any, Final
from zlib import crc32

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.storagelevel import StorageLevel

from quorate.metadata_log.records.config_texts import is_true
from quorate.pipeline.fold.fields import Longs
from quorate.pipeline.fold.table_cells import from_bytes, shared_out, to_bytes
from quorate.pipeline.history.bucket_keys import partition_keys
from quorate.pipeline.incidents.merging import merge, merged_instants
from quorate.pipeline.incidents.partitions.bucket import Known, by_time_of, parts_of, tables_of
from quorate.pipeline.incidents.partitions.series import ClusterSeries, series, stretches_of, summed_up, widths_us
from quorate.pipeline.incidents.partitions.versions import COLUMNS, PartitionVersions
from quorate.pipeline.incidents.reading import VersionTables
from quorate.pipeline.incidents.tables import INSTANTS, TABLES, rows_of
from quorate.pipeline.spark.worker_use import Clock, WorkerUse
from quorate.pipeline.tables.history_schema import PARTITION_VERSIONS
from quorate.pipeline.tables.table_reading import read_file
from quorate.pipeline.tables.written import NOTHING, Written, require_directory, write_part
from quorate.snapshots.incidents.brokers import events, incarnations, outages
from quorate.snapshots.incidents.failovers import Epoch, failovers
from quorate.snapshots.incidents.findings import IncidentFindings
from quorate.snapshots.incidents.kinds import UNCLEAN_ALLOWED
from quorate.snapshots.incidents.min_isr import NAME as MIN_ISR
from quorate.snapshots.incidents.min_isr import min_isr_steps
from quorate.snapshots.incidents.thresholds import INSTANT_SHARE, Thresholds

#: Bytes of Parquet in a bucket of topics: some million versions, which take a worker a few hundred MB.
BUCKET_BYTES: Final = 16 * 1024 * 1024
#: Bytes of Parquet that one task reads.
TASK_BYTES: Final = 8 * 1024 * 1024
_CELLS: Final = "key int, data binary"
#: A table's part, with its bucket as the key; or a part of what is merged, with the key of where it is.
_RESULTS: Final = "kind string, name string, key int, data binary"
_TABLE: Final = "table"
_PART: Final = "part"
_BY_TIME: Final = "by time"
#: What is read of them.
_VERSIONS: Final = pa.schema([PARTITION_VERSIONS.field(name) for name in COLUMNS])
_COMPRESSION: Final[Mapping[str, Any]] = {"compression": "zstd", "compression_level": 1}


@dataclass(frozen=True, slots=True)
class Search:
    """The findings, and the data behind them as long as the context that gave it."""

    findings: IncidentFindings
    use: WorkerUse
    _results: DataFrame
    _keys: list[int]
    _instants: list[pa.Table]
    _leaders: list[pa.Table]

    def write(self, directory: str) -> dict[str, Written]:
        """Write the whole tables, as Parquet, and return what was written; a bucket's files have its number."""

        def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for row in _rows(batches):
                require_directory(directory)
                one = write_part(from_bytes(row["data"]), _part(directory, row["name"], row["key"]), **_COMPRESSION)
                yield pa.RecordBatch.from_pylist([{"name": row["name"], **asdict(one)}])

        tables = self._results.where(sf.col("kind") == _TABLE)
        found = dict.fromkeys(TABLES, NOTHING)
        for row in tables.mapInArrow(write, "name string, rows long, files long, size long").collect():
            found[row.name] += Written(row.rows, row.files, row.size)
        instants = pa.concat_tables([INSTANTS.empty_table(), *self._instants])
        found["instants"] += write_part(instants, _part(directory, "instants", 0))
        for name, schema in TABLES.items():
            if not found[name].files:
                found[name] = write_part(schema.empty_table(), _part(directory, name, 0))
        return found

    def series(self) -> dict[str, ClusterSeries]:
        """The series that the page draws, by cluster."""
        spans = self.findings.spans
        widths = widths_us(spans)
        tables = _together(
            self._results,
            "steps",
            self._keys,
            lambda steps: stretches_of(steps, widths),
            lambda parts: summed_up(pa.concat_tables(parts), widths),
        )
        rows = [row for table in tables for row in rows_of(table)]
        return series(spans, rows, [row for part in self._leaders for row in rows_of(part)])


def _part(directory: str, table: str, key: int) -> str:
    return f"{directory}/{table}/part-{key:04d}.parquet"


@contextmanager
def searched(
    spark: SparkSession, tables: VersionTables, epochs: Iterable[Epoch], thresholds: Thresholds
) -> Iterator[Search]:
    """The findings, and while the context lasts what stands behind them: it is kept on disk until then."""
    configs = tables.configs()
    found, epochs = events(brokers := tables.brokers()), list(epochs)
    findings = IncidentFindings([], found, incarnations(brokers), outages(found), failovers(epochs))
    # Topics that allowed it at some time; the empty name stands for the cluster's default.
    findings.unclean_allowed = frozenset(
        (span.cluster_id, span.resource_name)
        for name, span in configs
        if name == UNCLEAN_ALLOWED and is_true(span.value or "")
    )
    steps = min_isr_steps((span for name, span in configs if name == MIN_ISR), thresholds.min_isr)
    known = Known.of(found, steps, thresholds, time.time_ns() // 1000)
    files = tables.partition_files()
    size = sum(files.values())
    keys = partition_keys(max(1, -(-size // BUCKET_BYTES)))
    use = WorkerUse(spark)
    results = _results(_cells(spark, files, tables.wanted, keys, use), keys, known, use)
    results = results.persist(StorageLevel.DISK_ONLY)
    try:
        parts: dict[str, list[pa.Table]] = {}
        for row in results.where(sf.col("kind") == _PART).collect():
            parts.setdefault(row["name"], []).append(from_bytes(bytes(row["data"])))
        # By the order of epochs: times may fall from one to the next.
        ends_us = {epoch.cluster_id: epoch.last_us for epoch in epochs}
        merge(findings, parts, thresholds, known.now_us, ends_us)
        at_least = max(1, thresholds.mass_partitions // INSTANT_SHARE)
        instants = _together(results, "instants", keys, _milliseconds, lambda parts: merged_instants(parts, at_least))
        findings.instants = [row for table in instants for row in rows_of(table)]
        yield Search(findings, use, results, keys, instants, parts.get("leaders", []))
    finally:
        results.unpersist()


# --- reading -----------------------------------------------------------------------------------------


def _cells(
    spark: SparkSession, files: Mapping[str, int], wanted: frozenset[str] | None, keys: list[int], use: WorkerUse
) -> DataFrame:
    """One row a task and bucket.

    Args:
        cluster_id: whose versions count; None: all do.
    """
    tasks = _tasks(files)

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        gc.disable()  # millions of values, and no cycles
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield _read_task(tasks[number], wanted, keys, use.clock())

    # A number a partition: the tasks themselves travel with the function.
    return spark.range(0, len(tasks), 1, max(1, len(tasks))).mapInArrow(read, _CELLS)


def _tasks(files: Mapping[str, int]) -> list[list[str]]:
    """Files that are read by one task."""
    tasks: list[list[str]] = []
    room = 0
    for file, size in files.items():
        if room <= 0:
            tasks.append([])
            room = TASK_BYTES
        tasks[-1].append(file)
        room -= size
    return tasks


def _read_task(files: list[str], wanted: frozenset[str] | None, keys: list[int], clock: Clock) -> pa.RecordBatch:
    table = pa.concat_tables(read_file(path, _VERSIONS) for path in files)
    if wanted is not None:
        table = table.filter(pc.is_in(table["cluster_id"].cast(pa.string()), pa.array(sorted(wanted), pa.string())))
    table = table.unify_dictionaries().combine_chunks()
    clock.stop("read")
    topics = table["topic_id"].combine_chunks().dictionary_encode()
    buckets = np.array([crc32(topic.encode()) % len(keys) for topic in topics.dictionary.to_pylist()], np.int64)
    cells = shared_out(table, buckets[topics.indices.to_numpy()], len(keys))
    batch = pa.RecordBatch.from_pydict({"key": pa.array(keys, pa.int32()), "data": pa.array(cells, pa.binary())})
    clock.stop("share")
    return batch


# --- buckets -----------------------------------------------------------------------------------------


def _results(cells: DataFrame, keys: list[int], known: Known, use: WorkerUse) -> DataFrame:
    """The findings in each bucket."""

    def search(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        gc.disable()
        found: dict[int, list[bytes]] = {}
        for row in _rows(batches):
            found.setdefault(row["key"], []).append(row["data"])
        for key in list(found):
            yield from _search_bucket(found.pop(key), keys.index(key), keys, known, use.clock())

    return cells.repartition(len(keys), "key").mapInArrow(search, _RESULTS)


def _search_bucket(
    cells: list[bytes], bucket: int, keys: list[int], known: Known, clock: Clock
) -> Iterator[pa.RecordBatch]:
    table = pa.concat_tables(map(from_bytes, cells))
    cells.clear()
    if not len(table):
        return
    versions = PartitionVersions.of(table)
    del table
    clock.stop("sort")
    changes = known.changes(versions)
    clock.stop("causes")
    tables = tables_of(changes, known)
    clock.stop("tables")
    for name, one in tables.items():
        yield _result(_TABLE, name, bucket, to_bytes(one))
    for name, one in parts_of(changes, tables, known).items():
        yield _result(_PART, name, bucket, to_bytes(one))
    clock.stop("parts")
    for name, one in by_time_of(changes, tables).items():
        yield _result(_BY_TIME, name, bucket, to_bytes(one))
    clock.stop("times")


def _result(kind: str, name: str, key: int, data: bytes) -> pa.RecordBatch:
    columns: Mapping[str, Any] = {
        "kind": pa.array([kind], pa.string()),
        "name": pa.array([name], pa.string()),
        "key": pa.array([key], pa.int32()),
        "data": pa.array([data], pa.binary()),
    }
    return pa.RecordBatch.from_pydict(columns)


# --- by time -----------------------------------------------------------------------------------------


def _together(
    results: DataFrame,
    name: str,
    keys: list[int],
    place_of: Callable[[pa.Table], Longs],
    merged: Callable[[list[pa.Table]], pa.Table],
) -> list[pa.Table]:
    """Rows of one place in time, from all buckets, merged by one worker; what it comes to is brought here.

    Args:
        place_of: a number for each row; rows that are merged have the same.
    """

    def share(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for row in _rows(batches):
            table = from_bytes(row["data"])
            cells = shared_out(table, place_of(table) % len(keys), len(keys))
            yield pa.RecordBatch.from_pydict({"key": pa.array(keys, pa.int32()), "data": pa.array(cells, pa.binary())})

    def merge(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        parts = [from_bytes(row["data"]) for row in _rows(batches)]
        if parts:
            yield pa.RecordBatch.from_pydict({"data": pa.array([to_bytes(merged(parts))], pa.binary())})

    wanted = results.where((sf.col("kind") == _BY_TIME) & (sf.col("name") == name))
    cells = wanted.select("data").mapInArrow(share, _CELLS)
    rows = cells.repartition(len(keys), "key").mapInArrow(merge, "data binary").collect()
    return [from_bytes(bytes(row["data"])) for row in rows]


def _milliseconds(instants: pa.Table) -> Longs:
    found: Longs = instants["time"].cast(pa.int64()).to_numpy() // 1000
    return found


def _rows(batches: Iterable[pa.RecordBatch]) -> Iterator[dict[str, Any]]:
    for batch in batches:
        yield from batch.to_pylist()
