"""A lower bound of the replica moves of any plan, to say how far a plan is from the best one.

Every broker has a price. What a plan moves is then what its partitions cost one by one, which is their moves and the
prices of the brokers that they stand on, less the prices of all the replicas that brokers have. The two do not depend
on each other any more: for each partition we take the cheapest placement under the rules, and of all counts as even as
the plan's those that are worth most. Whatever the prices, no plan as even has fewer moves than the difference (a
Lagrangian bound: the prices stand for the counts that brokers are to have). Prices decide only how near it comes. Those
of a placement that no ring of replacements makes cheaper reach that placement's moves (A. Frank, "A weighted matroid
intersection algorithm": potentials prove the optimum). So we look for such a placement from the plan on; a plan that
moves more does so for the sake of leaders, which the bound knows nothing of.

Which counts are as even: brokers fall into blocks. From a block no replica can leave to one with less, so the sum of
its counts is the same in all of the evenest placements, and each of its brokers has the block's highest count or one
less. Where a plan takes replicas from brokers that keep theirs, others could be taken instead, and blocks are not
known: then any broker may have any of the counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from quorate.controller.planning.cluster import BrokerRole, ClusterLayout, Counts, ReassignmentPlan, counts_of
from quorate.controller.planning.costs import NO_WAY, least_costs, potentials, replacements
from quorate.controller.planning.exchange import reachable, replica_exchanges
from quorate.controller.planning.move_count import save_moves
from quorate.controller.planning.placement import ReplicaPlacement
from quorate.controller.planning.rules import holds, kept, racks_needed

#: Partitions looked at together: the arrays of so many fit a processor's cache.
_ROWS: Final = 4096


def fewest_moves(plan: ReassignmentPlan) -> int:
    """Return a number of moves that every plan as even as this one needs.

    Args:
        plan: the evenest there is (`validator.PlanVerdict.are_replicas_evenest`).
    """
    cluster = plan.before
    brokers = cluster.brokers
    counts = counts_of(plan.after, len(brokers))
    prices = _prices(plan, counts)
    # Every plan as even leaves as many replicas where they are kept: that they cost nearly nothing makes them stay.
    keeps = brokers.roles == BrokerRole.KEEPS
    prices[keeps] = prices.min(initial=0) - 2
    worth = int((prices * counts)[keeps].sum())
    has_left = int(np.count_nonzero(kept(cluster))) > int(counts[keeps].sum())
    for block in [np.flatnonzero(brokers.takers)] if has_left else _blocks(plan, counts):
        # The dearest have most.
        worth += int((np.sort(prices[block]) * np.sort(counts[block])).sum())
    return max(0, _cheapest(cluster, prices) - worth)


def _prices(plan: ReassignmentPlan, counts: Counts) -> Counts:
    """Return the prices of a placement with these counts that cannot be made cheaper."""
    cheapest = ReplicaPlacement(plan.before, counts, plan.after)
    save_moves(cheapest)
    costs = least_costs(replacements(plan.before, cheapest.replicas))
    return potentials(costs, cheapest.loads, plan.before.brokers.takers)


def _blocks(plan: ReassignmentPlan, counts: Counts) -> Iterator[Counts]:
    """Yield the brokers that those with the highest count can give to, then the same of the rest."""
    brokers = plan.before.brokers
    reach = reachable(replica_exchanges(brokers, plan.after))
    left = brokers.takers.copy()
    while left.any():
        highest = left & (counts == counts[left].max())
        block = np.flatnonzero(left & reach[highest].any(axis=0))
        left[block] = False
        yield block


def _cheapest(cluster: ClusterLayout, prices: Counts) -> int:
    """Return what all partitions cost if each stands where it is cheapest under the rules."""
    needed, newcomers = racks_needed(cluster), _newcomers(cluster, prices)
    starts = range(0, len(cluster.replicas), _ROWS)
    return sum(_cheapest_of(cluster, prices, newcomers, needed, slice(at, at + _ROWS)) for at in starts)


def _newcomers(cluster: ClusterLayout, prices: Counts) -> Counts:
    """Return brokers among which every partition finds those that it may get and that are cheapest for it."""
    brokers, width = cluster.brokers, cluster.replicas.shape[1]
    takers = np.flatnonzero(brokers.takers)
    ordered = takers[np.argsort(prices[takers], kind="stable")]
    in_racks = [found for rack in range(brokers.rack_count) if len(found := ordered[brokers.racks[ordered] == rack])]
    if width <= len(in_racks):
        # Each in a rack of its own: one of the cheapest racks is left whatever racks the others are in. If a rack's
        # cheapest broker is there already, then that one is cheaper than any that comes.
        return np.array(sorted((int(one[0]) for one in in_racks), key=lambda one: prices[one])[:width], np.int64)
    # One for each rack, and then any: of both so many that some are left whichever are there already.
    return np.unique(np.concatenate([ordered[: 3 * width], *(one[: width + 1] for one in in_racks)]))


def _cheapest_of(cluster: ClusterLayout, prices: Counts, newcomers: Counts, needed: Counts, part: slice) -> int:
    """Return the same of some partitions: the cheapest of as many racks as are needed, then the cheapest of the rest.

    That this is the least that they can cost is the greedy algorithm's theorem for matroids.
    """
    brokers, before, needed, widths = cluster.brokers, cluster.replicas[part], needed[part], cluster.widths[part]
    may_stay = np.append(brokers.roles != BrokerRole.DRAINS, False)[before]
    comes = np.broadcast_to(prices[newcomers] + 1, (len(before), len(newcomers))).copy()
    for column in before.T:
        comes[column[:, None] == newcomers[None, :]] = NO_WAY
    costs = np.concatenate([np.where(may_stay, prices[before], NO_WAY), comes], axis=1)
    racks = np.concatenate([brokers.racks[before], np.broadcast_to(brokers.racks[newcomers], comes.shape)], axis=1)
    order = np.argsort(costs, axis=1, kind="stable")
    costs, racks = np.take_along_axis(costs, order, axis=1), np.take_along_axis(racks, order, axis=1)
    is_first = np.empty(costs.shape, np.bool_)
    for column in range(costs.shape[1]):
        is_first[:, column] = ~holds(racks[:, :column], racks[:, column])
    chosen = is_first & (np.cumsum(is_first, axis=1) <= needed[:, None])
    chosen |= ~chosen & (np.cumsum(~chosen, axis=1) <= (widths - needed)[:, None])
    return int(costs[chosen].sum())
