"""Random logs folded by the pipeline, in tasks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from quorate.metadata_log.batches.batch import BatchHeader, iter_records
from quorate.metadata_log.batches.columns import decode_batch
from quorate.metadata_log.batches.runs import BatchItem
from quorate.metadata_log.records.records import VersionedRecord
from quorate.pipeline.fold.state import FoldedState, state_at
from quorate.pipeline.fold.task import FoldedTask, TaskFold
from tests.random_logs.logs import Batch


def add_batch(fold: TaskFold, header: BatchHeader, data: bytes, moments: Iterable[int] = ()) -> None:
    """The records of a batch: as runs, unless a moment lies among them, for runs do not keep every order."""
    offset = header.base_offset
    items: Iterable[BatchItem] = decode_batch(data)
    if any(offset < moment < header.end_offset for moment in moments):
        items = [VersionedRecord(logged.record, logged.version) for logged in iter_records(data)]
    for item in items:
        if isinstance(item, VersionedRecord):
            fold.add_record(offset, item.record)
            offset += 1
        else:
            fold.add_run(np.arange(offset, offset + len(item)), item)
            offset += len(item)


def folded(tasks: Sequence[Sequence[Batch]], moments: Sequence[int]) -> list[FoldedTask]:
    """Each task folded."""
    found = []
    for task in tasks:
        fold = TaskFold(moments)
        for header, data in task:
            add_batch(fold, header, data, moments)
        found.append(fold.finish())
    return found


def states(tasks: Sequence[Sequence[Batch]], moments: Sequence[int]) -> dict[int, FoldedState]:
    """The folded state at each moment."""
    done = folded(tasks, moments)
    return {moment: state_at(done, moment) for moment in moments}
