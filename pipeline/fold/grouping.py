"""Rows of one partition brought together, in order."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from quorate.metadata_log.batches.runs import ByteColumn
from quorate.metadata_log.ids import Uuid
from quorate.pipeline.fold.fields import Ints, Longs

#: Odd multipliers that spread ids over 64 bits.
_TOPIC_FACTORS: Final = (np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F))
_PARTITION_FACTOR: Final = np.uint64(0xD6E8FEB86659FD93)
_HALF: Final = np.uint64(32)


def topic_hashes(topic_ids: ByteColumn) -> NDArray[np.uint64]:
    """A number for each topic id of uint8[n, 16]; equal ids have equal ones."""
    halves = np.ascontiguousarray(topic_ids).view(np.uint64)
    mixed: NDArray[np.uint64] = (halves[:, 0] * _TOPIC_FACTORS[0]) ^ (halves[:, 1] * _TOPIC_FACTORS[1])
    return mixed ^ mixed >> np.uint64(29)


def topic_codes(topic_ids: ByteColumn) -> Ints:
    """Each row's topic as a number from 0 on, in the order in which topics occur first."""
    return partition_codes(topic_ids, np.zeros(len(topic_ids), np.int32))


def partition_codes(topic_ids: ByteColumn, partition_ids: Ints) -> Ints:
    """Each row's partition as a number from 0 on, in the order in which partitions occur first."""
    if not len(partition_ids):
        return np.empty(0, np.int32)
    hashes = topic_hashes(topic_ids) ^ (partition_ids.astype(np.uint64) * _PARTITION_FACTOR)
    codes = _codes(pa.array(hashes))
    # Two partitions of one hash are unlikely; where it happens they are told apart by the ids themselves.
    one_of = np.empty(int(codes.max()) + 1, np.int64)
    one_of[codes] = np.arange(len(codes))
    representative = one_of[codes]
    is_same = partition_ids[representative] == partition_ids
    halves = np.ascontiguousarray(topic_ids).view(np.uint64)
    for half in (halves[:, 0], halves[:, 1]):
        is_same &= half[representative] == half
    return codes if is_same.all() else _codes_by_ids(topic_ids, partition_ids)


def ids_by_code(topic_ids: ByteColumn, codes: Ints) -> list[Uuid]:
    """The topic ids that ``topic_codes`` has given numbers."""
    one_of = np.empty(int(codes.max(initial=-1)) + 1, np.int64)
    one_of[codes] = np.arange(len(codes))
    return [row.tobytes() for row in topic_ids[one_of]]


def _codes_by_ids(topic_ids: ByteColumn, partition_ids: Ints) -> Ints:
    keys = np.empty((len(partition_ids), 20), np.uint8)
    keys[:, :16] = topic_ids
    keys[:, 16:] = partition_ids.astype(">i4").view(np.uint8).reshape(-1, 4)
    return _codes(pa.Array.from_buffers(pa.binary(20), len(keys), [None, pa.py_buffer(keys)]))


def _codes(values: pa.Array) -> Ints:
    codes: Ints = values.dictionary_encode().indices.to_numpy()
    return codes


def order_by(codes: Ints, offsets: Longs) -> Longs:
    """The rows by code, and those of one code by offset. Offsets of one code are all different."""
    if not len(codes):
        return np.empty(0, np.int64)
    first = int(offsets.min())
    if int(offsets.max()) - first >= 1 << 32:
        return np.lexsort((offsets, codes)).astype(np.int64)
    # One number for both sorts many times faster than two columns do.
    keys = codes.astype(np.uint64) << _HALF | (offsets - first).astype(np.uint64)
    return np.argsort(keys).astype(np.int64)
