"""Replicas leave drained brokers, and nothing else moves: the fewest moves there are, as many as leave.

Where they go is as even as these moves can make it: the places are filled where replicas are fewest, and then evened
along paths (`balancing`) on which only what came goes on. A partition that preferred a drained broker may then prefer
any of its replicas, so that leaders are even too; all others keep their order.
"""

from __future__ import annotations

import numpy as np

from quorate.controller.planning.balancing import even_replicas
from quorate.controller.planning.cluster import BrokerRole, ClusterLayout, Counts, ReassignmentPlan
from quorate.controller.planning.forced import by_lack, replace_drained
from quorate.controller.planning.leaders import PreferredLeaders
from quorate.controller.planning.placement import ReplicaPlacement
from quorate.controller.planning.rules import racks_needed


def plan_drain(cluster: ClusterLayout) -> ReassignmentPlan:
    """Return where the replicas on drained brokers are to be: the same cluster always gives the same plan.

    Raises:
        TooFewBrokers: a partition has more replicas than there are brokers for them.
    """
    needed = racks_needed(cluster)
    roles = cluster.brokers.roles
    is_drained = np.append(roles == BrokerRole.DRAINS, False)[cluster.replicas]
    placement = ReplicaPlacement(cluster, np.zeros(len(roles), np.int64), moves_all=False)
    placement.wanted = _poured(placement.loads, np.flatnonzero(cluster.brokers.takers), int(is_drained.sum()))
    replace_drained(placement, needed)
    placement.index()
    even_replicas(placement)
    PreferredLeaders(cluster, placement.replicas, np.flatnonzero(is_drained[:, 0])).even()
    return ReassignmentPlan(cluster, placement.replicas)


def _poured(loads: Counts, members: Counts, total: int) -> Counts:
    """Return the loads with so many more on some brokers, those with the fewest first, as water in a basin."""
    if not len(members):
        return loads
    room = int(loads[members].max()) + total - loads[members]
    return loads + np.bincount(by_lack(members, room, total), minlength=len(loads))
