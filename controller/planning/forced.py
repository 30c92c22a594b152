"""Replicas that must go whatever the balance is: from drained brokers, and from racks that hold one too many.

Both steps go in parts, the counts renewed between them, so that many alike decisions do not all fall on one broker.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from quorate.controller.planning.cluster import NONE, BrokerRole, Counts, Indexes, Mask
from quorate.controller.planning.placement import ReplicaPlacement
from quorate.controller.planning.rules import distinct, lost_in, racks_of

#: Parts in which a step is done, unless there are fewer rows.
_PARTS = 256
#: Rounds in which places are given by racks to those that lack replicas, and then to any, those with the fewest first;
#: what is left over is given one by one.
_ROUNDS = 8
#: More than any broker has too many.
_LAST: Final = 1 << 40


def follow_rules(placement: ReplicaPlacement, needed: Counts) -> None:
    """Make a placement follow the rules, with as few moves as each partition needs.

    Args:
        needed: in how many racks each partition must be (`rules.racks_needed`).
    """
    _leave_drained(placement)
    _leave_crowded_racks(placement, needed)
    _fill(placement, needed)


def replace_drained(placement: ReplicaPlacement, needed: Counts) -> None:
    """Take all replicas off drained brokers and give their places to others; what stands elsewhere stays there."""
    _leave_drained(placement)
    _fill(placement, needed)


def _leave_drained(placement: ReplicaPlacement) -> None:
    is_drained = np.append(placement.brokers.roles == BrokerRole.DRAINS, False)
    rows, columns = np.nonzero(is_drained[placement.replicas])
    _empty(placement, rows, columns)


def _empty(placement: ReplicaPlacement, rows: Counts, columns: Counts) -> None:
    held = placement.replicas[rows, columns]
    placement.replicas[rows, columns] = NONE
    placement.loads -= np.bincount(held, minlength=len(placement.brokers))
    if placement.cluster.sizes is not None:
        sizes = placement.cluster.sizes[rows]
        placement.bytes_on -= np.bincount(held, sizes, minlength=len(placement.brokers))


def _open(placement: ReplicaPlacement) -> Mask:
    return np.asarray((placement.replicas == NONE) & (placement.cluster.replicas != NONE))


def _leave_crowded_racks(placement: ReplicaPlacement, needed: Counts) -> None:
    """Empty places whose rack holds another replica, where the open places do not suffice for the racks needed."""
    racks = racks_of(placement.brokers, placement.replicas)
    lacking = needed - distinct(racks) - np.count_nonzero(_open(placement), axis=1)
    is_lost = lost_in(placement.cluster, placement.replicas)
    for rows in parts(np.flatnonzero(lacking > 0)):
        replicas = placement.replicas[rows]
        # Those stay that must, then those on the brokers that have the least too many, and lost ones do not.
        excess = np.append(placement.loads - placement.wanted, _LAST)[replicas]
        excess[is_lost[rows]] = _LAST - 1
        excess[np.append(placement.brokers.roles == BrokerRole.KEEPS, False)[replicas]] = -_LAST
        order = np.argsort(excess, axis=1, kind="stable")
        ordered = np.take_along_axis(racks_of(placement.brokers, replicas), order, axis=1)
        is_second = _is_second(ordered) & (ordered != NONE)
        # The last ones go: counted from behind, as many as are lacking.
        from_behind = np.cumsum(is_second[:, ::-1], axis=1)[:, ::-1]
        goes = is_second & (from_behind <= lacking[rows, None])
        which, place = np.nonzero(goes)
        _empty(placement, rows[which], order[which, place])


def _is_second(rows: Indexes) -> Mask:
    """Return which places have a value that stands further left in their row."""
    found = np.zeros(rows.shape, np.bool_)
    for column in range(1, rows.shape[1]):
        found[:, column] = (rows[:, :column] == rows[:, column, None]).any(axis=1)
    return found


def parts(rows: Counts) -> Iterator[Counts]:
    """Yield rows, int64[n], in parts, far ones together: neighbours are mostly partitions of one topic, and alike."""
    parts = min(len(rows), _PARTS)
    yield from (rows[start::parts] for start in range(parts))


def _fill(placement: ReplicaPlacement, needed: Counts) -> None:
    """Give every open place a broker: one place of each row at a time, as the first may rule out the next."""
    while len(rows := np.flatnonzero(_open(placement).any(axis=1))):
        for part in parts(rows):
            _fill_first(placement, part, needed[part])


def _fill_first(placement: ReplicaPlacement, rows: Counts, needed: Counts) -> None:
    """Fill the first open place of each row."""
    is_open = (placement.replicas[rows] == NONE) & (placement.cluster.replicas[rows] != NONE)
    columns = np.argmax(is_open, axis=1)
    racks = racks_of(placement.brokers, placement.replicas[rows])
    must_be_new = needed - distinct(racks) >= np.count_nonzero(is_open, axis=1)
    for round_ in range(2 * _ROUNDS):
        if not len(rows):
            return
        wanted = placement.wanted
        if round_ >= _ROUNDS:
            # The racks that these may have lack nothing: as many for each as would make all brokers of it even.
            wanted = np.full(len(wanted), placement.loads.max() + len(rows))
        sinks = _drawn(placement, wanted, racks, must_be_new)
        fits = (sinks != NONE) & ~(placement.replicas[rows] == sinks[:, None]).any(axis=1)
        placement.put(rows[fits], columns[fits], sinks[fits])
        rows, columns, racks, must_be_new = rows[~fits], columns[~fits], racks[~fits], must_be_new[~fits]
    for row, column, taken, is_new in zip(rows, columns, racks, must_be_new, strict=True):
        _fill_one(placement, row, column, taken, is_new=bool(is_new))


def _drawn(placement: ReplicaPlacement, wanted: Counts, racks: Indexes, must_be_new: Mask) -> Indexes:
    """Return for each row a broker that lacks replicas, in a rack that it may have; `NONE` where none is left."""
    brokers = placement.brokers
    lacks = np.where(brokers.takers, np.maximum(0, wanted - placement.loads), 0)
    surplus = np.where(brokers.takers, np.maximum(0, placement.loads - wanted), 0)
    in_rack = np.bincount(brokers.racks, lacks, minlength=brokers.rack_count)
    # What a rack lacks on the whole comes before what its own brokers can make up among themselves.
    net = np.maximum(0.0, in_rack - np.bincount(brokers.racks, surplus, minlength=brokers.rack_count))
    weights = net + in_rack * 1e-3
    allowed = np.ones((len(racks), brokers.rack_count + 1), np.bool_)
    np.put_along_axis(allowed, np.where(must_be_new[:, None], racks, NONE), False, axis=1)
    mass = np.cumsum(allowed[:, :-1] * weights, axis=1)
    # Evenly spread over [0, 1): a share of the rows goes to each rack, without chance.
    at = (np.arange(len(racks)) + 0.5) / len(racks)
    rack = np.minimum(np.count_nonzero(mass <= at[:, None] * mass[:, -1:], axis=1), brokers.rack_count - 1)
    sinks = np.full(len(racks), NONE, np.int32)
    for one in np.unique(rack[mass[:, -1] > 0]):
        asking = np.flatnonzero((rack == one) & (mass[:, -1] > 0))
        members = np.flatnonzero((brokers.racks == one) & (lacks > 0))
        offers = by_lack(members, lacks[members], len(asking))
        sinks[asking[: len(offers)]] = offers
    return sinks


def by_lack(members: Counts, lacks: Counts, most: int) -> Counts:
    """int64[n]: up to `most` brokers, each at most as often as it lacks, those that lack most first and oftenest."""
    low, high = 0, int(lacks.max(initial=0))
    # The level down to which all are filled, as water in a basin.
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if np.maximum(0, lacks - middle).sum() > most else (low, middle)
    offers = np.repeat(members, np.maximum(0, lacks - low))
    if low and len(offers) < most:
        offers = np.concatenate([offers, members[lacks >= low][: most - len(offers)]])
    return offers


def _fill_one(placement: ReplicaPlacement, row: int, column: int, racks: Indexes, *, is_new: bool) -> None:
    """Fill one place with the best of all brokers that may have it."""
    brokers = placement.brokers
    may = brokers.takers & ~np.isin(np.arange(len(brokers)), placement.replicas[row])
    if is_new:
        may &= ~np.isin(brokers.racks, racks)
    candidates = np.flatnonzero(may)
    best = candidates[np.argmin((placement.loads - placement.wanted)[candidates])]
    placement.put(np.array([row]), np.array([column]), np.array([best], np.int32))
