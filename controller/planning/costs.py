"""Costs of replacements: the graph by which a plan is made cheaper, and by which its bound is proved.

A replica that comes to a broker that did not have it before is one move. So a replacement costs 1 where a replica that
was there before gives way to a new one, nothing where a new one gives way to another new one or one that was there to
another that was, and -1 where a new one gives way to one that was there: a move that is taken back.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from quorate.controller.planning.cluster import NONE, ClusterLayout, Counts, Indexes, Mask
from quorate.controller.planning.exchange import pairs
from quorate.controller.planning.rules import holds, racks_of

#: The cost where there is no such replacement. More than any path of others costs, and so small that sums are exact.
NO_WAY: Final = 1 << 40
#: All costs there are; their places are those of the counts of `replacements`.
COSTS: Final = (-1, 0, 1)


def replacements(cluster: ClusterLayout, replicas: Indexes) -> Counts:
    """int64[3, brokers, brokers]: how many replicas of one could be replaced by one on another.

    For a placement that follows the rules, among brokers that take replicas. Indexes: a place in `COSTS`, from, to.
    """
    brokers = cluster.brokers
    ways = np.zeros((len(COSTS), len(brokers), len(brokers)), np.int64)
    for column in range(replicas.shape[1]):
        held = np.flatnonzero(replicas[:, column] != NONE)
        was_there = holds(cluster.replicas[held], replicas[held, column])
        for rows, cost in ((held[was_there], 1), (held[~was_there], 0)):
            back = _back(cluster, rows, replicas[rows], column)
            ways[COSTS.index(cost)] += _any(cluster, replicas[rows], column) - back
            ways[COSTS.index(cost - 1)] += back
    return np.where(brokers.takers[:, None] & brokers.takers[None, :], ways, 0)


def least_costs(ways: Counts) -> Counts:
    """int64[brokers, brokers]: for (from, to) the least cost of a replacement, `NO_WAY` where there is none."""
    costs = np.full(ways.shape[1:], NO_WAY, np.int64)
    for cost, counts in reversed(list(zip(COSTS, ways, strict=True))):
        costs[counts > 0] = cost
    return costs


def _any(cluster: ClusterLayout, replicas: Indexes, column: int) -> Counts:
    """Return for (from, to) how many replicas in this column could be replaced."""
    brokers, count = cluster.brokers, len(cluster.brokers)
    source, others, beside, is_alone = _around(cluster, replicas, column)
    alone = np.bincount(source[is_alone], minlength=count)
    shared = np.bincount(source[~is_alone], minlength=count)
    in_rack = pairs(source[is_alone], beside[is_alone], (count, brokers.rack_count))
    on_broker = pairs(source[~is_alone], others[~is_alone], (count, count))
    return alone[:, None] - in_rack[:, brokers.racks] + shared[:, None] - on_broker


def _back(cluster: ClusterLayout, rows: Counts, replicas: Indexes, column: int) -> Counts:
    """Return the same of those only that would be replaced by one that was there before and is not now."""
    brokers, count = cluster.brokers, len(cluster.brokers)
    found = np.zeros((count, count), np.int64)
    differs = (np.sort(cluster.replicas[rows], axis=1) != np.sort(replicas, axis=1)).any(axis=1)
    before, replicas = cluster.replicas[rows[differs]], replicas[differs]
    source, _, beside, is_alone = _around(cluster, replicas, column)
    for sink in before.T:
        fits = (sink != NONE) & ~holds(replicas, sink) & ~(is_alone & holds(beside, brokers.racks[sink]))
        at = source[fits].astype(np.int64) * count + sink[fits]
        found += np.bincount(at, minlength=count * count).reshape(count, count)
    return found


def _around(cluster: ClusterLayout, replicas: Indexes, column: int) -> tuple[Indexes, Indexes, Indexes, Mask]:
    """Return a column, the other columns, their racks, and whether the column's is none of these."""
    source, others = replicas[:, column], np.delete(replicas, column, axis=1)
    beside = racks_of(cluster.brokers, others)
    return source, others, beside, ~holds(beside, cluster.brokers.racks[source])


def potentials(costs: Counts, counts: Counts, members: Mask) -> Counts:
    """int64[brokers]: prices of the brokers that no replacement undercuts, as far as there are such prices.

    Where the placement is the cheapest, price(from) - price(to) is the cost at most. Where one broker has one
    replica more than another, its price is not lower: it could be the other way round.

    Args:
        costs: `replacement_costs`. counts: replicas of each broker. members: those that take replicas.
    """
    costs = with_swaps(costs, counts, members)
    prices = np.zeros(len(costs), np.int64)
    for _ in range(len(costs)):
        through = np.minimum(prices, (costs + prices[None, :]).min(axis=1, initial=NO_WAY))
        if (through == prices).all():
            break
        prices = through
    return prices


def with_swaps(costs: Counts, counts: Counts, members: Mask) -> Counts:
    """int64[brokers, brokers]: costs with the way back, for nothing, from one that has one less: they change parts."""
    has_one_less = (counts[:, None] + 1 == counts[None, :]) & members[:, None] & members[None, :]
    return np.where(has_one_less & (costs > 0), 0, costs)
