"""The plan of a cluster: the steps of this package, one after the other."""

from __future__ import annotations

from quorate.controller.planning.balancing import even_replicas
from quorate.controller.planning.cluster import ClusterLayout, ReassignmentPlan
from quorate.controller.planning.forced import follow_rules
from quorate.controller.planning.leaders import even_leaders, wanted_leads
from quorate.controller.planning.levels import targets
from quorate.controller.planning.move_count import save_moves
from quorate.controller.planning.placement import ReplicaPlacement
from quorate.controller.planning.rules import racks_needed


def plan(cluster: ClusterLayout) -> ReassignmentPlan:
    """Return where the replicas of a cluster are to be: the same cluster always gives the same plan.

    Raises:
        TooFewBrokers: a partition has more replicas than there are brokers for them.
    """
    needed = racks_needed(cluster)
    placement = ReplicaPlacement(cluster, targets(cluster))
    placement.wanted_leads = wanted_leads(cluster)
    follow_rules(placement, needed)
    placement.index()
    even_replicas(placement)
    save_moves(placement)
    even_leaders(placement)
    return ReassignmentPlan(cluster, placement.replicas)
