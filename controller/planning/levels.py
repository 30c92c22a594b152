"""The target number of replicas for each broker: even where the racks allow it, else as even as they allow.

A partition stands at most once in a rack (or, with more replicas than racks, at least once in each): so a set of racks
can hold only so many replicas of all. Where that is less than the fair share of its brokers, they get less and the
others more. Racks are looked at from the largest down: with f(s) what the s largest racks can hold and n(s) their
brokers, the levels are the slopes of the lower convex hull of the points (n(s), f(s)).
"""

from __future__ import annotations

import numpy as np

from quorate.controller.planning.cluster import NONE, ClusterLayout, Counts, counts_of, even_shares
from quorate.controller.planning.rules import kept, racks_of


def targets(cluster: ClusterLayout) -> Counts:
    """int64[brokers]: the number of replicas that each is to have; brokers that take none get 0.

    Within a level counts differ by one at most; the larger ones go to those that have most now.
    """
    brokers = cluster.brokers
    wanted = np.zeros(len(brokers), np.int64)
    loads = counts_of(cluster.replicas, len(brokers))
    sizes = np.bincount(brokers.racks[brokers.takers], minlength=brokers.rack_count)
    racks = np.argsort(-sizes, kind="stable")[: np.count_nonzero(sizes)]
    if not len(racks):
        return wanted
    held = _held_by_largest(cluster, racks, np.cumsum(sizes[racks]))
    points = np.concatenate([[0], np.cumsum(sizes[racks])])
    start = 0
    while start < len(racks):
        slopes = (held[start + 1 :] - held[start]) / (points[start + 1 :] - points[start])
        # The last of equal slopes: a level is as wide as it can be.
        end = len(racks) - int(np.argmin(slopes[::-1]))
        members = np.flatnonzero(brokers.takers & np.isin(brokers.racks, racks[start:end]))
        wanted += even_shares(int(held[end] - held[start]), members, loads)
        start = end
    return wanted


def _held_by_largest(cluster: ClusterLayout, racks: Counts, brokers_in: Counts) -> Counts:
    """Return what the first 0, 1, 2, ... of these racks can hold of all replicas that may be moved."""
    is_kept = kept(cluster)
    free = cluster.widths - np.count_nonzero(is_kept, axis=1)
    taken = np.where(is_kept, racks_of(cluster.brokers, cluster.replicas), NONE)
    # Partitions of the same width with replicas kept in the same racks are alike; most have none kept.
    bound = is_kept.any(axis=1)
    loose, loose_counts = np.unique(free[~bound], return_counts=True)
    kinds, counts = np.unique(np.column_stack([free[bound], np.sort(taken[bound])]), axis=0, return_counts=True)
    free, counts = np.concatenate([loose, kinds[:, 0]]), np.concatenate([loose_counts, counts])
    taken = np.concatenate([np.full((len(loose), taken.shape[1]), NONE), kinds[:, 1:]])
    is_open = np.ones((len(free), len(racks)), np.bool_)
    for place, rack in enumerate(racks):
        is_open[:, place] = ~(taken == rack).any(axis=1)
    inside = np.cumsum(is_open, axis=1)
    spread = np.minimum(free, inside[:, -1])
    most = free[:, None] - np.maximum(0, spread[:, None] - inside)
    # No broker holds two replicas of one partition.
    most = np.minimum(most, brokers_in[None, :])
    return np.concatenate([[0], (most * counts[:, None]).sum(axis=0)])
