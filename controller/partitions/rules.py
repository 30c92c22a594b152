"""Every rule about one partition's ISR, ELR, leader, recovery state and reassignment, as one kernel over n rows.

The rules are those of Kafka 4.3.1's ``PartitionChangeBuilder``. There is no second implementation for a single
row: n = 1 costs some 0.5 ms, for which its outcome is remembered (``change_memory``), a million rows some 0.5 s.

Order of the rules: a reassignment completes; the ELR takes in who left the ISR; a leader is elected; the winner
changes ISR, ELR and recovery state; the leader epoch rises where it must; the last known leader is remembered or
forgotten. Each step is a function below, in this order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from quorate.controller.decisions.metadata_version import DIRECTORIES_LEVEL, NO_EPOCH_BUMP_ON_SHRINK_LEVEL
from quorate.controller.partitions.columns import (
    ELECT_PREFERRED,
    ELECT_UNCLEAN,
    EMPTY,
    LAST_KNOWN_KEPT,
    LAST_KNOWN_LEADER,
    LAST_KNOWN_MEMBERS,
    NO_SLOT,
    PADDING,
    Flags,
    Ints,
    Masks,
    Orders,
    PartitionChanges,
    PartitionRows,
    PartitionTargets,
    Slots,
    bits,
    compact,
    filter_order,
    join_changes,
    slots_of,
    take_rows,
)
from quorate.controller.partitions.row_patterns import patterns_of
from quorate.snapshots.table.reassignment import has_moving
from quorate.snapshots.table.slot_layout import lowest, preferred_slots

#: Rows decided at once, so that the temporary columns (some sixty of 8 bytes) of a large pass stay at 30 MB.
BLOCK_ROWS: Final = 65_536


@dataclass(frozen=True, slots=True)
class RuleSettings:
    """The settings of the rules that are the same for every partition of the cluster."""

    #: Level of ``metadata.version``, 7-30.
    metadata_version: int
    is_elr_enabled: bool
    #: The last known ELR remembers one broker, the last leader, and that one may lead again. Otherwise it remembers
    #: everybody who was in sync or eligible while the ISR was too small, and elects nobody.
    elects_last_known_leader: bool = True


@dataclass(frozen=True, slots=True)
class _Assignment:
    """Target state after completion of the reassignment."""

    isr: Masks
    replicas: Masks
    removing: Masks
    adding: Masks


@dataclass(frozen=True, slots=True)
class _Election:
    """The elected leaders, and the cost of their election."""

    leader: Slots
    has_moved: Flags
    is_unclean: Flags
    #: The winner was eligible, but not in sync.
    is_from_elr: Flags


def decide_changes(rows: PartitionRows, targets: PartitionTargets, settings: RuleSettings) -> PartitionChanges:
    """The changes in n partitions when ``targets`` is asked of them.

    All columns have n rows, and all lists the same width, at most 64.

    Raises:
        ValueError: a replica without a directory, or a preferred election where there are no replicas.
    """
    count = len(rows.replicas)
    if count <= BLOCK_ROWS:
        return _decide_block(rows, targets, settings)
    blocks = [slice(start, start + BLOCK_ROWS) for start in range(0, count, BLOCK_ROWS)]
    return join_changes(
        [_decide_block(take_rows(rows, block), take_rows(targets, block), settings) for block in blocks]
    )


def decide_patterns(
    rows: PartitionRows, targets: PartitionTargets, settings: RuleSettings
) -> tuple[PartitionChanges, NDArray[np.int64] | None]:
    """``decide_changes`` of each kind of rows, and int64[n], the kind of each; None where every row is its own.

    Directories of a change are those of some row of its kind; no change names them then.
    """
    patterns = patterns_of(rows, targets)
    if patterns is None:
        return decide_changes(rows, targets, settings), None
    examples = patterns.examples
    return _decide_block(take_rows(rows, examples), take_rows(targets, examples), settings), patterns.of_row


def _decide_block(rows: PartitionRows, targets: PartitionTargets, settings: RuleSettings) -> PartitionChanges:
    target = _complete_reassignment(rows, targets)
    elr = _eligible(rows, targets, target.isr, settings)
    election = _elect(rows, targets, target, elr, settings)
    replaces_isr = election.is_unclean | election.is_from_elr
    isr = np.where(replaces_isr, bits(election.leader), target.isr)
    elr_after = _elr_after(elr, election, settings)
    isr_order = _isr_order(rows, targets, isr, replaces_isr, election.leader)
    has_isr = (isr_order != rows.isr_order).any(axis=1)
    if not settings.is_elr_enabled:  # An emptied ISR is not written then: its last member can come back and lead.
        has_isr &= isr != EMPTY
    has_isr |= election.is_unclean
    has_leader = election.has_moved | ((rows.replicas & ~target.replicas) != EMPTY)
    if settings.metadata_version < NO_EPOCH_BUMP_ON_SHRINK_LEVEL:
        has_leader |= has_isr & ((rows.isr & ~isr) != EMPTY)
    last_known_elr, last_known_kind = _last_known(rows, targets, target.isr, elr, election, has_leader, settings)
    wanted_recovery = rows.is_recovering if targets.is_recovering is None else targets.is_recovering
    is_recovering = wanted_recovery | (election.is_unclean & ~rows.is_recovering)
    has_replicas, directories, has_directories = _assignment_lists(rows, targets, target.replicas, settings)
    has_elr = elr_after != rows.elr
    has_recovery = is_recovering != rows.is_recovering
    has_removing = target.removing != rows.removing
    has_adding = target.adding != rows.adding
    has_change = has_leader | has_isr | has_elr | (last_known_kind != LAST_KNOWN_KEPT) | has_recovery
    has_change |= has_replicas | has_removing | has_adding | has_directories
    return PartitionChanges(
        has_change=has_change,
        leader=election.leader,
        has_leader=has_leader,
        isr_order=isr_order,
        has_isr=has_isr,
        elr=elr_after,
        has_elr=has_elr,
        last_known_elr=last_known_elr,
        last_known_kind=last_known_kind,
        is_recovering=is_recovering,
        has_recovery=has_recovery,
        replicas=target.replicas,
        has_replicas=has_replicas,
        removing=target.removing,
        has_removing=has_removing,
        adding=target.adding,
        has_adding=has_adding,
        directories=directories,
        has_directories=has_directories,
        is_unclean=election.is_unclean,
    )


def awaited_replicas(replicas: Masks, isr: Masks, removing: Masks, adding: Masks) -> Masks:
    """uint64[n]: the replicas that are not in sync and must be before a reassignment completes.

    Those that are added. Only where fewer replicas come than go must all that remain be in sync, so a swap completes
    although a replica that it does not touch is out of the ISR.
    """
    shrinks = np.bitwise_count(adding) < np.bitwise_count(removing)
    return (adding | np.where(shrinks, replicas & ~removing, EMPTY)) & ~(isr & ~removing)


def _complete_reassignment(rows: PartitionRows, targets: PartitionTargets) -> _Assignment:
    """Drop the removing replicas once nobody is waited for."""
    isr = rows.isr if targets.isr is None else targets.isr
    replicas = rows.replicas if targets.replicas is None else targets.replicas
    removing = rows.removing if targets.removing is None else targets.removing
    adding = rows.adding if targets.adding is None else targets.adding
    if not (removing.any() or adding.any()):
        return _Assignment(isr, replicas, removing, adding)
    remaining_isr, remaining = isr & ~removing, replicas & ~removing
    leaves_some = (removing == EMPTY) | ((remaining_isr != EMPTY) & (remaining != EMPTY))
    is_waiting = awaited_replicas(replicas, isr, removing, adding) != EMPTY
    completes = has_moving(adding, removing) & leaves_some & ~is_waiting
    return _Assignment(
        isr=np.where(completes, remaining_isr, isr),
        replicas=np.where(completes, remaining, replicas),
        removing=np.where(completes, EMPTY, removing),
        adding=np.where(completes, EMPTY, adding),
    )


def _eligible(rows: PartitionRows, targets: PartitionTargets, isr: Masks, settings: RuleSettings) -> Masks:
    """ELR before the election. It is not intersected with the replicas: a removed replica can stay in it."""
    if not settings.is_elr_enabled:
        return rows.elr  # What is left of it still takes part in this election, and is cleared afterwards.
    left = (rows.elr | rows.isr) & ~isr
    if targets.unclean_shutdown is not None:
        left &= ~targets.unclean_shutdown
    return np.where(np.bitwise_count(isr) >= targets.min_isr, EMPTY, left)


def _elect(
    rows: PartitionRows, targets: PartitionTargets, target: _Assignment, elr: Masks, settings: RuleSettings
) -> _Election:
    """Elect among the in-sync replicas, or among the eligible ones where none is in sync."""
    valid = entitled_leaders(target.isr, elr) & targets.acceptable
    leader, first = rows.leader, lowest(valid & target.replicas)
    stays = (valid & bits(leader)) != EMPTY
    has_new = first >= 0
    winner = np.where(stays, leader, first)
    if (targets.election == ELECT_PREFERRED).any():
        preferred = preferred_slots(target.replicas)
        if ((targets.election == ELECT_PREFERRED) & (preferred < 0)).any():
            raise ValueError("a partition without replicas has no preferred leader")
        takes_preferred = (targets.election == ELECT_PREFERRED) & ((valid & bits(preferred)) != EMPTY)
        stays |= takes_preferred  # Decided, and cleanly.
        winner = np.where(takes_preferred, preferred, winner)
    open_rows = ~(stays | has_new)
    if open_rows.any():
        winner = np.where(open_rows, _last_resort(rows, targets, target, elr, settings), winner)
    has_moved = winner != leader
    is_unclean = has_moved & open_rows & (winner >= 0)
    is_from_elr = has_moved & ~is_unclean & ((elr & bits(winner)) != EMPTY)
    return _Election(winner, has_moved, is_unclean, is_from_elr)


def entitled_leaders(isr: Masks, elr: Masks) -> Masks:
    """uint64[n]: who may lead and has all that was acknowledged: who is in sync; who is eligible where nobody is."""
    return np.where(isr != EMPTY, isr, elr)


def last_known_leaders(isr: Masks, elr: Masks, known: Masks, settings: RuleSettings) -> Masks:
    """uint64[n]: the last leader where it is known and may lead again, as nobody is in sync or eligible."""
    if not (settings.is_elr_enabled and settings.elects_last_known_leader):
        return np.zeros_like(known)
    is_alone = (isr == EMPTY) & (elr == EMPTY) & (np.bitwise_count(known) == 1)
    return np.where(is_alone, known, EMPTY)


def _last_resort(
    rows: PartitionRows, targets: PartitionTargets, target: _Assignment, elr: Masks, settings: RuleSettings
) -> Slots:
    """The leaders where nobody is in sync or eligible: the last known one, then, if allowed, any acceptable replica."""
    anyone = lowest(targets.acceptable & target.replicas)
    fallback = np.where(targets.election == ELECT_UNCLEAN, anyone, -1)
    known = last_known_leaders(target.isr, elr, rows.last_known_elr, settings) & targets.acceptable
    return np.where(known != EMPTY, lowest(known), fallback)


def _elr_after(elr: Masks, election: _Election, settings: RuleSettings) -> Masks:
    if not settings.is_elr_enabled:
        return np.zeros_like(elr)
    after_winner = np.where(election.is_from_elr, elr & ~bits(election.leader), elr)
    return np.where(election.is_unclean, EMPTY, after_winner)


def _isr_order(
    rows: PartitionRows, targets: PartitionTargets, isr: Masks, replaces_isr: Flags, leader: Slots
) -> Orders:
    """The new ISR in its order; a winner from outside the ISR is alone in it."""
    order = filter_order(rows.isr_order if targets.isr_order is None else targets.isr_order, isr)
    if replaces_isr.any():
        order[replaces_isr] = NO_SLOT
        order[replaces_isr, 0] = leader[replaces_isr]
    return order


def _last_known(
    rows: PartitionRows,
    targets: PartitionTargets,
    isr: Masks,
    elr: Masks,
    election: _Election,
    has_leader: Flags,
    settings: RuleSettings,
) -> tuple[Masks, Slots]:
    """The last known ELR after the change, and its LAST_KNOWN_*; ``isr`` and ``elr`` are those before the election.

    Where it elects the last leader: remember who led when the leader goes, forget it when there is one again.
    """
    known = rows.last_known_elr
    if not settings.elects_last_known_leader:
        members = _last_known_members(rows, targets, isr, elr, election, settings)
        return members, np.where(members == known, LAST_KNOWN_KEPT, LAST_KNOWN_MEMBERS)
    nobody, kind = np.zeros_like(known), np.full(len(known), LAST_KNOWN_KEPT)
    if settings.is_elr_enabled:
        leads = election.leader >= 0
        kind[has_leader & ~leads & (known == EMPTY)] = LAST_KNOWN_LEADER
        kind[has_leader & leads & (known != EMPTY)] = LAST_KNOWN_MEMBERS
    return nobody, kind


def _last_known_members(
    rows: PartitionRows,
    targets: PartitionTargets,
    isr: Masks,
    elr: Masks,
    election: _Election,
    settings: RuleSettings,
) -> Masks:
    """The replicas that were in sync or eligible since the ISR fell below its minimum, and are neither now."""
    if not settings.is_elr_enabled:
        return np.zeros_like(elr)
    members = (rows.last_known_elr | rows.elr | rows.isr) & ~(isr | elr)
    is_forgotten = (np.bitwise_count(isr) >= targets.min_isr) | election.is_unclean
    return np.where(is_forgotten, EMPTY, members)


def _assignment_lists(
    rows: PartitionRows, targets: PartitionTargets, replicas: Masks, settings: RuleSettings
) -> tuple[Flags, Ints, Flags]:
    """Whether the list of replicas changes; the new list of directories, and whether that changes.

    Directories go by replica, but are compared as lists, so a mere reordering of replicas can leave them equal.
    An empty list of target replicas is never written.
    """
    wanted = rows.directories if targets.directories is None else targets.directories
    if rows.replica_order is None and targets.directories is None:
        has_replicas = (replicas != rows.replicas) & (replicas != EMPTY)
        if not has_replicas.any():
            return has_replicas, wanted, has_replicas
    count, width = rows.isr_order.shape
    slot_numbers = np.broadcast_to(np.arange(width, dtype=np.uint8), (count, width))
    old_order = rows.replica_order
    if old_order is None:
        old_order = compact(slot_numbers, slots_of(rows.replicas, width), NO_SLOT)
    members = slots_of(replicas, width)
    has_replicas = (compact(slot_numbers, members, NO_SLOT) != old_order).any(axis=1) & (replicas != EMPTY)
    directories = compact(wanted, members, PADDING)
    if settings.metadata_version < DIRECTORIES_LEVEL:
        return has_replicas, directories, np.zeros(count, np.bool_)
    if (members & (wanted < 0)).any():
        raise ValueError("a replica is in no directory")
    old_slots = np.minimum(old_order, width - 1).astype(np.intp)
    old = np.where(old_order == NO_SLOT, PADDING, np.take_along_axis(rows.directories, old_slots, axis=1))
    has_directories = (directories != old).any(axis=1) & (replicas != EMPTY)
    return has_replicas, directories, has_directories
