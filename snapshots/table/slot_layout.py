"""From broker ids to slots, for many rows at once.

Here a list column is ``[length, n]``: element by element, contiguous over the rows. Unused places hold ``NO_BROKER``
(ids), ``NO_SLOT`` (slots) or ``NO_DIRECTORY``. The layout is canonical: equal states have equal slots and masks.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from itertools import combinations
from typing import Final

import numpy as np
from numpy.typing import NDArray

from quorate.metadata_log.ids import NO_LEADER
from quorate.metadata_log.limits import PARTITION_SLOTS_MAX
from quorate.snapshots.errors import ReplayError
from quorate.snapshots.table.pages import (
    LIST_COLUMNS,
    MASK_COLUMNS,
    NO_BROKER,
    NO_LEADER_SLOT,
    NO_SLOT,
    AnyColumn,
    mask_type,
)

IntColumn = NDArray[np.int32]

#: The mask of each slot; empty for NO_SLOT.
_BITS: Final = np.array([1 << slot if slot < PARTITION_SLOTS_MAX else 0 for slot in range(256)], np.uint64)


def lowest(masks: NDArray[np.uint64]) -> NDArray[np.int64]:
    """int64[n]: the first slot of each mask, -1 where it is empty."""
    return np.where(masks, np.bitwise_count(~masks & (masks - np.uint64(1))), np.int64(-1))


def preferred_slots(replicas: NDArray[np.uint64]) -> NDArray[np.int64]:
    """int64[n]: the preferred leader among the replicas of each mask, the first as in Kafka; -1: there are none.

    Whoever asks who is preferred, asks here, or for what this makes of partitions as they are stored.
    """
    return lowest(replicas)


#: The preferred leader of a stored partition, whose replicas are its first slots.
PREFERRED_SLOT: Final = int(preferred_slots(~np.zeros(1, np.uint64))[0])


@dataclass(frozen=True, slots=True)
class IdColumns:
    """The brokers of n partitions by id: lists and sets are ``[length, n]``."""

    replicas: IntColumn
    #: Codes; as long as ``replicas``.
    directories: IntColumn
    isr: IntColumn
    elr: IntColumn
    last_known_elr: IntColumn
    adding: IntColumn
    removing: IntColumn
    #: [n]; -1 = none.
    leader: IntColumn

    def take(self, rows: NDArray[np.int64]) -> IdColumns:
        """The same for some of the rows."""
        return IdColumns(**{field.name: getattr(self, field.name)[..., rows] for field in fields(self)})


def lay_out(ids: IdColumns) -> dict[str, AnyColumn]:
    """The list [width, n], set, leader and count columns [n] of a page for these rows, as wide as the widest needs.

    Raises:
        ReplayError: a list names a broker twice, or a row has more than 64 slots.
    """
    _check_width(len(ids.replicas))
    is_ragged = ids.replicas.min(initial=0) == NO_BROKER
    for first, second in combinations(ids.replicas, 2):
        is_equal = first == second
        if is_equal.any() and (not is_ragged or (first[is_equal] != NO_BROKER).any()):
            raise ReplayError("the replicas of a partition name a broker twice")
    placer = SlotPlacer(ids.replicas)
    columns = _place(placer, ids)
    counts = (ids.replicas != NO_BROKER).sum(axis=0) if is_ragged else np.full(len(ids.leader), len(ids.replicas))
    columns["replica_counts"] = counts.astype(np.uint8)
    if placer.unplaced.any():
        rows = np.flatnonzero(placer.unplaced)
        others = ids.take(rows)
        slots = _slots_with_others(others, counts[rows])
        _merge(columns, rows, _place(SlotPlacer(slots), others))
        is_ragged = True
    return _trimmed(columns) if is_ragged or not len(ids.replicas) else columns


class SlotPlacer:
    """Finds the slots of brokers in rows whose slots are given; remembers the rows where one has none."""

    def __init__(self, slots: IntColumn) -> None:
        self.slots = slots
        self._mask_type = mask_type(len(slots))
        #: bool[n]
        self.unplaced = np.zeros(slots.shape[1], np.bool_)

    def find(self, ids: IntColumn) -> NDArray[np.uint8]:
        """uint8[n]: the slot of one broker a row; NO_SLOT for NO_BROKER and where there is none."""
        found = np.full(len(ids), NO_SLOT, np.uint8)
        for slot, brokers in enumerate(self.slots):
            np.putmask(found, brokers == ids, slot)
        is_unused = ids == NO_BROKER
        found[is_unused] = NO_SLOT
        self.unplaced |= (found == NO_SLOT) & ~is_unused
        return found

    def _is_in(self, slot: int, ids: IntColumn) -> bool:
        """Whether the brokers are in this slot in every row, as those of a full ISR often are."""
        return slot < len(self.slots) and bool((self.slots[slot] == ids).all()) and ids.min(initial=0) != NO_BROKER

    def order_and_mask(self, ids: IntColumn) -> tuple[NDArray[np.uint8], AnyColumn]:
        """Slots and set of lists ``[k, n]``.

        Raises:
            ReplayError: a list names a broker twice.
        """
        order = np.empty(ids.shape, np.uint8)
        mask = np.zeros(ids.shape[1], self._mask_type)
        bits = _BITS.astype(self._mask_type)
        is_in_order = True
        for place, brokers in enumerate(ids):
            if self._is_in(place, brokers):
                order[place] = place
                mask |= bits[place]
            else:
                is_in_order = False
                order[place] = self.find(brokers)
                mask |= bits[order[place]]
        if not is_in_order and (np.bitwise_count(mask) != (order != NO_SLOT).sum(axis=0, dtype=np.uint8)).any():
            raise ReplayError("a list of brokers names one twice")
        return order, mask

    def leader(self, ids: IntColumn) -> NDArray[np.int8]:
        """int8[n]: the leader's slot; -1 where there is none."""
        if self._is_in(0, ids) and (ids != NO_LEADER).all():
            return np.zeros(len(ids), np.int8)
        slots = self.find(np.where(ids == NO_LEADER, np.int32(NO_BROKER), ids))
        return slots.view(np.int8)  # NO_SLOT becomes NO_LEADER_SLOT

    def rows_with_others(self, replica_counts: AnyColumn) -> NDArray[np.bool_]:
        """bool[n]: rows with slots behind their replicas."""
        has_others: NDArray[np.bool_] = (self.slots != NO_BROKER).sum(axis=0) > replica_counts
        return has_others


