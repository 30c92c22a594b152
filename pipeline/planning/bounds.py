"""What no plan can do with less: a lower bound of replica moves, to say how far a plan is from the best one.

Three kinds of moves that do not overlap:

- every replica on a drained broker;
- what a broker has over the most that it can have in any of the evenest placements. Those fall into blocks of brokers:
  from a block no replica can leave to one with less, so the sum of its counts is the same in all of them, and each of
  its brokers has the block's highest count or one less. A block allows so many of the higher count: they are given to
  brokers that have as many;
- a replica too many in a rack, where none of those that could go is on a broker of the second kind.

What must be moved for both reasons, but cannot be the same replicas, is counted once only: the bound may be too low.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pipeline.planning.cluster import NONE, Counts, Indexes, Mask, Plan, Role, counts_of
from pipeline.planning.exchange import reachable, replica_exchanges
from pipeline.planning.rules import distinct, racks_needed, racks_of


def fewest_moves(plan: Plan) -> int:
    """Return a number of moves that every plan as even as this one needs.

    Args:
        plan: the evenest there is (`validator.Verdict.are_replicas_evenest`).
    """
    cluster = plan.before
    brokers = cluster.brokers
    before, after = counts_of(cluster.replicas, len(brokers)), counts_of(plan.after, len(brokers))
    moves = int(before[brokers.roles == Role.DRAINS].sum())
    # Whether a broker may lose replicas for the sake of balance.
    gives = brokers.roles == Role.DRAINS
    for block in _blocks(after, brokers.takers, reachable(replica_exchanges(brokers, plan.after))):
        highest = after[block].max(initial=0)
        low = highest - 1
        allowed = int((after[block] - low).sum())
        over = np.maximum(0, before[block] - low)
        moves += int(over.sum()) - min(allowed, int(np.count_nonzero(over)))
        gives[block] = over > 0
    return moves + _crowded(plan, gives)


def _blocks(counts: Counts, members: Mask, reach: Mask) -> Iterator[Counts]:
    """Yield the brokers that those with the highest count can give to, then the same of the rest."""
    left = members.copy()
    while left.any():
        highest = left & (counts == counts[left].max())
        block = np.flatnonzero(left & reach[highest].any(axis=0))
        left[block] = False
        yield block


def _crowded(plan: Plan, gives: Mask) -> int:
    """Return how many replicas must leave a rack that has several, and are all on brokers that need give none."""
    cluster = plan.before
    racks = racks_of(cluster.brokers, cluster.replicas)
    drained = np.append(cluster.brokers.roles == Role.DRAINS, False)[cluster.replicas]
    racks = np.where(drained, NONE, racks).astype(np.int32)
    lacking = racks_needed(cluster) - distinct(racks) - np.count_nonzero(drained, axis=1)
    rows = np.flatnonzero(lacking > 0)
    could_go = _has_company(racks[rows])
    is_counted = ~(could_go & np.append(gives, False)[cluster.replicas[rows]]).any(axis=1)
    return int(lacking[rows][is_counted].sum())


def _has_company(racks: Indexes) -> Mask:
    """Return which places are in a rack that their row has more than once."""
    same = racks[:, :, None] == racks[:, None, :]
    return np.asarray((same.sum(axis=2) > 1) & (racks != NONE))
