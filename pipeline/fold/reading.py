"""Tasks of a plan, read and folded."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from quorate.pipeline.files.ranges import Task
from quorate.pipeline.files.walk import LogChunk, RecordSelection, read_range
from quorate.pipeline.fold.task import FoldedTask, TaskFold


@dataclass(frozen=True, slots=True)
class ReadCounts:
    """The counts of the reading of a log; of a base nothing is counted."""

    records: int = 0
    batches: int = 0
    #: Of the first record, and behind the last one; both 0 where there is none.
    first_offset: int = 0
    end_offset: int = 0
    #: Of the first batch and of the last one.
    first_epoch: int = 0
    last_epoch: int = 0
    #: Milliseconds since 1970.
    first_time: int = 0
    last_time: int = 0

    @property
    def is_empty(self) -> bool:
        return not self.records


def fold_task(task: Task, wanted: RecordSelection, moments: Iterable[int]) -> tuple[FoldedTask, ReadCounts]:
    """Read the ranges of a task, of a log or of a checkpoint, and fold their records.

    Args:
        wanted: which records count at all. moments: the offsets at which a state is wanted.

    Raises:
        StorageError: a file cannot be read, or is damaged.
    """
    fold, counts = read_task(task, wanted, moments)
    return fold.finish(), counts


def read_task(task: Task, wanted: RecordSelection, moments: Iterable[int]) -> tuple[TaskFold, ReadCounts]:
    """As ``fold_task``, without its second half: the records are read, and still to be folded."""
    is_base = any(one.file.is_checkpoint for one in task.ranges)
    fold = TaskFold(moments, is_base=is_base)
    counts: list[ReadCounts] = []
    for one in task.ranges:
        for chunk in read_range(one, wanted):
            if not is_base:
                counts.append(_counts(chunk))
            for run, offsets in chunk.runs():
                fold.add_run(offsets, run)
            for offset, record, _ in chunk.records():
                fold.add_record(offset, record)
    return fold, joined_counts(counts)


def joined_counts(counts: Sequence[ReadCounts]) -> ReadCounts:
    """The counts of parts in order, added up."""
    parts = [part for part in counts if not part.is_empty]
    if not parts:
        return ReadCounts()
    first, last = parts[0], parts[-1]
    return ReadCounts(
        records=sum(part.records for part in parts),
        batches=sum(part.batches for part in parts),
        first_offset=first.first_offset,
        end_offset=last.end_offset,
        first_epoch=first.first_epoch,
        last_epoch=last.last_epoch,
        first_time=first.first_time,
        last_time=last.last_time,
    )


def _counts(chunk: LogChunk) -> ReadCounts:
    batches = chunk.batches
    return ReadCounts(
        records=chunk.count,
        batches=len(batches.epochs),
        first_offset=chunk.first_offset,
        end_offset=chunk.end_offset,
        first_epoch=int(batches.epochs[0]),
        last_epoch=int(batches.epochs[-1]),
        first_time=int(batches.timestamps[0]),
        last_time=int(batches.timestamps[-1]),
    )
