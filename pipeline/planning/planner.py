"""The plan of a cluster: the steps of this package, one after the other."""

from __future__ import annotations

from typing import Final

import numpy as np

from pipeline.planning.cluster import Cluster, Counts, Plan
from pipeline.planning.evening import even_replicas
from pipeline.planning.forced import follow_rules
from pipeline.planning.leaders import even_leaders, wanted_leads
from pipeline.planning.levels import targets
from pipeline.planning.placement import Placement
from pipeline.planning.rules import racks_needed

#: Times that a plan is made anew for what the one before reached; further ones have brought nothing.
_TRIES: Final = 3


def plan(cluster: Cluster) -> Plan:
    """Return where the replicas of a cluster are to be: the same cluster always gives the same plan.

    Raises:
        TooFewBrokers: a partition has more replicas than there are brokers for them.
    """
    needed, wanted = racks_needed(cluster), targets(cluster)
    best: Plan | None = None
    for _ in range(_TRIES):
        placement = _placed(cluster, needed, wanted)
        found = Plan(cluster, placement.replicas)
        if best is not None and found.moves >= best.moves:
            return best
        best = found
        if not ((placement.loads != wanted) & cluster.brokers.takers).any():
            return best
        # What was wanted was out of reach, and steps were made towards it: what was reached is not.
        wanted = np.where(cluster.brokers.takers, placement.loads, 0)
    assert best is not None
    return best


def _placed(cluster: Cluster, needed: Counts, wanted: Counts) -> Placement:
    placement = Placement(cluster, wanted)
    placement.wanted_leads = wanted_leads(cluster)
    follow_rules(placement, needed)
    placement.index()
    even_replicas(placement)
    even_leaders(placement)
    return placement
