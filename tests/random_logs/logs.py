"""Random logs with transactions, as bytes, and the naive state at every offset of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import deepcopy
from random import Random
from typing import Any

from quorate.metadata_log.batches.batch import BatchHeader, data_batch, parse_header, place_batch
from quorate.metadata_log.records import records as r
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
            timed = data_batch([(one.record, one.version) for one in map(versioned, records)], 7 + offset)
            data = place_batch(timed, offset, 1 + offset // 200)
            found.append((parse_header(data), data))
            offset += len(records)
    return found


def random_cuts(chance: Random, batches: Sequence[Batch]) -> Iterator[Sequence[Batch]]:
    """The batches in tasks of any length."""
    while batches:
        count = chance.choice((1, 1, 2, 3, 8, len(batches)))
        yield batches[:count]
        batches = batches[count:]


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
