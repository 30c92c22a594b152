"""Random logs with transactions, as bytes, and the naive state at every offset of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from copy import deepcopy
from random import Random
from typing import Any

import numpy as np

from quorate.metadata_log.batches.batch import BatchHeader, data_batch, iter_records, parse_header, place_batch
from quorate.metadata_log.batches.columns import decode_batch
from quorate.metadata_log.batches.runs import BatchItem
from quorate.metadata_log.records import records as r
from quorate.metadata_log.records.records import VersionedRecord
from quorate.pipeline.fold.state import FoldedState, state_at
from quorate.pipeline.fold.task import FoldedTask, TaskFold
from quorate.snapshots.digest import digest_bytes, entry_leaf, root, topic_leaf
from tests.image_model import NaiveImage
from tests.record_stream import RecordStream, versioned

Batch = tuple[BatchHeader, bytes]


def random_records(chance: Random, operations: int) -> list[list[Any]]:
    """Operations one after another, some in transactions: ended, aborted, or open at the end."""
    stream = RecordStream(chance)
    found: list[list[Any]] = []
    while operations > 0:
        count = chance.randint(1, min(6, operations))
        operations -= count
        if chance.random() < 0.6:
            found += stream.operations(count)
            continue
        before = deepcopy(stream.model)
        found.append([r.BeginTransactionRecord("t")])
        found += stream.operations(count)
        if operations == 0 and chance.random() < 0.5:
            break
        if chance.random() < 0.5:
            found.append([r.EndTransactionRecord()])
        else:
            found.append([r.AbortTransactionRecord("no")])
            stream.model = before
    return found


def batches_of(chance: Random, operations: Sequence[list[Any]]) -> list[Batch]:
    """The operations in batches of one or a few."""
    found: list[Batch] = []
    offset = at = 0
    while at < len(operations):
        count = chance.choice((1, 1, 1, 2, 5))
        records = [record for operation in operations[at : at + count] for record in operation]
        at += count
        if records:
            data = place_batch(data_batch([(one.record, one.version) for one in map(versioned, records)], 7), offset, 1)
            found.append((parse_header(data), data))
            offset += len(records)
    return found


def random_cuts(chance: Random, batches: Sequence[Batch]) -> Iterator[Sequence[Batch]]:
    """The batches in tasks of any length."""
    while batches:
        count = chance.choice((1, 1, 2, 3, 8, len(batches)))
        yield batches[:count]
        batches = batches[count:]


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


class NaiveLog:
    """The state after one record after another: transactions by copies of everything."""

    def __init__(self) -> None:
        self.stable = NaiveImage()
        self._pending: NaiveImage | None = None

    def apply(self, record: Any) -> None:
        if isinstance(record, r.BeginTransactionRecord):
            self._pending = deepcopy(self.stable)
        elif isinstance(record, r.EndTransactionRecord):
            assert self._pending is not None
            self.stable, self._pending = self._pending, None
        elif isinstance(record, r.AbortTransactionRecord):
            self._pending = None
        else:
            (self._pending or self.stable).apply(record)


def naive_digest(records: Sequence[Any]) -> bytes:
    """The digest by its definition, of the records that a snapshot has."""
    partitions: dict[bytes, list[r.PartitionRecord]] = {}
    for record in records:
        if isinstance(record, r.PartitionRecord):
            partitions.setdefault(record.topic_id, []).append(record)
    leaves = [
        topic_leaf(record, partitions.get(record.topic_id, ()))
        if isinstance(record, r.TopicRecord)
        else entry_leaf(record)
        for record in records
        if not isinstance(record, r.PartitionRecord)
    ]
    return digest_bytes(root(leaves))
