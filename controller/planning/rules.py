"""The rack rule as arithmetic on rows: what a partition can have at best, and what it has."""

from __future__ import annotations

import numpy as np

from quorate.controller.planning.cluster import (
    NONE,
    BrokerRole,
    Brokers,
    ClusterLayout,
    Counts,
    Indexes,
    Mask,
    TooFewBrokers,
)


def racks_of(brokers: Brokers, replicas: Indexes) -> Indexes:
    """int32[n, places]: the rack of each place of these rows; `NONE` where it is empty."""
    return np.append(brokers.racks, NONE).astype(np.int32)[replicas]


def distinct(rows: Indexes) -> Counts:
    """int64[n]: how many different values each row has, `NONE` not counted."""
    ordered = np.sort(rows, axis=1)
    is_new = ordered != NONE
    is_new[:, 1:] &= ordered[:, 1:] != ordered[:, :-1]
    return np.asarray(np.count_nonzero(is_new, axis=1))


def holds(rows: Indexes, values: Indexes | int) -> Mask:
    """bool[n]: the rows that have a value: one for all, or one for each. By columns: they are few, the rows many."""
    found = np.zeros(len(rows), np.bool_)
    for column in range(rows.shape[1]):
        found |= rows[:, column] == values
    return found


def kept(cluster: ClusterLayout) -> Mask:
    """bool[partitions, places]: those with a replica on a broker that keeps what it has."""
    brokers = cluster.brokers
    return np.asarray(np.append(brokers.roles == BrokerRole.KEEPS, False)[cluster.replicas])


def racks_needed(cluster: ClusterLayout) -> Counts:
    """int64[partitions]: in how many racks each must stand: as many as it has replicas, or as there are for it.

    The racks for it are those of the brokers that take replicas, and those of brokers that keep one of it.

    Raises:
        TooFewBrokers: a partition has more replicas than there are brokers for it.
    """
    brokers = cluster.brokers
    takers = int(np.count_nonzero(brokers.takers))
    is_kept = kept(cluster)
    available = takers + np.count_nonzero(is_kept, axis=1)
    lacking = np.flatnonzero(cluster.widths > available)
    if len(lacking):
        first = int(lacking[0])
        raise TooFewBrokers(lacking, int(cluster.widths[first]), int(available[first]))
    rack_takes = np.zeros(brokers.rack_count + 1, np.bool_)
    rack_takes[brokers.racks[brokers.takers]] = True
    racks = racks_of(brokers, cluster.replicas)
    beside = np.where(is_kept & ~rack_takes[racks], racks, NONE).astype(np.int32)
    return np.asarray(np.minimum(cluster.widths, np.count_nonzero(rack_takes) + distinct(beside)))


def lost_in(cluster: ClusterLayout, replicas: Indexes) -> Mask:
    """bool[partitions, places]: those of another arrangement whose replica is lost: it stands where it was.

    A replica on another broker than before is a new copy, in a directory that is online.
    """
    found = np.zeros(replicas.shape, np.bool_)
    if cluster.lost is not None:
        rows = np.flatnonzero(cluster.lost.any(axis=1))
        gone = np.where(cluster.lost[rows], cluster.replicas[rows], NONE)
        found[rows] = (replicas[rows][:, :, None] == gone[:, None, :]).any(axis=2) & (replicas[rows] != NONE)
    return found


def may_lead(cluster: ClusterLayout, replicas: Indexes) -> Indexes:
    """int32[partitions, places]: the arrangement without replicas that could be preferred but cannot lead.

    The first of each row is that which has it now, and stays.
    """
    is_lost = lost_in(cluster, replicas)
    is_lost[:, 0] = False
    return np.where(is_lost, NONE, replicas).astype(np.int32)


def passes_over(cluster: ClusterLayout, replicas: Indexes) -> Mask:
    """bool[partitions]: rows with a lost replica first and another that could lead, on a broker that takes replicas."""
    is_lost = lost_in(cluster, replicas)
    takes = np.append(cluster.brokers.takers, False)[replicas]
    return np.asarray(is_lost[:, 0] & (takes & ~is_lost).any(axis=1))
