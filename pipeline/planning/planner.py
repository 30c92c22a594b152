"""The plan of a cluster: the steps of this package, one after the other."""

from __future__ import annotations

from quorate.pipeline.planning.balancing import even_replicas
from quorate.pipeline.planning.cluster import ClusterLayout, ReassignmentPlan
from quorate.pipeline.planning.forced import follow_rules
from quorate.pipeline.planning.leaders import even_leaders, wanted_leads
from quorate.pipeline.planning.levels import targets
from quorate.pipeline.planning.move_count import save_moves
from quorate.pipeline.planning.placement import ReplicaPlacement
from quorate.pipeline.planning.rules import racks_needed


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
