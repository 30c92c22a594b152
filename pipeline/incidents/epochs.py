"""First and last records of every epoch, by ranges of the log that are read side by side."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from quorate.metadata_log.errors import QuorateError
from quorate.metadata_log.records.records import LeaderChangeMessage
from quorate.pipeline.errors import WorkerError, error_from_json, error_to_json
from quorate.pipeline.files.inputs import InputCluster
from quorate.pipeline.files.ranges import Range, Task, plan_log, task_from_json, task_to_json
from quorate.pipeline.files.walk import EVERYTHING, LogChunk, RecordSelection, read_range
from quorate.snapshots.incidents.failovers import Epoch

_SCHEMA: Final = pa.schema(
    [
        ("cluster_id", pa.string()),
        ("epoch", pa.int32()),
        ("leader", pa.int32()),
        *[(name, pa.int64()) for name in Epoch._fields[3:]],
        #: Instead of an epoch: why a part of the cluster's log cannot be read.
        ("error", pa.string()),
    ]
)


def log_epochs(
    spark: SparkSession, clusters: Sequence[InputCluster], ends: Mapping[str, int], range_bytes: int
) -> tuple[list[Epoch], dict[str, WorkerError]]:
    """The epochs in the logs of these clusters, by cluster and epoch; and of those that cannot be read the reason.

    Args:
        ends: by cluster the offset up to which (exclusive) its log counts.
    """
    tasks = [
        (one.cluster_id, ends[one.cluster_id], task_to_json(task))
        for one in clusters
        for task in _plan(one, ends[one.cluster_id], range_bytes)
    ]
    if not tasks:
        return [], {}
    rows = spark.createDataFrame(tasks, "cluster_id string, end long, task string").repartition(len(tasks))
    found = rows.mapInArrow(_read, from_arrow_schema(_SCHEMA)).collect()
    errors = {row.cluster_id: error_from_json(row.error) for row in sorted(found, key=_error) if row.error}
    return merged(Epoch(*row[:-1]) for row in found if row.cluster_id not in errors), errors


def _error(row: Any) -> str:
    return row.error or ""


def _plan(cluster: InputCluster, end: int, range_bytes: int) -> list[Task]:
    return plan_log(cluster, end_offset=end, range_bytes=range_bytes) if cluster.segments else []


def _read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for row in batch.to_pylist():
            wanted, ranges = RecordSelection(end_offset=row["end"]), task_from_json(row["task"]).ranges
            try:
                parts = [part for one in ranges for part in epochs_of(row["cluster_id"], one, wanted)]
            except QuorateError as error:
                failed = {"cluster_id": row["cluster_id"], "error": error_to_json(error)}
                yield pa.RecordBatch.from_pylist([failed], _SCHEMA)
            else:
                yield pa.RecordBatch.from_pylist([part._asdict() for part in parts], _SCHEMA)


def epochs_of(cluster_id: str, one: Range, wanted: RecordSelection = EVERYTHING) -> list[Epoch]:
    """The epochs of the batches in a range, each as far as the range goes; pure but for the reading."""
    return merged(part for chunk in read_range(one, wanted) for part in _of_chunk(cluster_id, chunk))


def _of_chunk(cluster_id: str, chunk: LogChunk) -> Iterator[Epoch]:
    table = chunk.batches
    leaders = _leaders(chunk) if table.is_control.any() else {}
    for epoch in np.unique(table.epochs).tolist():
        mine = np.flatnonzero(table.epochs == epoch)
        data = mine[~table.is_control[mine]]
        first, last = int(mine[0]), int(mine[-1])
        yield Epoch(
            cluster_id,
            epoch,
            leaders.get(epoch),
            int(table.base_offsets[first]),
            int(table.timestamps[first]) * 1000,
            int(table.base_offsets[data[0]]) if len(data) else None,
            int(table.timestamps[data[0]]) * 1000 if len(data) else None,
            int(table.base_offsets[last] + table.record_counts[last]) - 1,
            int(table.timestamps[last]) * 1000,
        )


def _leaders(chunk: LogChunk) -> dict[int, int]:
    """The elected leaders, by epoch."""
    table = chunk.batches
    found = {}
    for placed in chunk.records():
        if isinstance(placed.record, LeaderChangeMessage):
            batch = int(np.searchsorted(table.base_offsets, placed.offset, side="right")) - 1
            found[int(table.epochs[batch])] = placed.record.leader_id
    return found


def merged(parts: Iterable[Epoch]) -> list[Epoch]:
    """The epochs of which these are parts, by cluster and epoch."""
    whole: dict[tuple[str, int], Epoch] = {}
    for part in sorted(parts, key=lambda part: (part.cluster_id, part.epoch, part.begin_offset)):
        key = (part.cluster_id, part.epoch)
        before = whole.get(key)
        whole[key] = part if before is None else _joined(before, part)
    return list(whole.values())


def _joined(before: Epoch, part: Epoch) -> Epoch:
    joined = before._replace(last_offset=part.last_offset, last_us=part.last_us)
    if before.first_offset is None:
        joined = joined._replace(first_offset=part.first_offset, first_us=part.first_us)
    return joined if before.leader is not None else joined._replace(leader=part.leader)
