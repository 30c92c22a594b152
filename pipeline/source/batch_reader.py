"""Reading logs at rest: a task is some consecutive ranges of files, a chunk of it one Arrow record batch."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition

from quorate.pipeline.files.inputs import InputCluster, find_inputs
from quorate.pipeline.files.ranges import Task, plan_checkpoint, plan_log, task_from_json, task_to_json
from quorate.pipeline.files.replay_bases import require_offset
from quorate.pipeline.files.walk import RecordSelection, read_range
from quorate.pipeline.source.options import SourceOptions
from quorate.pipeline.source.quarantine import make_quarantine, read_around_damage
from quorate.pipeline.source.rows import RowPlan, chunk_rows
from quorate.pipeline.source.selection import Selection


class LogReader(DataSourceReader):
    """The batch reader of ``quorate-log``."""

    def __init__(self, options: SourceOptions, schema: pa.Schema) -> None:
        self._options = options
        self._schema = schema
        wanted = RecordSelection(options.start_offset or 0, options.end_offset)
        self._selection = Selection(wanted, options.types)

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802
        """Take what can be kept by offset, time, type and cluster; Spark applies the rest."""
        self._selection, left = self._selection.push(filters)
        return left

    def partitions(self) -> Sequence[InputPartition]:
        """One for each task."""
        options = self._options
        make_quarantine(options.quarantine)
        clusters = find_inputs(options.paths, cluster_id=options.cluster_id, mixed=options.mixed)
        if options.start_offset is not None:
            for cluster in clusters:
                require_offset(cluster, options.start_offset)
        wanted = self._selection.clusters
        tasks = [task for one in clusters if wanted is None or one.cluster_id in wanted for task in self._tasks(one)]
        return [InputPartition(task_to_json(task)) for task in tasks]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one task."""
        if partition.value is None:  # Spark's stand-in where there is no task
            return
        plan = RowPlan(self._schema, self._selection.types)
        yield from read_task(task_from_json(partition.value), plan, self._selection.wanted, self._options.quarantine)

    def _tasks(self, cluster: InputCluster) -> Iterator[Task]:
        size = self._options.range_bytes
        wanted = self._selection.wanted
        yield from plan_log(cluster, first_offset=wanted.first_offset, end_offset=wanted.end_offset, range_bytes=size)
        if self._options.checkpoints or not cluster.segments:
            for file in cluster.checkpoints:
                yield from plan_checkpoint(cluster, file, range_bytes=size)


def read_task(task: Task, plan: RowPlan, wanted: RecordSelection, quarantine: str | None) -> Iterator[pa.RecordBatch]:
    """The rows of a task, in order; damage is an error, or a row in the quarantine directory where there is one."""
    is_collecting = gc.isenabled()
    # Millions of small objects come and go, none of them in a cycle: looking for cycles would double the time.
    gc.disable()
    try:
        for one in task.ranges:
            # Offsets in a checkpoint are its own: bounds by offset do not concern it.
            within = wanted if not one.file.is_checkpoint else replace(wanted, first_offset=0, end_offset=None)
            look = partial(chunk_rows, cluster_id=task.cluster_id, plan=plan)
            if quarantine is None:
                yield from map(look, read_range(one, within))
            else:
                yield from read_around_damage(one, within, look, quarantine, task.cluster_id)
    finally:
        if is_collecting:
            gc.enable()
