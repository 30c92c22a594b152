"""From what changes in n partitions to PartitionChangeRecords, as runs: one per shape, no object per partition."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from quorate.controller.partitions.columns import (
    LAST_KNOWN_LEADER,
    LAST_KNOWN_MEMBERS,
    NO_SLOT,
    Flags,
    Ints,
    Masks,
    Orders,
    PartitionChanges,
    Slots,
    slots_of,
)
from quorate.metadata_log.batches.runs import PartitionChangeRun
from quorate.metadata_log.ids import NO_LEADER

#: Above every broker id: sorts behind them.
_AFTER_ALL: Final = np.int32(2**31 - 1)
#: Bits of a length in the number of a shape: 0 = absent, else length + 1, up to 64 slots.
_LENGTH_BITS: Final = 7


@dataclass(frozen=True, slots=True)
class PartitionNames:
    """The topics and partitions that n rows are about."""

    #: uint8[n, 16]
    topic_ids: NDArray[np.uint8]
    #: int32[n]
    partition_ids: Ints
    #: int32[n, w]: the broker of each slot.
    brokers: Ints
    #: int32[n]: who leads before the change; -1 = nobody.
    leaders: Ints


def change_runs(
    names: PartitionNames,
    changes: PartitionChanges,
    directory_ids: NDArray[np.uint8],
    version: int,
    kinds: NDArray[np.int64] | None = None,
) -> list[PartitionChangeRun]:
    """The records of all rows that change, grouped by shape and in row order within a shape.

    Args:
        directory_ids: uint8[d, 16], the id of every directory code.
        version: of the record.
        kinds: int64[n], the row of ``changes`` that says what changes in each row, -1 = nothing; None = the row itself.
    """
    shapes = np.where(changes.has_change, _shapes(changes), -1)
    distinct = _distinct(shapes)
    if kinds is not None:
        shapes = np.append(shapes, -1).take(kinds)  # the last one for -1
    runs = []
    for shape in distinct:
        rows = np.flatnonzero(shapes == shape)
        if not len(rows):
            continue
        decided = rows if kinds is None else kinds.take(rows)
        runs.append(_run(names, rows, changes, decided, directory_ids, version))
    return runs


def _distinct(shapes: Slots) -> list[int]:
    """Ascending, without the rows that do not change."""
    if len(shapes) and (shapes == shapes[0]).all():  # as in most requests
        return [int(shapes[0])] if shapes[0] >= 0 else []
    return sorted(shape for shape in set(shapes.tolist()) if shape >= 0)


def _shapes(changes: PartitionChanges) -> Slots:
    """One number per row, equal where the records have the same fields with the same lengths."""
    replica_counts = np.bitwise_count(changes.replicas)
    lengths = (
        (changes.has_isr, (changes.isr_order != NO_SLOT).sum(axis=1)),
        (changes.has_elr, np.bitwise_count(changes.elr)),
        (changes.last_known_kind == LAST_KNOWN_MEMBERS, np.bitwise_count(changes.last_known_elr)),
        (changes.has_replicas, replica_counts),
        (changes.has_removing, np.bitwise_count(changes.removing)),
        (changes.has_adding, np.bitwise_count(changes.adding)),
        (changes.has_directories, replica_counts),
    )
    shape = changes.last_known_kind * 4 + changes.has_leader * 2 + changes.has_recovery
    for present, length in lengths:
        shape = (shape << _LENGTH_BITS) + np.where(present, length.astype(np.int64) + 1, 0)
    return shape


def _run(
    names: PartitionNames,
    rows: NDArray[np.intp],
    changes: PartitionChanges,
    decided: NDArray[np.intp],
    directory_ids: NDArray[np.uint8],
    version: int,
) -> PartitionChangeRun:
    """The run of some rows, all of the first one's shape; the ``decided`` rows of ``changes`` say what changes."""
    first = decided[0]
    # Slot by slot, as they lie in memory: whole columns are copied and picked from, never one row.
    brokers = np.ascontiguousarray(names.brokers.T).take(rows, axis=1)
    replica_count = int(np.bitwise_count(changes.replicas[first]))

    def members(masks: Masks) -> Ints:
        return _sorted_ids(brokers, slots_of(masks.take(decided), len(brokers)))

    has_replicas = bool(changes.has_replicas[first])
    has_directories = bool(changes.has_directories[first])
    last_known = None
    if changes.last_known_kind[first] == LAST_KNOWN_LEADER:
        last_known = names.leaders.take(rows)[:, None]
    elif changes.last_known_kind[first] == LAST_KNOWN_MEMBERS:
        last_known = members(changes.last_known_elr)
    return PartitionChangeRun(
        version=version,
        topic_ids=names.topic_ids.take(rows, axis=0),
        partition_ids=names.partition_ids.take(rows),
        isr=_isr(brokers, changes.isr_order, decided) if changes.has_isr[first] else None,
        leader=_leaders(brokers, changes.leader.take(decided)) if changes.has_leader[first] else None,
        replicas=_listed(brokers, slots_of(changes.replicas.take(decided), len(brokers))) if has_replicas else None,
        removing_replicas=members(changes.removing) if changes.has_removing[first] else None,
        adding_replicas=members(changes.adding) if changes.has_adding[first] else None,
        leader_recovery_state=changes.is_recovering.take(decided).astype(np.int8)
        if changes.has_recovery[first]
        else None,
        directories=directory_ids[changes.directories[decided, :replica_count]] if has_directories else None,
        eligible_leader_replicas=members(changes.elr) if changes.has_elr[first] else None,
        last_known_elr=last_known,
    )


def _picked(brokers: Ints, slots: NDArray[np.int64]) -> Ints:
    """int32[n]: the broker in one slot of each row; ``brokers`` is int32[w, n]."""
    count = brokers.shape[1]
    picked: Ints = brokers.reshape(-1).take(slots * count + np.arange(count))
    return picked


def _leaders(brokers: Ints, slots: Slots) -> Ints:
    return np.where(slots >= 0, _picked(brokers, np.maximum(slots, 0)), np.int32(NO_LEADER))


def _isr(brokers: Ints, order: Orders, decided: NDArray[np.intp]) -> Ints:
    length = int((order[decided[0]] != NO_SLOT).sum())
    isr = np.empty((len(decided), length), np.int32)
    for place in range(length):
        isr[:, place] = _picked(brokers, order[:, place].take(decided).astype(np.int64))
    return isr


def _listed(brokers: Ints, members: Flags) -> Ints:
    """The brokers of the flagged slots in slot order; every row has as many as the first."""
    return brokers.T[members].reshape(len(members), int(members[0].sum()))


def _sorted_ids(brokers: Ints, members: Flags) -> Ints:
    """The brokers of a set, ascending as Kafka writes them; every row has as many as the first."""
    length = int(members[0].sum())
    if not length:
        return np.empty((len(members), 0), np.int32)
    if length == 1:
        return _picked(brokers, members.argmax(axis=1))[:, None]
    return np.sort(np.where(members, brokers.T, _AFTER_ALL), axis=1)[:, :length]
