"""Possible exchanges of replicas and leaderships between brokers: the graph by which a balance is judged.

The planner does not judge by it: it looks at one broker at a time, this at all of them at once.
"""

from __future__ import annotations

import numpy as np

from quorate.controller.planning.cluster import NONE, Brokers, Counts, Indexes, Mask
from quorate.controller.planning.rules import distinct, racks_of


def replica_exchanges(brokers: Brokers, replicas: Indexes) -> Mask:
    """bool[brokers, brokers]: for (from, to) whether some replica on one could be replaced by one on the other.

    For a placement that follows the rules: a replica alone in its rack goes to a rack without one, or stays in its own;
    one of several in its rack goes to any broker without one.
    """
    count, width = len(brokers), replicas.shape[1]
    racks = racks_of(brokers, replicas)
    is_alone, goes_to_rack = np.zeros(count, np.int64), np.zeros((count, brokers.rack_count), np.int64)
    is_one_of, goes_to = np.zeros(count, np.int64), np.zeros((count, count), np.int64)
    for column in range(width):
        held = np.flatnonzero(replicas[:, column] != NONE)
        source = replicas[held, column]
        others = np.delete(replicas[held], column, axis=1)
        beside = np.delete(racks[held], column, axis=1)
        alone = ~(beside == racks[held, column, None]).any(axis=1)
        is_alone += np.bincount(source[alone], minlength=count)
        is_one_of += np.bincount(source[~alone], minlength=count)
        goes_to_rack += pairs(source[alone], beside[alone], (count, brokers.rack_count))
        goes_to += pairs(source[~alone], others[~alone], (count, count))
    to_rack = goes_to_rack < is_alone[:, None]
    found = to_rack[:, brokers.racks] | (goes_to < is_one_of[:, None])
    return np.asarray(found & brokers.takers[:, None] & brokers.takers[None, :])


def pairs(sources: Indexes, others: Indexes, shape: tuple[int, int]) -> Counts:
    """int64[sources, others]: how many rows have each (source, other): each other once for a row."""
    found = np.zeros(shape[0] * shape[1], np.int64)
    for column in range(others.shape[1]):
        new = (others[:, column] != NONE) & ~(others[:, :column] == others[:, column, None]).any(axis=1)
        at = sources[new].astype(np.int64) * shape[1] + others[new, column]
        found += np.bincount(at, minlength=len(found))
    return found.reshape(shape)


def leader_exchanges(brokers: Brokers, replicas: Indexes) -> Mask:
    """bool[brokers, brokers]: for (from, to) whether some partition that prefers one has a replica on the other.

    Args:
        replicas: without those that cannot lead (`rules.may_lead`).
    """
    count = len(brokers)
    found = pairs(replicas[:, 0], replicas[:, 1:], (count, count)) > 0
    return np.asarray(found & brokers.takers[:, None] & brokers.takers[None, :])


def reachable(edges: Mask) -> Mask:
    """bool[brokers, brokers]: for (from, to) whether a path leads there; every broker reaches itself."""
    closed = edges | np.eye(len(edges), dtype=np.bool_)
    while True:
        further = (closed.astype(np.float32) @ closed.astype(np.float32)) > 0
        if (further == closed).all():
            return closed
        closed = further


def is_evenest(counts: Counts, members: Mask, reach: Mask) -> bool:
    """Whether no path leads from a member to one with two less: then no other placement is evener."""
    inside = counts[members]
    return not bool((reach[np.ix_(members, members)] & (inside[:, None] >= inside[None, :] + 2)).any())


def breaks_rack_rule(brokers: Brokers, replicas: Indexes, needed: Counts) -> Mask:
    """bool[partitions]: those that stand in fewer racks than they need to."""
    return distinct(racks_of(brokers, replicas)) < needed
