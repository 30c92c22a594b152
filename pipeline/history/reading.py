"""Reading a task for a history: mass records with their times, rare records with theirs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from quorate.metadata_log.records.records import (
    LeaderChangeMessage,
    NoOpRecord,
    PartitionChangeRecord,
    PartitionRecord,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
)
from quorate.pipeline.files.ranges import Task
from quorate.pipeline.files.walk import EVERYTHING, LogChunk, RecordSelection, read_range
from quorate.pipeline.fold.rows import MassRows, RowTable
from quorate.pipeline.fold.timeline import BASE_OFFSET
from quorate.pipeline.history.cells import TIMES, RareRecord

#: Records without any state.
_STATELESS: Final = (NoOpRecord, LeaderChangeMessage, SnapshotHeaderRecord, SnapshotFooterRecord)


@dataclass(frozen=True, slots=True)
class ReadTask:
    """The content of a task."""

    #: With a column of times.
    rows: RowTable
    rare: list[RareRecord]
    #: Exclusive; 0 where there is no record of a log.
    end_offset: int


def read_task(task: Task, wanted: RecordSelection) -> ReadTask:
    """Read a task, every check made. Records of a checkpoint get offsets before those of every log, in their order.

    Args:
        wanted: which records of a log are; of a checkpoint all are.

    Raises:
        CorruptBatch, StorageError: as ``walk.read_range``.
    """
    is_base = _is_of_checkpoint(task)
    gathered = _Gathered(BASE_OFFSET if is_base else 0)
    end_offset = 0
    for chunk in (chunk for one in task.ranges for chunk in read_range(one, EVERYTHING if is_base else wanted)):
        gathered.add(chunk)
        end_offset = chunk.end_offset
    return ReadTask(gathered.rows(), gathered.rare, 0 if is_base else end_offset)


def _is_of_checkpoint(task: Task) -> bool:
    return any(one.file.is_checkpoint for one in task.ranges)


class _Gathered:
    def __init__(self, shift: int) -> None:
        self._shift = shift
        self._rows = MassRows()
        self._times: list[tuple[Any, Any]] = []
        self.rare: list[RareRecord] = []

    def add(self, chunk: LogChunk) -> None:
        batches = chunk.batches
        for run, offsets in chunk.runs():
            self._rows.add_run(offsets + self._shift, run)
        self._times.append((batches.base_offsets + self._shift, batches.timestamps))
        for offset, record, version in chunk.records():
            if isinstance(record, (PartitionRecord, PartitionChangeRecord)):
                self._rows.add_record(offset + self._shift, record)
            elif not isinstance(record, _STATELESS):
                at = int(np.searchsorted(batches.base_offsets, offset, "right")) - 1
                self.rare.append(RareRecord(offset + self._shift, int(batches.timestamps[at]), record, version))

    def rows(self) -> RowTable:
        table = self._rows.close()
        bases = _concatenated(bases for bases, _ in self._times)
        times = _concatenated(times for _, times in self._times)
        for part in table.tables:
            part.columns[TIMES] = times[np.searchsorted(bases, part.offsets, "right") - 1]
        return table


def _concatenated(columns: Iterable[Any]) -> Any:
    return np.concatenate([np.empty(0, np.int64), *columns])