assert np.uint8(NO_SLOT).view(np.int8) == NO_LEADER_SLOT


def _check_width(width: int) -> None:
    if width > PARTITION_SLOTS_MAX:
        raise ReplayError(f"a partition mentions {width} brokers, more than {PARTITION_SLOTS_MAX}")


def _place(placer: SlotPlacer, ids: IdColumns) -> dict[str, AnyColumn]:
    width = len(placer.slots)
    order, isr = placer.order_and_mask(ids.isr)
    columns: dict[str, AnyColumn] = {
        "slots": placer.slots,
        "directories": resized("directories", ids.directories, width),
        "isr_order": resized("isr_order", order, width),
        "isr": isr,
    }
    for name in MASK_COLUMNS[1:]:
        _, columns[name] = placer.order_and_mask(getattr(ids, name))
    columns["leader_slots"] = placer.leader(ids.leader)
    return columns


def _slots_with_others(ids: IdColumns, counts: NDArray[np.int64]) -> IntColumn:
    """Slots of rows that mention more than their replicas: behind the replicas the others, by id."""
    leader = np.where(ids.leader == NO_LEADER, np.int32(NO_BROKER), ids.leader)[None]
    others = np.concatenate([ids.isr, ids.elr, ids.last_known_elr, ids.adding, ids.removing, leader])
    for replica in ids.replicas:
        others[others == replica] = NO_BROKER
    others.sort(axis=0)
    others[1:][others[1:] == others[:-1]] = NO_BROKER
    others.sort(axis=0)  # now by id, unused places first
    other_counts = (others != NO_BROKER).sum(axis=0)
    width = int((counts + other_counts).max())
    _check_width(width)
    slots = np.full((width, len(counts)), NO_BROKER, np.int32)
    shared = min(width, len(ids.replicas))
    slots[:shared] = ids.replicas[:shared]
    for back in range(int(other_counts.max())):  # from the highest id down
        rows = np.flatnonzero(other_counts > back)
        slots[(counts + other_counts)[rows] - 1 - back, rows] = others[-1 - back, rows]
    return slots


def _merge(columns: dict[str, AnyColumn], rows: NDArray[np.int64], changed: dict[str, AnyColumn]) -> None:
    """Put the columns of some rows into those of all."""
    width = max(len(columns["slots"]), len(changed["slots"]))
    for name, values in changed.items():
        column = columns[name]
        if name in LIST_COLUMNS:
            column, values = resized(name, column, width).copy(), resized(name, values, width)
        else:
            column = column.astype(np.promote_types(column.dtype, values.dtype))
        column[..., rows] = values
        columns[name] = column


def _trimmed(columns: dict[str, AnyColumn]) -> dict[str, AnyColumn]:
    is_used = (columns["slots"] != NO_BROKER).any(axis=1)
    width = max(1, int(np.flatnonzero(is_used).max(initial=0)) + 1)
    if width < len(is_used) or len(is_used) == 0:
        for name in LIST_COLUMNS:
            columns[name] = resized(name, columns[name], width)
    return columns


def resized(name: str, column: AnyColumn, width: int) -> AnyColumn:
    """A list column [width, n] cut or filled up to ``width`` places; itself if it is as wide."""
    if len(column) == width:
        return column
    kind, fill = LIST_COLUMNS[name]
    wide = np.full((width, column.shape[1]), fill, kind)
    shared = min(width, len(column))
    wide[:shared] = column[:shared]
    return wide
