"""n partitions as columns: what rules over partitions are given to work on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from quorate.metadata_log.ids import NO_LEADER
from quorate.snapshots.table.pages import NO_SLOT, Rows

#: Ids between the least and the greatest of some brokers up to which each has a place in a table.
_TABLE_MAX: Final = 4_096

Masks = NDArray[np.uint64]
Ints = NDArray[np.int32]


@dataclass(frozen=True, slots=True, eq=False)
class PartitionColumns:
    """Copies of the columns of n rows, in the order in which the rows were asked for.

    ``w`` is the number of slots of the widest row, or more. Lists are indexed ``[row, slot]``; in memory the column of
    each slot is contiguous, so loops over slots are fast and reductions along a row are not.
    """

    #: Positions in the table they were gathered from.
    rows: Rows
    #: uint8[n, 16]
    topic_ids: NDArray[np.uint8]
    #: int32[n]; -1 = the row holds no partition.
    partition_ids: Ints
    #: int32[n, w]: broker ids. The replicas in order, then others by id; ``NO_BROKER`` in unused slots.
    slots: Ints
    #: int64[n]: the first slots that are replicas.
    replica_counts: NDArray[np.int64]
    #: int32[n, w]: codes of the table's directory dictionary; -1 where the slot is no replica.
    directories: Ints
    #: uint8[n, w]: the ISR as slots, in its order, padded with 255.
    isr_order: NDArray[np.uint8]
    #: uint64[n] each: sets as masks over the slots.
    isr: Masks
    elr: Masks
    #: A slot of it may hold -1.
    last_known_elr: Masks
    adding: Masks
    removing: Masks
    #: int64[n]: slot of the leader, -1 = none.
    leader_slots: NDArray[np.int64]
    leader_epochs: Ints
    partition_epochs: Ints
    #: int8[n]: 0 = recovered, 1 = recovering.
    recovery_states: NDArray[np.int8]

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def width(self) -> int:
        """w."""
        return int(self.slots.shape[1])

    @property
    def replicas(self) -> Masks:
        """uint64[n]: the replicas as masks."""
        counts = self.replica_counts.astype(np.uint64)
        return ~(~np.uint64(0) << counts)  # numpy shifts by 64 to 0

    @property
    def leaders(self) -> Ints:
        """int32[n]: broker ids of the leaders, -1 = none."""
        # Slot by slot, as they lie in memory: picked from as one flat column, which is several times faster.
        at = np.maximum(self.leader_slots, 0)
        at *= len(at)
        at += np.arange(len(at))
        brokers = self.slots.T.reshape(-1).take(at)
        return np.where(self.leader_slots < 0, np.int32(NO_LEADER), brokers)

    def slots_in(self, brokers: NDArray[np.integer] | Sequence[int]) -> Masks:
        """uint64[n]: the slots whose broker is one of ``brokers``, replica or not."""
        wanted = np.sort(np.asarray(brokers, np.int32))
        masks = np.zeros(len(self), np.uint64)
        if len(wanted):
            for slot in range(self.width):
                masks |= _is_among(self.slots[:, slot], wanted).astype(np.uint64) << np.uint64(slot)
        return masks

    def ids_in(self, masks: Masks) -> list[tuple[int, ...]]:
        """For each row the brokers of a set, sorted. For few rows: it makes Python objects."""
        flags = (masks[:, None] >> np.arange(self.width, dtype=np.uint64)) & np.uint64(1)
        return [tuple(sorted(ids[flag].tolist())) for ids, flag in zip(self.slots, flags.astype(bool), strict=True)]

    def isr_ids(self) -> list[tuple[int, ...]]:
        """For each row the ISR in its order. For few rows: it makes Python objects."""
        return [
            tuple(ids[order[order != NO_SLOT]].tolist()) for ids, order in zip(self.slots, self.isr_order, strict=True)
        ]


def _is_among(ids: NDArray[np.int32], wanted: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Whether each is among some that ascend; there is one at least."""
    low, span = wanted[0], int(wanted[-1]) - int(wanted[0]) + 1
    is_wanted: NDArray[np.bool_]
    if span == 1:
        is_wanted = ids == low
    elif span > _TABLE_MAX:
        is_wanted = wanted[np.searchsorted(wanted[:-1], ids)] == ids  # never beyond the last one
    else:  # a tenth of the time
        table = np.zeros(span + 1, np.bool_)
        table[wanted - low] = True
        # What is below the least wraps around, and so lies beyond the end, too.
        is_wanted = table.take(np.minimum((ids - low).view(np.uint32), np.uint32(span)))
    return is_wanted
