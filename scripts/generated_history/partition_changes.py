"""The result of a wish for some partitions: the leader, and the replicas in sync, eligible, recovering.

The rules of the real thing in the order that matters to a reader of the log; see ``controller.partitions.rules`` for
all of them. The state that comes out always holds: a leader is in the ISR, an ELR only beside an ISR that is too
small, a partition without an ISR has no leader.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from quorate.metadata_log.batches.runs import ByteColumn, IntColumn, PartitionChangeRun, PartitionRun
from quorate.scripts.generated_history.partition_pool import (
    NOBODY,
    Columns,
    Flags,
    Ids,
    Masks,
    Rows,
    bit,
    flags_of,
    lowest_slot,
    members,
)

#: Radix of a row's shape: a list is left out (0), or has up to 8 elements.
_RADIX: Final = 16


@dataclass(frozen=True, slots=True)
class Rules:
    """What is the same for all partitions at this moment."""

    #: By broker id: whether it is there and not fenced. The last element stands for NOBODY.
    is_up: Flags
    is_elr_enabled: bool
    #: Version of the change records.
    version: int
    allows_unclean: bool = False


def settle(before: Columns, after: Columns, min_isr: Ids, rules: Rules, *, prefers: bool = False) -> None:
    """Elect leaders in ``after``, whose ISR, replicas and reassignment are as wished, and set what follows from it.

    ``before`` and ``after`` have the same slots; replicas that ``after`` does not have any more are in no mask of it.
    """
    up = members(rules.is_up[after.replicas])
    if not rules.is_elr_enabled:  # the last member of an ISR stays in it
        after.isr = np.where(after.isr == 0, before.isr & ~_gone(before, after), after.isr)
    after.elr = _eligible(before, after, min_isr, rules)
    stays = (bit(after.leader) & after.isr & up) != 0
    candidates = after.isr & up
    first = lowest_slot(candidates)
    moves = ~stays if not prefers else (~stays | (first == 0))
    leader = np.where(moves, first, after.leader).astype(np.int8)
    is_recovering = after.is_recovering.copy()

    from_elr = lowest_slot(after.elr & up)
    wins = (leader < 0) & (from_elr >= 0)
    last_known = lowest_slot(members((after.replicas == after.last_known_leader[:, None]) & (after.replicas >= 0)) & up)
    has_nobody = (leader < 0) & (after.isr == 0) & (after.elr == 0)
    unclean = has_nobody & (last_known >= 0)
    if rules.allows_unclean:
        anybody = lowest_slot(up)
        chosen = np.where(unclean, last_known, anybody)
        unclean |= (leader < 0) & ~wins & (anybody >= 0)
    else:
        chosen = last_known
    winner = np.where(wins, from_elr, np.where(unclean, chosen, leader)).astype(np.int8)
    replaces = wins | unclean
    after.isr = np.where(replaces, bit(winner), after.isr)
    after.elr = np.where(unclean, np.uint8(0), after.elr & ~bit(np.where(wins, winner, NOBODY)))
    after.is_recovering = is_recovering | unclean
    after.leader = winner
    lost = (winner < 0) & (before.leader >= 0) & rules.is_elr_enabled
    after.last_known_leader = np.where(lost, before.leader_id, np.where(winner >= 0, NOBODY, before.last_known_leader))


def _gone(before: Columns, after: Columns) -> Masks:
    return members((before.replicas != after.replicas) & (before.replicas != NOBODY))


def _eligible(before: Columns, after: Columns, min_isr: Ids, rules: Rules) -> Masks:
    if not rules.is_elr_enabled:
        return np.zeros(len(after), np.uint8)
    present = members(after.replicas != NOBODY)
    left = (after.elr | before.isr) & ~after.isr & present
    return np.where(np.bitwise_count(after.isr) >= min_isr, np.uint8(0), left)


def change_runs(
    before: Columns, after: Columns, topic_ids: ByteColumn, directory_ids: ByteColumn, version: int, *, sorts_isr: bool
) -> tuple[Flags, list[PartitionChangeRun]]:
    """The records that make ``after`` of ``before``, by shape, and which rows have one.

    Args:
        topic_ids: uint8[n, 16]. directory_ids: uint8[codes, 16].
        sorts_isr: an ISR that changes is written by id, as after a broker's own request, not in replica order.
    """
    has = _differences(before, after, version)
    shape = _shapes(has, after)
    width = after.replica_count
    runs = []
    for kind in np.unique(shape):
        if kind == 0:
            continue
        rows = np.flatnonzero(shape == kind)
        one = int(rows[0])
        part = after.take(rows)
        runs.append(
            PartitionChangeRun(
                version=version,
                topic_ids=topic_ids[rows],
                partition_ids=part.number,
                isr=_ids(part, part.isr, sorts=sorts_isr) if has.isr[one] else None,
                leader=part.leader_id if has.leader[one] else None,
                replicas=part.replicas[:, : width[one]] if has.replicas[one] else None,
                directories=directory_ids[part.directories[:, : width[one]]] if has.directories[one] else None,
                removing_replicas=_ids(part, part.removing) if has.removing[one] else None,
                adding_replicas=_ids(part, part.adding) if has.adding[one] else None,
                eligible_leader_replicas=_ids(part, part.elr) if has.elr[one] else None,
                last_known_elr=_last_known(part) if has.last_known[one] else None,
                leader_recovery_state=part.is_recovering.astype(np.int8) if has.recovery[one] else None,
            )
        )
    return shape != 0, runs


@dataclass(frozen=True, slots=True)
class _Differences:
    """What a row's record has to say."""

    replicas: Flags
    directories: Flags
    isr: Flags
    leader: Flags
    elr: Flags
    last_known: Flags
    adding: Flags
    removing: Flags
    recovery: Flags


