"""Columns of n partitions as the rules see them: what they are, what is asked of them, what changes.

A row's brokers stand in *slots*: its (target) replicas in list order, then any other broker that one of its sets
mentions. Sets are 64-bit masks over the slots, so the lowest set bit is the first in replica order. Lists whose
order means something are rows of slots, padded with ``NO_SLOT``. A leader is a slot; -1 is no leader.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

#: uint64[n], a set of slots per row.
Masks = NDArray[np.uint64]
#: int64[n], one slot or one small number per row.
Slots = NDArray[np.int64]
#: uint8[n, w], a list of slots per row.
Orders = NDArray[np.uint8]
#: bool[n] or bool[n, w].
Flags = NDArray[np.bool_]
#: int32[n, w].
Ints = NDArray[np.int32]

#: Padding of a list of slots.
NO_SLOT: Final = 255
#: Padding of a list of directory codes or broker ids that came out of ``compact``.
PADDING: Final = -1

#: The leader stays if it may; otherwise the first in-sync (or eligible) replica.
ELECT_ONLINE: Final = 0
#: The first replica if it is in sync; otherwise as ``ELECT_ONLINE``.
ELECT_PREFERRED: Final = 1
#: As ``ELECT_ONLINE``; otherwise any acceptable replica, whatever it may have missed.
ELECT_UNCLEAN: Final = 2

#: What happens to the last known ELR: nothing, it becomes a set (which may be empty), or it becomes the leader that was
#: just lost (which may be -1, and then has no slot).
LAST_KNOWN_KEPT: Final = 0
LAST_KNOWN_MEMBERS: Final = 1
LAST_KNOWN_LEADER: Final = 2

ONE: Final = np.uint64(1)
EMPTY: Final = np.uint64(0)


@dataclass(frozen=True, slots=True)
class PartitionRows:
    """n partitions as they are."""

    replicas: Masks
    isr: Masks
    #: The ISR in its order.
    isr_order: Orders
    removing: Masks
    adding: Masks
    elr: Masks
    #: May hold a slot that stands for broker -1; no other column does.
    last_known_elr: Masks
    leader: Slots
    is_recovering: Flags
    #: Directory of each slot that is a replica: any code that is equal for equal directories and is not negative.
    directories: Ints
    #: The replicas in their order; None = in slot order in every row.
    replica_order: Orders | None = None


@dataclass(frozen=True, slots=True)
class PartitionTargets:
    """The targets for the rows of a ``PartitionRows``, and their limits. None = as the partition has it."""

    #: Slots that may lead: active brokers whose directory for this partition is online.
    acceptable: Masks
    #: Effective ``min.insync.replicas``, never above the replication factor.
    min_isr: Slots
    #: ELECT_* per row.
    election: Slots
    isr: Masks | None = None
    #: An order that contains the target ISR; what else it holds is skipped. None = the order of the present ISR.
    isr_order: Orders | None = None
    #: The target replicas, listed in slot order.
    replicas: Masks | None = None
    removing: Masks | None = None
    adding: Masks | None = None
    is_recovering: Flags | None = None
    #: Replicas that may have lost what they acknowledged: they cannot stay eligible.
    unclean_shutdown: Masks | None = None
    #: Directory of each slot of the target replicas.
    directories: Ints | None = None


@dataclass(frozen=True, slots=True)
class PartitionChanges:
    """The changes in n partitions. A value counts only in rows where its ``has_`` flag is set."""

    #: The row needs a record; every record adds 1 to the partition epoch.
    has_change: Flags
    #: The slot that leads from now on. Written also where it stays and only the leader epoch has to rise.
    leader: Slots
    #: Adds 1 to the leader epoch.
    has_leader: Flags
    isr_order: Orders
    has_isr: Flags
    elr: Masks
    has_elr: Flags
    #: The set where ``last_known_kind`` is LAST_KNOWN_MEMBERS.
    last_known_elr: Masks
    #: LAST_KNOWN_* per row.
    last_known_kind: Slots
    is_recovering: Flags
    has_recovery: Flags
    #: Listed in slot order.
    replicas: Masks
    has_replicas: Flags
    removing: Masks
    has_removing: Flags
    adding: Masks
    has_adding: Flags
    #: Directory codes by position in the list of replicas, padded with -1.
    directories: Ints
    has_directories: Flags
    #: The new leader may miss acknowledged data.
    is_unclean: Flags


AnyColumns = TypeVar("AnyColumns", PartitionRows, PartitionTargets, PartitionChanges)


def take_rows(columns: AnyColumns, index: Any) -> AnyColumns:
    """The same columns with the rows of ``index`` (a slice, an index array or a mask) only."""
    kind = type(columns)
    values: dict[str, Any] = {column.name: getattr(columns, column.name) for column in fields(kind)}
    taken: dict[str, Any] = {name: None if value is None else value[index] for name, value in values.items()}
    return kind(**taken)


def join_changes(parts: list[PartitionChanges]) -> PartitionChanges:
    """The rows of all parts, in order. Parts must have equal widths."""
    names = [column.name for column in fields(PartitionChanges)]
    return PartitionChanges(**{name: np.concatenate([getattr(part, name) for part in parts]) for name in names})


def bits(slot: Slots) -> Masks:
    """uint64[n]: the mask of one slot per row; empty for slot -1."""
    return ONE << slot.view(np.uint64)  # numpy shifts by 64 and more (here -1) to 0


def slots_of(masks: Masks, width: int) -> Flags:
    """bool[n, width]: which slots are in each mask."""
    flags: Flags = ((masks[:, None] >> np.arange(width, dtype=np.uint64)) & ONE).astype(np.bool_)
    return flags


def ordered_in(order: Orders, masks: Masks) -> Flags:
    """bool[n, w]: which positions of each list hold a slot of the mask."""
    held = (masks[:, None] >> order.astype(np.uint64)) & ONE  # shifting by NO_SLOT leaves nothing
    return held.astype(np.bool_)


def compact(values: NDArray[Any], keep: Flags, padding: int) -> NDArray[Any]:
    """[n, width]: move the kept values of each row to its front, in order, and fill the rest with ``padding``."""
    compacted = np.empty_like(values)
    compacted.fill(padding)
    rows, columns = keep.nonzero()
    positions = keep.cumsum(axis=1)[rows, columns] - 1
    compacted[rows, positions] = values[rows, columns]
    return compacted


def filter_order(order: Orders, masks: Masks) -> Orders:
    """uint8[n, width]: each list of slots without those that are not in its mask."""
    return compact(order, ordered_in(order, masks), NO_SLOT)
