"""Preferred leaders are evened by the order of replicas within partitions: nothing is copied for that.

Where order does not suffice (partitions of one replica have none), brokers exchange replicas: two moves for each.
A replica on a broker that takes no replicas keeps its place: a partition that prefers such a broker goes on to do so,
for the broker is expected back. A lost replica (`directories`) cannot lead, and a disk is not expected back: a
partition prefers another where it has one on a broker that takes replicas.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from quorate.controller.planning.balancing import level, reached_from
from quorate.controller.planning.cluster import BrokerRole, ClusterLayout, Counts, Indexes, counts_of, even_shares
from quorate.controller.planning.placement import ReplicaPlacement
from quorate.controller.planning.rules import holds, may_lead, passes_over

#: A bound of the time: that many rounds were never needed.
_EXCHANGES_PER_BROKER: Final = 50


def wanted_leads(cluster: ClusterLayout) -> Counts:
    """int64[brokers]: how many partitions each is to lead; brokers that take none keep theirs and are given 0."""
    brokers = cluster.brokers
    leads = counts_of(cluster.replicas[:, 0], len(brokers))
    if not brokers.takers.any():
        return np.zeros(len(brokers), np.int64)
    kept = int(leads[brokers.roles == BrokerRole.KEEPS].sum())
    return even_shares(len(cluster.replicas) - kept, np.flatnonzero(brokers.takers), leads)


def even_leaders(placement: ReplicaPlacement) -> None:
    """Even the preferred leaders of a placement whose replica counts are even, and stay so."""
    left = _EXCHANGES_PER_BROKER * len(placement.brokers)
    while True:
        # Again after each exchange: a partition that had lost all its replicas may have got one that can lead.
        _pass_over_lost(placement)
        leaders = PreferredLeaders(placement.cluster, placement.replicas)
        leaders.even()
        placement.index()
        if left <= 0 or not _exchange(placement, leaders):
            return
        left -= 1


def _pass_over_lost(placement: ReplicaPlacement) -> None:
    """Let the next replica lead where the first is lost: the next of those that can, on a broker that takes."""
    cluster, replicas = placement.cluster, placement.replicas
    rows = np.flatnonzero(passes_over(cluster, replicas))
    candidates = may_lead(cluster, replicas)[rows]
    can = np.append(cluster.brokers.takers, False)[candidates]
    can[:, 0] = False
    columns = np.argmax(can, axis=1)
    first = replicas[rows, 0]
    replicas[rows, 0] = replicas[rows, columns]
    replicas[rows, columns] = first


def _exchange(placement: ReplicaPlacement, leaders: PreferredLeaders) -> bool:
    """Exchange replicas between a broker that leads too many and one that leads too few; return whether it was done."""
    counts, members = leaders.counts, placement.brokers.takers
    if not members.any() or np.ptp(counts[members]) <= 1:
        return False
    highest = int(np.flatnonzero(members)[np.argmax(counts[members])])
    # What can be led instead of the highest by order alone has as many as it, or one less.
    givers = np.flatnonzero(reached_from(highest, leaders.ways, len(counts)))
    takers = np.flatnonzero(members & (counts <= counts[highest] - 2))
    for taker in takers[np.argsort(counts[takers], kind="stable")]:
        for giver in givers[np.argsort(-counts[givers], kind="stable")]:
            most = max(1, int(counts[giver] - counts[taker]) // 2)
            if placement.exchange(int(giver), int(taker), most):
                return True
    return False


class PreferredLeaders:
    """The choice of a preferred leader among the replicas of each partition.

    Args:
        replicas: changed in place. rows: those whose choice is free; None: all.
    """

    def __init__(self, cluster: ClusterLayout, replicas: Indexes, rows: Counts | None = None) -> None:
        brokers = cluster.brokers
        rows = np.arange(len(replicas)) if rows is None else rows
        self._brokers = brokers
        self._replicas = replicas
        #: The same rows without those that cannot lead, which nothing is given to: kept up in the same way.
        self._may_lead = may_lead(cluster, replicas)
        self.counts = counts_of(replicas[:, 0], len(brokers))
        if cluster.other_leads is not None:
            self.counts += cluster.other_leads
        first = replicas[rows, 0]
        order = rows[np.argsort(first, kind="stable")]
        self._rows = np.split(order, np.cumsum(counts_of(first, len(brokers)))[:-1])

    def even(self) -> bool:
        """Even the counts as far as order alone can; return whether it could not be evener."""
        return level(self.counts, self._brokers.takers, self.ways, self.move)

    def ways(self, source: int) -> Counts:
        """int64[brokers]: how many of the partitions that the source leads have a replica on each."""
        found = counts_of(self._may_lead[self._rows[source], 1:], len(self._brokers))
        found[~self._brokers.takers] = 0
        return found

    def move(self, source: int, sink: int, most: int) -> int:
        """Let the sink lead up to `most` of the source's partitions in its place; return how many."""
        rows = self._rows[source]
        held = self._may_lead[rows]
        at = np.flatnonzero(holds(held, sink))[:most]
        moved, columns = rows[at], np.argmax(held[at] == sink, axis=1)
        for arrangement in (self._replicas, self._may_lead):
            arrangement[moved, columns] = source
            arrangement[moved, 0] = sink
        self._rows[source] = np.delete(rows, at)
        self._rows[sink] = np.concatenate([self._rows[sink], moved])
        self.counts[source] -= len(at)
        self.counts[sink] += len(at)
        return len(at)
