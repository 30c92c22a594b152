"""The digest of a folded state: leaves by the definition in ``snapshots.digest``, values encoded a column at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from hashlib import blake2b
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from quorate.metadata_log.batches.batch import read_frame
from quorate.metadata_log.batches.run_codec import encode_run
from quorate.metadata_log.batches.runs import PartitionRun
from quorate.metadata_log.ids import Uuid
from quorate.metadata_log.records.records import PartitionRecord, TopicRecord
from quorate.metadata_log.records.schema import SCHEMA_OF_CLASS
from quorate.pipeline.fold.elements import Elements
from quorate.pipeline.fold.fields import LISTS, Longs, uuid_bytes
from quorate.snapshots.digest import DIGEST_BYTES, canonical_value, root

_VERSION: Final = SCHEMA_OF_CLASS[PartitionRecord].versions.last
#: Lists that are sets: sorted in a leaf.
_SETS: Final = ("removing_replicas", "adding_replicas", "eligible_leader_replicas", "last_known_elr")
#: Those that are left out where they are empty.
_OPTIONAL: Final = ("eligible_leader_replicas", "last_known_elr")
#: Rows whose values are made at a time: some 10 MB.
_ROWS_AT_ONCE: Final = 65_536
#: An offset delta from which on a million records have deltas of one width, so that all frames are equally long.
_FIRST_DELTA: Final = 8192
#: Each list is shorter than this in a shape's key.
_LENGTH_BITS: Final = 8


def topic_leaves(state: Elements, names: Mapping[Uuid, str]) -> int:
    """The sum of the leaves of some topics, modulo 2^256.

    Args:
        state: all their partitions, by topic and number.
        names: of all the topics, those without partitions too.
    """
    hashes = {
        topic_id: blake2b(canonical_value(TopicRecord(name, topic_id)), digest_size=DIGEST_BYTES)
        for topic_id, name in names.items()
    }
    for first in range(0, len(state), _ROWS_AT_ONCE):
        part = state.take(np.arange(first, min(first + _ROWS_AT_ONCE, len(state))))
        values, ends = partition_values(part)
        for topic_id, begin, end in _stretches(part.topic_ids, ends):
            hashes[topic_id].update(values[begin:end])
    return root(int.from_bytes(state_of_hash.digest(), "big") for state_of_hash in hashes.values())


def _stretches(topic_ids: NDArray[np.uint8], ends: Longs) -> Iterator[tuple[Uuid, int, int]]:
    """Each topic's id, and where the values of its partitions begin and end."""
    is_other = (topic_ids[1:] != topic_ids[:-1]).any(axis=1)
    lasts = np.append(np.flatnonzero(is_other), len(topic_ids) - 1)
    begin = 0
    for row, end in zip(lasts.tolist(), ends[lasts].tolist(), strict=True):
        yield topic_ids[row].tobytes(), begin, end
        begin = end


def partition_values(state: Elements) -> tuple[memoryview, Longs]:
    """The canonical record values of some partitions, one after the other, and where each ends."""
    groups = [(rows, _values(_run(state, rows))) for rows in _by_shape(state)]
    sizes = np.empty(len(state), np.int64)
    for rows, values in groups:
        sizes[rows] = values.shape[1]
    ends: Longs = np.cumsum(sizes)
    joined = np.empty(int(ends[-1]), np.uint8)
    for rows, values in groups:
        size = values.shape[1]
        element = np.dtype(f"V{size}")
        # One element at every byte: a whole value is put at once, wherever it begins.
        places = np.ndarray((len(joined) - size + 1,), element, joined.data, strides=(1,))
        places[ends[rows] - size] = np.ascontiguousarray(values).view(element)[:, 0]
    return joined.data, ends


def _by_shape(state: Elements) -> list[Longs]:
    """The rows of each shape."""
    lengths = np.stack([pc.list_value_length(state.lists[name]).to_numpy() for name in LISTS])
    if int(lengths.max(initial=0)) >= 1 << _LENGTH_BITS:
        keys = np.unique(np.vstack([lengths, state.leader_recovery_state != 0]), axis=1, return_inverse=True)[1].ravel()
    else:
        keys = (state.leader_recovery_state != 0).astype(np.int64)
        for row in lengths:
            keys = keys << _LENGTH_BITS | row
    order = np.argsort(keys, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(keys[order])) + 1)


def _run(state: Elements, rows: Longs) -> PartitionRun:
    """Rows of one shape as the records that a snapshot has for them."""
    columns: dict[str, Any] = {name: _matrix(state.lists[name], rows) for name in LISTS}
    for name in _SETS:
        columns[name] = np.sort(columns[name], axis=1)
    for name in _OPTIONAL:
        if not columns[name].shape[1]:
            columns[name] = None
    recovery = state.leader_recovery_state[rows].astype(np.int8)
    return PartitionRun(
        version=_VERSION,
        topic_ids=state.topic_ids[rows],
        partition_ids=state.partition_ids[rows],
        leader=state.leader[rows],
        leader_epoch=state.leader_epoch[rows],
        partition_epoch=state.partition_epoch[rows],
        leader_recovery_state=recovery if recovery[0] else None,
        **columns,
    )


def _matrix(column: pa.Array, rows: Longs) -> NDArray[Any]:
    flat = column.take(pa.array(rows)).flatten()
    if pa.types.is_fixed_size_binary(flat.type):
        return uuid_bytes(flat).reshape(len(rows), -1, 16) if len(flat) else np.empty((len(rows), 0, 16), np.uint8)
    values = flat.to_numpy()
    return values.reshape(len(rows), -1) if len(values) else np.empty((len(rows), 0), np.int32)


def _values(run: PartitionRun) -> NDArray[np.uint8]:
    """uint8[n, size]: the values of a run's records."""
    framed = encode_run(run, _FIRST_DELTA)
    _, _, _, value_start, value_end = read_frame(framed, 0, len(framed))
    return np.frombuffer(framed, np.uint8).reshape(len(run), -1)[:, value_start:value_end]