def _differences(before: Columns, after: Columns, version: int) -> _Differences:
    has_replicas = (before.replicas != after.replicas).any(axis=1)
    is_removed = (bit(before.leader) & _gone(before, after)) != 0
    can_say_elr = version >= 2
    return _Differences(
        replicas=has_replicas,
        directories=has_replicas | (before.directories != after.directories).any(axis=1),
        isr=(before.isr != after.isr) | has_replicas,
        leader=(before.leader_id != after.leader_id) | is_removed,
        elr=(before.elr != after.elr) & can_say_elr,
        last_known=(before.last_known_leader != after.last_known_leader) & can_say_elr,
        adding=(before.adding != after.adding) | (has_replicas & (after.adding != 0)),
        removing=(before.removing != after.removing) | (has_replicas & (after.removing != 0)),
        recovery=before.is_recovering != after.is_recovering,
    )


def _shapes(has: _Differences, after: Columns) -> Rows:
    """A number for each row's shape, 0 where nothing differs."""
    width = after.replica_count
    shape = np.zeros(len(after), np.int64)
    for part in (
        np.where(has.isr, 1 + np.bitwise_count(after.isr), 0),
        has.leader,
        np.where(has.replicas, 1 + width, 0),
        np.where(has.directories, 1 + width, 0),
        np.where(has.removing, 1 + np.bitwise_count(after.removing), 0),
        np.where(has.adding, 1 + np.bitwise_count(after.adding), 0),
        np.where(has.elr, 1 + np.bitwise_count(after.elr), 0),
        np.where(has.last_known, 1 + (after.last_known_leader != NOBODY), 0),
        has.recovery,
    ):
        shape = shape * _RADIX + part
    return shape


def _last_known(part: Columns) -> IntColumn:
    """The last known leader as a list of nobody or one."""
    if part.last_known_leader[0] == NOBODY:
        return np.empty((len(part), 0), np.int32)
    return part.last_known_leader[:, None]


def _ids(part: Columns, masks: Masks, *, sorts: bool = False) -> IntColumn:
    """The brokers of masks that all have as many members: int32[n, k] in slot order, or by id."""
    ids = part.replicas[flags_of(masks)].reshape(len(part), -1)
    return np.sort(ids, axis=1) if sorts else ids


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
                isr=_ids(part, part.isr),
                removing_replicas=nobody,
                adding_replicas=nobody,
                leader=part.leader_id,
                leader_epoch=zeros,
                partition_epoch=zeros,
                directories=directory_ids[part.directories[:, :count]],
            )
        )
    return runs
