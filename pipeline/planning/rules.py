"""The rack rule as arithmetic on rows: what a partition can have at best, and what it has."""

from __future__ import annotations

import numpy as np

from pipeline.planning.cluster import NONE, Brokers, Cluster, Counts, Indexes, Mask, Role, TooFewBrokers


def racks_of(brokers: Brokers, replicas: Indexes) -> Indexes:
    """Return the rack of each place of these rows; `NONE` where it is empty."""
    return np.append(brokers.racks, NONE).astype(np.int32)[replicas]


def distinct(rows: Indexes) -> Counts:
    """Return how many different values each row has, `NONE` not counted."""
    ordered = np.sort(rows, axis=1)
    is_new = ordered != NONE
    is_new[:, 1:] &= ordered[:, 1:] != ordered[:, :-1]
    return np.asarray(np.count_nonzero(is_new, axis=1))


def holds(rows: Indexes, values: Indexes | int) -> Mask:
    """Return which rows have a value: one for all, or one for each. By columns: they are few, the rows many."""
    found = np.zeros(len(rows), np.bool_)
    for column in range(rows.shape[1]):
        found |= rows[:, column] == values
    return found


def kept(cluster: Cluster) -> Mask:
    """Return which places hold a replica on a broker that keeps what it has."""
    brokers = cluster.brokers
    return np.asarray(np.append(brokers.roles == Role.KEEPS, False)[cluster.replicas])


def racks_needed(cluster: Cluster) -> Counts:
    """Return in how many racks each partition must stand: as many as it has replicas, or as there are for it.

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
        raise TooFewBrokers(first, int(cluster.widths[first]), int(available[first]), len(lacking))
    rack_takes = np.zeros(brokers.rack_count + 1, np.bool_)
    rack_takes[brokers.racks[brokers.takers]] = True
    racks = racks_of(brokers, cluster.replicas)
    beside = np.where(is_kept & ~rack_takes[racks], racks, NONE).astype(np.int32)
    return np.asarray(np.minimum(cluster.widths, np.count_nonzero(rack_takes) + distinct(beside)))
