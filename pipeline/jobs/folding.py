"""The fold on Spark: tasks read and folded by Python workers, shuffled as bytes, composed by bucket.

Between the two stages the JVM moves cells (``fold.cells``) and nothing else: no row of the log ever reaches it.
"""

from __future__ import annotations

import gc
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col

from quorate.pipeline.files.inputs import InputCluster, InputFile
from quorate.pipeline.files.ranges import Task, plan_checkpoint, plan_log, task_from_json, task_to_json
from quorate.pipeline.files.replay_bases import ReplayBase
from quorate.pipeline.files.storage import open_file
from quorate.pipeline.files.walk import EVERYTHING, RecordSelection
from quorate.pipeline.fold.cells import join, split
from quorate.pipeline.fold.elements import Elements, empty_elements
from quorate.pipeline.fold.reading import ReadCounts, read_task
from quorate.pipeline.fold.task import FoldedTask
from quorate.pipeline.fold.timeline import Located
from quorate.pipeline.spark.worker_use import WorkerUse
from quorate.pipeline.tables.state_tables import elements_of, records_of
from quorate.pipeline.tables.table_reading import table_files

#: Bytes of log in a task, unless told otherwise: about a million records, and some 400 MB of a worker's memory.
TASK_BYTES: Final = 64 * 1024 * 1024
#: Bytes of log for which there is a bucket: its elements are some 20 MB, and twice as much while they are composed.
_LOG_BYTES_OF_BUCKET: Final = 64 * 1024 * 1024

#: The moment that is the end of the log, wherever that is: behind every offset.
END: Final = 1 << 43

#: One row per cell; where it is that of other records, with what the task counted, as JSON.
_CELLS: Final = "bucket int, task int, cell binary, counts string"
#: What a task begins with that is a file of a table, and not JSON.
_TABLE: Final = "table "
_CELL_SCHEMA: Final = pa.schema(
    [("bucket", pa.int32()), ("task", pa.int32()), ("cell", pa.binary()), ("counts", pa.string())]
)


@dataclass(frozen=True, slots=True)
class FoldPlan:
    """The records to be read, and the moments they are read for."""

    #: Tasks as JSON, and the records that each reads.
    tasks: tuple[tuple[str, RecordSelection], ...]
    moments: tuple[int, ...]
    buckets: int


def plan_fold(
    cluster: InputCluster,
    base: ReplayBase,
    moments: Sequence[int],
    *,
    end: int | None,
    task_bytes: int = TASK_BYTES,
    tables: str | None = None,
) -> FoldPlan:
    """Tasks that hold a base and the log behind it.

    Args:
        end: offset up to which the log is read (exclusive); None = all of it. moments: in any order, none behind it.
        tables: of the state at the base's offset, where that is no checkpoint's.

    Raises:
        StorageError: a file cannot be read.
    """
    tasks: list[tuple[Task, RecordSelection]] = []
    if base.checkpoint is not None:
        tasks += [(task, EVERYTHING) for task in plan_checkpoint(cluster, base.checkpoint, range_bytes=task_bytes)]
    first = base.first_offset
    tail = RecordSelection(first_offset=first, end_offset=end)
    tasks += [(task, tail) for task in plan_log(cluster, first_offset=first, end_offset=end, range_bytes=task_bytes)]
    size = sum(file.size for file in _files(cluster, base))
    buckets = max(4, size // _LOG_BYTES_OF_BUCKET)
    held = () if tables is None else tuple((f"{_TABLE}{path}", EVERYTHING) for path in _table_files(tables))
    read = tuple((task_to_json(task), wanted) for task, wanted in tasks)
    return FoldPlan((*held, *read), tuple(sorted(moments)), buckets)


def _files(cluster: InputCluster, base: ReplayBase) -> Iterator[InputFile]:
    if base.checkpoint is not None:
        yield base.checkpoint
    yield from cluster.segments


#: Makes rows of a result of what one bucket holds: elements, and other records in order.
BucketJob = Callable[[Elements, list[Located]], pa.Table]
#: The same of all records that are no mass records, and of what each task counted.
OthersJob = Callable[[list[Located], list[ReadCounts]], pa.Table]


def fold(
    spark: SparkSession, plan: FoldPlan, bucket_job: BucketJob, others_job: OthersJob, schema: str, use: WorkerUse
) -> DataFrame:
    """The rows that the two jobs make, of the schema: each bucket's by itself, and the others'."""
    buckets = plan.buckets

    def finish(table: pa.Table) -> pa.Table:
        elements, records = join(cell.as_buffer() for cell in table.column("cell") if cell.is_valid)
        if table.column("bucket")[0].as_py() < buckets:
            return bucket_job(elements, records)
        counts = [ReadCounts(**json.loads(text)) for text in table.column("counts").to_pylist()]
        return others_job(records, counts)

    def finish_bucket(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        if cells := list(batches):
            clock = use.clock()
            finished = finish(pa.Table.from_batches(cells))
            clock.stop("compose")
            yield from finished.to_batches()

    # A partition is a bucket, so that nothing is left to be grouped. The others go first: they take longest.
    partition = (col("bucket") + 1) % (buckets + 1)
    return _cells(spark, plan, use).repartitionById(buckets + 1, partition).mapInArrow(finish_bucket, schema)


def _cells(spark: SparkSession, plan: FoldPlan, use: WorkerUse) -> DataFrame:
    moments, buckets = plan.moments, plan.buckets

    def fold_tasks(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        gc.disable()  # many objects and no cycles of them
        for batch in batches:
            for number, text, first, end in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                clock = use.clock()
                if text.startswith(_TABLE):
                    folded, counts = _folded_table(text.removeprefix(_TABLE)), ReadCounts()
                else:
                    reading, counts = read_task(task_from_json(text), RecordSelection(first, end), moments)
                    clock.stop("read")
                    folded = reading.finish()
                clock.stop("fold")
                rows = _rows(number, folded, counts, buckets)
                clock.stop("share")
                yield rows

    rows = [(number, text, wanted.first_offset, wanted.end_offset) for number, (text, wanted) in enumerate(plan.tasks)]
    tasks = spark.createDataFrame(
        spark.sparkContext.parallelize(rows, max(1, len(rows))), "number int, task string, first long, end long"
    )
    return tasks.mapInArrow(fold_tasks, _CELLS)


def _table_files(tables: str) -> Iterator[str]:
    for name in ("partitions", "entries"):
        yield from sorted(table_files(f"{tables}/{name}"))


def _folded_table(path: str) -> FoldedTask:
    """One file of a state's tables, as a task."""
    with open_file(path) as file:
        table = pq.ParquetFile(file).read()
    if "partition" in table.schema.names:
        return FoldedTask(elements_of(table), [])
    return FoldedTask(empty_elements(), list(records_of(table.to_pylist())))


def _rows(number: int, folded: FoldedTask, counts: ReadCounts, buckets: int) -> pa.RecordBatch:
    cells = dict(split(folded, buckets))
    numbers = sorted({*cells, buckets})
    return pa.RecordBatch.from_arrays(
        [
            pa.array(numbers, pa.int32()),
            pa.array([number] * len(numbers), pa.int32()),
            pa.array([cells.get(bucket) for bucket in numbers], pa.binary()),
            pa.array([json.dumps(asdict(counts)) if bucket == buckets else None for bucket in numbers]),
        ],
        schema=_CELL_SCHEMA,
    )
