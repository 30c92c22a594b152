"""Replica counts are evened: straight from too many to too few, then over brokers in between.

A graph has an edge from one broker to another for every replica of the first that may be replaced by one on the second.
Where a path leads from a broker to one with at least two replicas less, a replacement along each of its edges brings
the two nearer and leaves those between as they are. Where there is no such path, nothing is evener.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Final

import numpy as np

from quorate.controller.planning.cluster import Counts, Mask
from quorate.controller.planning.placement import ReplicaPlacement

#: Paths are followed so often for each broker at most: a bound of the time, far above what was ever needed.
_PATHS_PER_BROKER: Final = 200

#: From a broker: how many of its units could go to each other one.
Ways = Callable[[int], Counts]
#: (source, sink, most) -> how many were moved.
Move = Callable[[int, int, int], int]


def even_replicas(placement: ReplicaPlacement) -> bool:
    """Even the replica counts of a placement that follows the rules; return whether nothing is evener."""
    _between_racks(placement)
    _straight(placement)
    return level(placement.loads, placement.brokers.takers, placement.ways, placement.move)


def _between_racks(placement: ReplicaPlacement) -> None:
    """Move what whole racks have too many, as long as there is most to choose from: in a rack all can go to all."""
    brokers = placement.brokers
    for source, sink in _rack_pairs(placement):
        givers = np.flatnonzero(brokers.takers & (brokers.racks == source))
        for giver in givers[np.argsort((placement.wanted - placement.loads)[givers], kind="stable")]:
            _give(placement, int(giver), brokers.takers & (brokers.racks == sink), _net(placement))


def _net(placement: ReplicaPlacement) -> Counts:
    brokers = placement.brokers
    over = np.where(brokers.takers, placement.loads - placement.wanted, 0)
    return np.bincount(brokers.racks, over, minlength=brokers.rack_count).astype(np.int64)


def _rack_pairs(placement: ReplicaPlacement) -> Iterator[tuple[int, int]]:
    net = _net(placement)
    for source in np.argsort(-net, kind="stable"):
        for sink in np.argsort(net, kind="stable"):
            now = _net(placement)
            if now[source] > 0 > now[sink]:
                yield int(source), int(sink)


def _straight(placement: ReplicaPlacement) -> None:
    over = placement.loads - placement.wanted
    for giver in np.argsort(-over, kind="stable"):
        if placement.brokers.takers[giver] and over[giver] > 0:
            _give(placement, int(giver), placement.brokers.takers, None)


def _give(placement: ReplicaPlacement, giver: int, to: Mask, net: Counts | None) -> None:
    """Move what a broker has too many to those that lack most; between racks no more than makes these even."""
    racks = placement.brokers.racks
    ways = placement.ways(giver)
    lacks = placement.wanted - placement.loads
    for sink in np.argsort(-lacks, kind="stable"):
        over = int(placement.loads[giver] - placement.wanted[giver])
        # What is wanted may be out of reach: no move that does not bring the two nearer.
        nearer = int(placement.loads[giver] - placement.loads[sink]) // 2
        most = min(over, int(lacks[sink]), int(ways[sink]), nearer)
        if net is not None:
            most = min(most, int(net[racks[giver]]), -int(net[racks[sink]]))
        if most > 0 and to[sink]:
            moved = placement.move(giver, int(sink), most)
            if net is not None:
                net[racks[giver]] -= moved
                net[racks[sink]] += moved


def level(counts: Counts, members: Mask, ways: Ways, move: Move) -> bool:
    """Even counts along paths until there is no path to one with two less; return whether that end was reached.

    Args:
        counts: kept up to date by `move`. members: those to be evened; `ways` leads to no other.
    """
    if not members.any() or np.ptp(counts[members]) <= 1:
        return True
    left = _PATHS_PER_BROKER * len(counts)
    settled = np.zeros(len(counts), np.bool_)
    has_moved = False
    while True:
        open_ = np.flatnonzero(members & ~settled)
        if not len(open_):
            if not has_moved:
                return True
            # A move changes what others may do: all is looked at once more.
            settled[:], has_moved = False, False
            continue
        source = int(open_[np.argmax(counts[open_])])
        path, reached = _path(source, counts, ways)
        if path is None:
            # Nothing leads out of what was reached, and nothing in it has two less than the most.
            settled |= reached
            continue
        if left == 0:
            return False
        left -= 1
        has_moved |= _along(path, counts, ways, move)


def reached_from(source: int, ways: Ways, count: int) -> Mask:
    """bool[count]: the brokers that a path leads to from one, that one among them."""
    return _path(source, np.zeros(count, np.int64), ways)[1]


def _path(source: int, counts: Counts, ways: Ways) -> tuple[list[int] | None, Mask]:
    """Return a shortest path to the least of those with two less, or None; and what was reached."""
    reached = np.zeros(len(counts), np.bool_)
    reached[source] = True
    came_from = {}
    front = [source]
    while front:
        found = np.zeros(len(counts), np.bool_)
        for one in front:
            new = (ways(one) > 0) & ~reached & ~found
            came_from.update(dict.fromkeys(np.flatnonzero(new).tolist(), one))
            found |= new
        reached |= found
        front = np.flatnonzero(found).tolist()
        ends = np.flatnonzero(found & (counts <= counts[source] - 2))
        if len(ends):
            path = [int(ends[np.argmin(counts[ends])])]
            while path[0] != source:
                path.insert(0, came_from[path[0]])
            return path, reached
    return None, reached


def _along(path: list[int], counts: Counts, ways: Ways, move: Move) -> bool:
    """Move along a path as many as bring its ends together, the last edge first; return whether any was moved."""
    most = int(counts[path[0]] - counts[path[-1]]) // 2
    edges = list(pairwise(path))
    most = min([most, *(int(ways(source)[sink]) for source, sink in edges)])
    for source, sink in reversed(edges):
        most = move(source, sink, most)
    return most > 0
