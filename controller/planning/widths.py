"""Partitions get more replicas, or fewer: the replication factor of a topic is set.

A replica that is to come is planned as one that leaves a broker which is not there: so it goes where `draining` puts
it. Of those that are there, the ones that help least go: out of sync, on a broker that takes none (a dead one), in a
rack that another is in, then on the fullest broker. The preferred leader goes only for the first two reasons.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from quorate.controller.planning.cluster import (
    NONE,
    BrokerRole,
    Brokers,
    ClusterLayout,
    Counts,
    Indexes,
    Mask,
    ReassignmentPlan,
    counts_of,
)
from quorate.controller.planning.draining import plan_drain
from quorate.controller.planning.forced import parts
from quorate.controller.planning.rules import racks_of

# Reasons for a replica to go, in their order: each outweighs all that come after it, and the load, which is below 1.
_OUT_OF_SYNC, _KEPT, _SHARED_RACK, _NOT_PREFERRED = 8, 4, 2, 1


def plan_widths(cluster: ClusterLayout, width: int, out_of_sync: Mask | None = None) -> ReassignmentPlan:
    """Return where the replicas of partitions are to be that shall have `width` each, which is positive.

    Args:
        cluster: no broker of it is drained. out_of_sync: bool[partitions, places], replicas that are not in the ISR.

    Raises:
        TooFewBrokers: there are fewer brokers than replicas.
    """
    more = max(0, width - cluster.replicas.shape[1])
    before = replace(
        cluster,
        replicas=np.pad(cluster.replicas, ((0, 0), (0, more)), constant_values=NONE),
        lost=None if cluster.lost is None else np.pad(cluster.lost, ((0, 0), (0, more))),
    )
    stale = np.zeros(before.replicas.shape, np.bool_)
    if out_of_sync is not None:
        stale[:, : out_of_sync.shape[1]] = out_of_sync
    narrow = _narrowed(before, width, stale)
    coming = _coming(narrow, width, len(cluster.brokers))
    after = plan_drain(_with_absent(before, coming, max(0, int(coming.max(initial=NONE)) + 1 - len(cluster.brokers))))
    return ReassignmentPlan(before, after.after)


def _narrowed(cluster: ClusterLayout, width: int, stale: Mask) -> Indexes:
    """Return the rows with `width` replicas at most."""
    replicas = cluster.replicas.copy()
    loads = counts_of(replicas, len(cluster.brokers))
    if cluster.other_loads is not None:
        loads = loads + cluster.other_loads
    keeps = np.append(cluster.brokers.roles == BrokerRole.KEEPS, False)
    while len(wide := np.flatnonzero(np.count_nonzero(replicas != NONE, axis=1) > width)):
        # In parts, the loads renewed between them: so not all of them leave the same broker.
        for rows in parts(wide):
            held = replicas[rows]
            racks = racks_of(cluster.brokers, held)
            is_shared = np.count_nonzero(racks[:, :, None] == racks[:, None, :], axis=2) > 1
            ranks = _OUT_OF_SYNC * stale[rows] + _KEPT * keeps[held] + _SHARED_RACK * is_shared
            ranks[:, 1:] += _NOT_PREFERRED
            ranks = np.where(held == NONE, -1.0, ranks + np.append(loads / (loads.max() + 1), 0.0)[held])
            columns = np.argmax(ranks, axis=1)
            loads -= counts_of(held[np.arange(len(rows)), columns], len(loads))
            replicas[rows, columns] = NONE
    packed = np.argsort(replicas == NONE, axis=1, kind="stable")
    return np.take_along_axis(replicas, packed, axis=1)


def _coming(replicas: Indexes, width: int, first: int) -> Indexes:
    """Return the rows with an absent broker in each place that is to be filled: `first` and those after it."""
    places = np.arange(replicas.shape[1], dtype=np.int32)
    there = np.count_nonzero(replicas != NONE, axis=1)[:, None]
    comes = (places >= there) & (places < width)
    return np.where(comes, first + places - there, replicas).astype(np.int32)


def _with_absent(cluster: ClusterLayout, replicas: Indexes, absent: int) -> ClusterLayout:
    """Return the layout with so many brokers more, which are drained and are in no other's rack."""

    def none(counts: Counts | None) -> Counts | None:
        return None if counts is None else np.pad(counts, (0, absent))

    brokers = cluster.brokers
    numbers = np.arange(absent, dtype=np.int32)
    extended = Brokers(
        np.concatenate([brokers.ids, -2 - numbers]),
        np.concatenate([brokers.racks, brokers.rack_count + numbers]),
        np.concatenate([brokers.roles, np.full(absent, BrokerRole.DRAINS, np.int8)]),
    )
    return replace(
        cluster,
        brokers=extended,
        replicas=replicas,
        other_loads=none(cluster.other_loads),
        other_leads=none(cluster.other_leads),
    )
