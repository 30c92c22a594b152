"""The fulfilment of a wish for some partitions: decided by the controllers' own rules, written as they write it.

``controller.partitions.rules`` sees a row's slots, and behind them two more for brokers that are no replicas (any
more): one that a cancelled reassignment takes out, and the last known leader.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from quorate.controller.partitions.columns import (
    ELECT_ONLINE,
    LAST_KNOWN_KEPT,
    LAST_KNOWN_LEADER,
    NO_SLOT,
    ONE,
    Masks,
    Orders,
    PartitionChanges,
    PartitionRows,
    PartitionTargets,
    slots_of,
)
from quorate.controller.partitions.rules import RuleSettings, decide_changes
from quorate.controller.partitions.runs import PartitionNames, change_runs
from quorate.metadata_log.batches.runs import ByteColumn, PartitionChangeRun, PartitionRun
from quorate.scripts.generated_history.partition_pool import (
    NOBODY,
    SLOTS,
    Columns,
    Flags,
    Ids,
    flags_of,
    members,
)

#: Slots behind the replicas': a replica that is taken out, and a last known leader that is none.
_GONE, _LAST_KNOWN = SLOTS, SLOTS + 1
_WIDTH: Final = SLOTS + 2
#: Above every broker id: sorts behind them.
_AFTER_ALL: Final = np.int32(2**31 - 1)
#: By set of slots, its members ascending.
_ORDERS: Final = np.array(
    [
        [*(slot for slot in range(SLOTS) if mask >> slot & 1), *[NO_SLOT] * (_WIDTH - mask.bit_count())]
        for mask in range(1 << SLOTS)
    ],
    np.uint8,
)


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules that are the same for all partitions at this moment."""

    #: By broker id: whether it is there and not fenced. The last element stands for NOBODY.
    is_up: Flags
    settings: RuleSettings
    #: ELECT_*.
    election: int = ELECT_ONLINE
    #: An ISR that changes is written by id, as after a broker's own request, not in replica order.
    sorts_isr: bool = False


@dataclass(frozen=True, slots=True)
class DecidedRows:
    """The new values of some rows, and the records that say so."""

    names: PartitionNames
    decided: PartitionChanges

    def runs(self, directory_ids: ByteColumn, version: int) -> list[PartitionChangeRun]:
        """The records, by shape. ``directory_ids``: uint8[codes, 16]."""
        return change_runs(self.names, self.decided, directory_ids, version)


def decide(
    before: Columns, same_slots: Columns, after: Columns, topic_ids: ByteColumn, min_isr: Ids, rules: Rules
) -> DecidedRows:
    """Decide about rows whose ISR, ELR, replicas, directories and reassignment are wished as in ``after``.

    Sets ``after`` to what becomes of it. A reassignment that is complete is ended here, as the rules say.

    Args:
        before: the rows as they are. same_slots: the same with the slots of ``after``.
        topic_ids: uint8[n, 16].
    """
    brokers = _widened(after.replicas, NOBODY)
    is_known = (after.replicas == before.last_known_leader[:, None]) & (after.replicas != NOBODY)
    brokers[:, _LAST_KNOWN] = np.where(is_known.any(axis=1), NOBODY, before.last_known_leader)
    replica_order = None
    if (before.replicas != same_slots.replicas).any():
        replica_order = _place_old_replicas(before, brokers)
    rows = _rows(before, same_slots, brokers, is_known, replica_order)
    has_directories = bool((after.directories != same_slots.directories).any())
    targets = PartitionTargets(
        acceptable=_masks(members(rules.is_up[after.replicas])),
        min_isr=np.minimum(min_isr, after.replica_count),
        election=np.full(len(after), rules.election),
        isr=_masks(after.isr),
        isr_order=_wished_order(rows, after, brokers, sorts=rules.sorts_isr),
        replicas=_masks(members(after.replicas != NOBODY)),
        removing=_masks(after.removing),
        adding=_masks(after.adding),
        is_recovering=after.is_recovering,
        unclean_shutdown=_masks(same_slots.elr & ~after.elr),
        directories=_widened(after.directories, 0) if has_directories else None,
    )
    decided = decide_changes(rows, targets, rules.settings)
    _apply(decided, rows, before, after)
    return DecidedRows(PartitionNames(topic_ids, after.number, brokers, before.leader_id), decided)


