"""Moves are saved: replicas change their brokers in a ring, so that every count stays and fewer replicas are copied.

A ring of replacements whose costs (`costs`) sum to less than nothing saves moves. Where there is none, no placement
with these counts, or with counts that are the same but for who has one more, has fewer moves.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

import numpy as np

from quorate.controller.planning.cluster import Counts
from quorate.controller.planning.costs import COSTS, least_costs, replacements, with_swaps
from quorate.controller.planning.placement import ReplicaPlacement

#: Times that the graph is drawn anew: a bound of the time, far above what was ever needed.
_DRAWINGS: Final = 200


def save_moves(placement: ReplicaPlacement) -> None:
    """Save moves of a placement whose counts are even, and stay so."""
    for _ in range(_DRAWINGS):
        placement.index()
        if not _save(placement):
            return


def _save(placement: ReplicaPlacement) -> bool:
    """Turn the rings that one drawing of the graph shows; return whether any saved a move.

    What the turns change in the graph is followed for the replacements that were made only. So a ring may turn out to
    be none, and new ones show in the next drawing.
    """
    ways = replacements(placement.cluster, placement.replicas)
    has_saved = False
    while True:
        costs = least_costs(ways)
        graph = with_swaps(costs, placement.loads, placement.brokers.takers)
        rings = _rings(graph)
        if not rings:
            return has_saved
        for ring in rings:
            has_saved |= _turn(placement, ring, costs, graph, ways)


def _turn(placement: ReplicaPlacement, ring: Sequence[int], costs: Counts, graph: Counts, ways: Counts) -> bool:
    """Make the replacements of a ring, as many as all of its edges have; return whether there were any."""
    edges = [(source, sink) for source, sink in _edges(ring) if graph[source, sink] == costs[source, sink]]
    # Who has one more can change once.
    most = len(placement.replicas) if len(edges) == len(ring) else 1
    found = []
    taken: list[Counts] = []
    for source, sink in edges:
        cost = int(costs[source, sink])
        left = ways[COSTS.index(cost)]
        # Each in another partition, so that none takes another one's place.
        rows, columns = placement.fitting(source, sink, cost, apart_from=taken)
        most = min(most, len(rows))
        if not most:
            left[source, sink] = 0
            return False
        rows, columns = placement.chosen(rows, columns, source, sink, most)
        taken.append(rows)
        found.append((rows, columns, sink))
    for rows, columns, sink in found:
        placement.place(rows[:most], columns[:most], sink)
    for source, sink in edges:
        ways[COSTS.index(int(costs[source, sink])), source, sink] -= most
    return True


def _edges(ring: Sequence[int]) -> Iterator[tuple[int, int]]:
    return pairwise([*ring, ring[0]])


def _rings(graph: Counts) -> list[list[int]]:
    """Return rings of negative cost that share no broker; none where there are none at all.

    By shortest paths of growing length (Bellman and Ford): a ring shows as soon as the successors close one.
    """
    count = len(graph)
    prices, follows = np.zeros(count, np.int64), np.full(count, -1)
    for _ in range(count + 1):
        through = graph + prices[None, :]
        best = np.argmin(through, axis=1)
        value = through[np.arange(count), best]
        is_less = value < prices
        if not is_less.any():
            break
        prices[is_less], follows[is_less] = value[is_less], best[is_less]
        rings = [ring for ring in _closed(follows.tolist()) if sum(int(graph[edge]) for edge in _edges(ring)) < 0]
        if rings:
            return rings
    return []


def _closed(follows: Sequence[int]) -> Iterator[list[int]]:
    """Yield the rings of a graph in which each has one successor, or -1 for none."""
    seen_from = [-1] * len(follows)
    for start in range(len(follows)):
        at, path = start, []
        while at >= 0 and seen_from[at] < 0:
            seen_from[at] = start
            path.append(at)
            at = follows[at]
        if at >= 0 and seen_from[at] == start:
            yield path[path.index(at) :]
