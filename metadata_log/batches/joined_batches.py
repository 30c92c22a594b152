"""Consecutive batches read as one, for whoever asks for none of the states between them.

A batch of scattered changes of partitions has some shapes of records, and each of them costs what a run costs or, where
it has few records, what these cost one by one. Read together, a hundred such batches have hardly more runs than a few.

Records move past each other only where that means nothing: changes of partitions past those of others, and past records
that are about no partition and no topic. The changes of one partition keep their order, in layers: the first of each
partition come before the second of each.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, pairwise
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from quorate.metadata_log.batches.batch import HEADER_BYTES, BatchHeader, parse_header
from quorate.metadata_log.batches.gathering import MASS_BYTES_MIN, RUN_ROWS_MIN, gather_numbered_runs, partition_keys
from quorate.metadata_log.batches.record_index import Positions, RecordIndex, RecordWalk
from quorate.metadata_log.batches.runs import BatchItem, ByteColumn, PartitionChangeRun
from quorate.metadata_log.records import records as r
from quorate.metadata_log.records.codec import decode_value_at
from quorate.metadata_log.records.records import VersionedRecord
from quorate.metadata_log.records.schema import SCHEMA_OF_CLASS
from quorate.metadata_log.records.wire import Buffer

#: Records of a batch from which on it gains nothing by company; and where they are all as long, so that its runs lie
#: there as a whole.
_RECORDS_APART: Final = 4096
_EQUAL_RECORDS_APART: Final = 1024
#: Records of batches in a row below which they are no gain together.
_JOINED_RECORDS_MIN: Final = 64
#: A version below it is one byte, as we and Kafka write it, and the partition's number lies behind it.
_LONG_VARINT: Final = 0x80
_VERSION_AT: Final = 2

#: By type id: records that are about no partition and no topic, so that a change of a partition may pass them.
_IS_PASSED: Final = np.zeros(256, np.bool_)
_IS_PASSED[
    [
        SCHEMA_OF_CLASS[passed].type_id
        for passed in (
            r.RegisterBrokerRecord,
            r.UnregisterBrokerRecord,
            r.FenceBrokerRecord,
            r.UnfenceBrokerRecord,
            r.BrokerRegistrationChangeRecord,
            r.RegisterControllerRecord,
            r.ConfigRecord,
            r.ClientQuotaRecord,
            r.ProducerIdsRecord,
            r.AccessControlEntryRecord,
            r.RemoveAccessControlEntryRecord,
            r.UserScramCredentialRecord,
            r.RemoveUserScramCredentialRecord,
            r.DelegationTokenRecord,
            r.RemoveDelegationTokenRecord,
            r.NoOpRecord,
        )
    ]
] = True


class JoinedBatches(NamedTuple):
    """Some batches in a row, by their numbers, and what replays as they do."""

    first: int
    #: Exclusive.
    end: int
    #: As many records as they have. None: it is one batch, to be read by itself.
    items: list[BatchItem] | None


def join_batches(batches: Sequence[Buffer]) -> Iterator[JoinedBatches]:
    """The batches, as far as they can be read together; the caller has checked their CRCs.

    Raises:
        MalformedData, UnsupportedRecord: of one of them, which is not said.
    """
    data = b"".join(batches)
    headers = [parse_header(batch) for batch in batches]
    walk, position, rows = RecordWalk(data), 0, [0]
    apart = {number for number, header in enumerate(headers) if _is_apart(header)}
    for number, header in enumerate(headers):
        is_walked = number not in apart
        if is_walked:
            walk.batch(position + HEADER_BYTES, position + header.size, header.record_count)
        rows.append(rows[-1] + is_walked * header.record_count)
        position += header.size
    if rows[-1] < _JOINED_RECORDS_MIN:
        yield from _by_themselves(range(len(batches)))
        return
    index = walk.index()
    changes = _are_changes(data, index)
    barriers = np.flatnonzero(~(changes | _IS_PASSED[index.types]))
    apart.update((np.searchsorted(rows, barriers, side="right") - 1).tolist())
    apart.update(_equal_ones(index, rows))
    for is_joined, group in groupby(range(len(batches)), lambda number: number not in apart):
        numbers = list(group)
        stretch = slice(rows[numbers[0]], rows[numbers[-1] + 1])
        if is_joined and len(numbers) > 1 and stretch.stop - stretch.start >= _JOINED_RECORDS_MIN:
            yield JoinedBatches(numbers[0], numbers[-1] + 1, _items(data, index, changes, stretch))
        else:
            yield from _by_themselves(numbers)


def _by_themselves(numbers: Iterable[int]) -> Iterator[JoinedBatches]:
    return (JoinedBatches(number, number + 1, None) for number in numbers)


def _is_apart(header: BatchHeader) -> bool:
    # Of a control batch each record has a key, or is to be refused.
    return header.is_control or header.record_count >= _RECORDS_APART


def _are_changes(data: bytes, index: RecordIndex) -> npt.NDArray[np.bool_]:
    """bool[n]: the changes of partitions, as far as they name theirs where it is looked for."""
    array: ByteColumn = np.frombuffer(data, np.uint8)
    are_changes: npt.NDArray[np.bool_] = index.types == PartitionChangeRun.TYPE_ID
    are_changes &= index.value_sizes >= MASS_BYTES_MIN
    are_changes &= array.take(index.value_starts + _VERSION_AT, mode="clip") < _LONG_VARINT
    return are_changes


def _equal_ones(index: RecordIndex, rows: Sequence[int]) -> Iterator[int]:
    """The numbers of batches of many records that are all as long."""
    for number, (first, end) in enumerate(pairwise(rows)):
        if end - first >= _EQUAL_RECORDS_APART and np.ptp(index.value_sizes[first:end]) == 0:
            yield number


def _items(data: bytes, index: RecordIndex, changes: npt.NDArray[np.bool_], stretch: slice) -> list[BatchItem]:
    """The records of a stretch of the index: all that changes pass, in their order, and then the changes."""
    starts, sizes, is_change = index.value_starts[stretch], index.value_sizes[stretch], changes[stretch]
    items: list[BatchItem] = list(_records(data, starts[~is_change], sizes[~is_change]))
    if is_change.any():
        items += _changes(data, starts[is_change], sizes[is_change])
    return items


def _changes(data: bytes, starts: Positions, sizes: Positions) -> Iterator[BatchItem]:
    array: ByteColumn = np.frombuffer(data, np.uint8)
    occurrence = _occurrences(partition_keys(array, starts))
    # No layer is smaller than the next one: there is no second change without a first.
    lengths = np.bincount(occurrence)
    ends = np.cumsum(lengths[lengths >= RUN_ROWS_MIN])
    done = 0
    for layer in np.split(np.argsort(occurrence, kind="stable"), ends)[:-1]:
        runs, left = gather_numbered_runs(array, starts[layer], sizes[layer])
        few = [numbers for run, numbers in runs if len(run) < RUN_ROWS_MIN]
        yield from (run for run, _ in runs if len(run) >= RUN_ROWS_MIN)
        alone = layer[np.concatenate([np.array(left, np.int64), *few])]
        yield from _records(data, starts[alone], sizes[alone])
        done += 1
        if 2 * len(alone) > len(layer):
            break  # Of too many shapes; and so are the layers behind it, which are no larger.
    rest = np.flatnonzero(occurrence >= done)
    yield from _records(data, starts[rest], sizes[rest])


def _occurrences(keys: npt.NDArray[np.uint64]) -> Positions:
    """int64[n]: how many rows with the same key come before each."""
    in_order = np.argsort(keys, kind="stable")
    is_first = np.ones(len(keys), np.bool_)
    is_first[1:] = keys[in_order[1:]] != keys[in_order[:-1]]
    firsts = np.flatnonzero(is_first)
    occurrence = np.empty(len(keys), np.int64)
    occurrence[in_order] = np.arange(len(keys)) - np.repeat(firsts, np.diff(firsts, append=len(keys)))
    return occurrence


def _records(data: bytes, starts: Positions, sizes: Positions) -> Iterator[VersionedRecord]:
    for start, end in zip(starts.tolist(), (starts + sizes).tolist(), strict=True):
        yield decode_value_at(data, start, end)