def _place_old_replicas(before: Columns, brokers: Ids) -> Orders:
    """The replicas that there were, in their order, as slots; who has none so far is given the one that is for it."""
    has_slot = (before.replicas[:, :, None] == brokers[:, None, :SLOTS]).any(axis=2)
    rows, places = np.nonzero(~has_slot & (before.replicas != NOBODY))
    brokers[rows, _GONE] = before.replicas[rows, places]
    slots = (before.replicas[:, :, None] == brokers[:, None, :]).argmax(axis=2).astype(np.uint8)
    return _widened(np.where(before.replicas == NOBODY, np.uint8(NO_SLOT), slots), NO_SLOT)


def _rows(
    before: Columns, same_slots: Columns, brokers: Ids, is_known: Flags, replica_order: Orders | None
) -> PartitionRows:
    replicas = _masks(members(before.replicas != NOBODY)) if replica_order is None else _members_of(replica_order)
    is_elsewhere = (brokers[:, _LAST_KNOWN] != NOBODY).astype(np.uint64)
    return PartitionRows(
        replicas=replicas,
        isr=_masks(same_slots.isr),
        isr_order=_ORDERS[same_slots.isr],
        removing=_masks(before.removing),
        adding=_masks(before.adding),
        elr=_masks(same_slots.elr),
        last_known_elr=_masks(members(is_known)) | is_elsewhere << np.uint64(_LAST_KNOWN),
        leader=same_slots.leader.astype(np.int64),
        is_recovering=before.is_recovering,
        directories=_widened(same_slots.directories, 0),
        replica_order=replica_order,
    )


def _wished_order(rows: PartitionRows, after: Columns, brokers: Ids, *, sorts: bool) -> Orders | None:
    """The order of the wished ISRs; one that has the same members has them in the same order. None: all have."""
    differs = after.isr != rows.isr
    if not differs.any():
        return None
    order = _ORDERS[after.isr]
    if sorts:
        ids = np.where(slots_of(_masks(after.isr), _WIDTH), brokers, _AFTER_ALL)
        by_id = ids.argsort(axis=1, kind="stable").astype(np.uint8)
        order = np.where((order == NO_SLOT) | ~differs[:, None], order, by_id)
    return order


def _apply(decided: PartitionChanges, rows: PartitionRows, before: Columns, after: Columns) -> None:
    after.isr = np.where(decided.has_isr, _members_of(decided.isr_order), rows.isr).astype(np.uint8)
    after.elr = np.where(decided.has_elr, decided.elr, rows.elr).astype(np.uint8)
    after.adding = decided.adding.astype(np.uint8)
    after.removing = decided.removing.astype(np.uint8)
    after.leader = np.where(decided.has_leader, decided.leader, rows.leader).astype(np.int8)
    after.is_recovering = decided.is_recovering
    named = np.where(decided.last_known_kind == LAST_KNOWN_LEADER, before.leader_id, np.int32(NOBODY))
    is_kept = decided.last_known_kind == LAST_KNOWN_KEPT
    after.last_known_leader = np.where(is_kept, before.last_known_leader, named)
    # Replicas that a completed reassignment takes out stand last.
    stays = flags_of(decided.replicas.astype(np.uint8))
    after.replicas = np.where(stays, after.replicas, np.int32(NOBODY))
    after.directories = np.where(stays, after.directories, np.int32(0))


def _masks(slots: NDArray[np.uint8]) -> Masks:
    return slots.astype(np.uint64)


def _widened(columns: NDArray[Any], padding: int) -> NDArray[Any]:
    wide = np.full((len(columns), _WIDTH), padding, columns.dtype)
    wide[:, :SLOTS] = columns
    return wide


def _members_of(order: Orders) -> Masks:
    members: Masks = np.bitwise_or.reduce(ONE << order.astype(np.uint64), axis=1)  # no bit for NO_SLOT
    return members


def creation_runs(
    columns: Columns, topic_ids: ByteColumn, directory_ids: ByteColumn, version: int
) -> list[PartitionRun]:
    """The records of new partitions that are led by their first replica, all in sync, by number of replicas."""
    runs = []
    counts = columns.replica_count
    for count in np.unique(counts):
        rows = np.flatnonzero(counts == count)
        part = columns.take(rows)
        replicas = part.replicas[:, :count]
        nobody = np.empty((len(rows), 0), np.int32)
        zeros = np.zeros(len(rows), np.int32)
        runs.append(
            PartitionRun(
                version=version,
                topic_ids=topic_ids[rows],
                partition_ids=part.number,
                replicas=replicas,
                isr=replicas,
                removing_replicas=nobody,
                adding_replicas=nobody,
                leader=part.leader_id,
                leader_epoch=zeros,
                partition_epoch=zeros,
                directories=directory_ids[part.directories[:, :count]],
            )
        )
    return runs
