"""Tasks of a plan, read and folded."""

from __future__ import annotations

from collections.abc import Iterable

from pipeline.fold.task import FoldedTask, TaskFold
from pipeline.ranges import Task
from pipeline.walk import Wanted, read_range


def fold_task(task: Task, wanted: Wanted, moments: Iterable[int]) -> FoldedTask:
    """Read the ranges of a task, of a log or of a checkpoint, and fold their records.

    Args:
        wanted: which records count at all. moments: the offsets at which a state is wanted.

    Raises:
        StorageError: a file cannot be read, or is damaged.
    """
    fold = TaskFold(moments, is_base=any(one.file.is_checkpoint for one in task.ranges))
    for one in task.ranges:
        for chunk in read_range(one, wanted):
            for run, offsets in chunk.runs():
                fold.add_run(offsets, run)
            for offset, record, _ in chunk.records():
                fold.add_record(offset, record)
    return fold.finish()
