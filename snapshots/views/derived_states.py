"""The states that Kafka's older controller kept for every partition and replica, derived from an image.

That controller (``PartitionStateMachine``, ``ReplicaStateMachine``) held them in memory and moved them itself. Here
nothing holds them: each is a function of the image, so they cannot disagree with it, and have no memory of how it came
about. What that means for each state stands with it. The three states of a replica under deletion are not in any image:
a deleted topic is gone at once; see ``controller.partitions.replica_deletions``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from quorate.snapshots.counts.tally import ADDING, NEW, OFFLINE
from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.image.online_replicas import OnlineDirectories
from quorate.snapshots.table.kept_counts import tally_of
from quorate.snapshots.table.partition import Partition
from quorate.snapshots.views.state_names import (
    DELETION_INELIGIBLE,
    DELETION_STARTED,
    DELETION_SUCCESSFUL,
    NEW_PARTITION,
    NEW_REPLICA,
    NON_EXISTENT_PARTITION,
    NON_EXISTENT_REPLICA,
    OFFLINE_PARTITION,
    OFFLINE_REPLICA,
    ONLINE_PARTITION,
    ONLINE_REPLICA,
    PartitionState,
    ReplicaState,
)

#: State -> what a partition may have been before (Kafka's ``validPreviousStates``).
PARTITION_PREVIOUS: Final[Mapping[PartitionState, frozenset[PartitionState]]] = {
    NEW_PARTITION: frozenset({NON_EXISTENT_PARTITION}),
    ONLINE_PARTITION: frozenset({NEW_PARTITION, ONLINE_PARTITION, OFFLINE_PARTITION}),
    OFFLINE_PARTITION: frozenset({NEW_PARTITION, ONLINE_PARTITION, OFFLINE_PARTITION}),
    NON_EXISTENT_PARTITION: frozenset({OFFLINE_PARTITION}),
}
_LIVING: Final[frozenset[ReplicaState]] = frozenset({NEW_REPLICA, ONLINE_REPLICA, OFFLINE_REPLICA, DELETION_INELIGIBLE})
#: State -> what a replica may have been before (Kafka's ``validPreviousStates``).
REPLICA_PREVIOUS: Final[Mapping[ReplicaState, frozenset[ReplicaState]]] = {
    NEW_REPLICA: frozenset({NON_EXISTENT_REPLICA}),
    ONLINE_REPLICA: _LIVING,
    OFFLINE_REPLICA: _LIVING,
    DELETION_STARTED: frozenset({OFFLINE_REPLICA}),
    DELETION_SUCCESSFUL: frozenset({DELETION_STARTED}),
    DELETION_INELIGIBLE: frozenset({OFFLINE_REPLICA, DELETION_STARTED}),
    NON_EXISTENT_REPLICA: frozenset({DELETION_SUCCESSFUL}),
}

#: What one committed change may do at once: the legal steps that it stands for, the first and last state included.
PARTITION_CHAINS: Final[tuple[tuple[PartitionState, ...], ...]] = (
    # Creation: one record has the replicas, the ISR and the leader.
    (NON_EXISTENT_PARTITION, NEW_PARTITION, ONLINE_PARTITION),
    # Deletion: one record removes the topic.
    (ONLINE_PARTITION, OFFLINE_PARTITION, NON_EXISTENT_PARTITION),
)
_DELETION: Final[tuple[ReplicaState, ...]] = (
    OFFLINE_REPLICA,
    DELETION_STARTED,
    DELETION_SUCCESSFUL,
    NON_EXISTENT_REPLICA,
)
#: As ``PARTITION_CHAINS``. A replica that leaves the image goes the whole way: the image does not wait for its data.
REPLICA_CHAINS: Final[tuple[tuple[ReplicaState, ...], ...]] = (
    (NON_EXISTENT_REPLICA, NEW_REPLICA, ONLINE_REPLICA),
    (NON_EXISTENT_REPLICA, NEW_REPLICA, OFFLINE_REPLICA),
    (NEW_REPLICA, *_DELETION),
    (ONLINE_REPLICA, *_DELETION),
    _DELETION,
)
#: What one report of a broker, or its death or return, may do at once to a replica of a deleted topic. What had to wait
#: is tried again by way of offline, as in Kafka; and with the last replica of a topic all of them leave the view.
REPLICA_DELETION_CHAINS: Final[tuple[tuple[ReplicaState, ...], ...]] = (
    (DELETION_INELIGIBLE, OFFLINE_REPLICA, DELETION_STARTED),
    (DELETION_INELIGIBLE, OFFLINE_REPLICA, DELETION_STARTED, DELETION_SUCCESSFUL),
    (DELETION_INELIGIBLE, *_DELETION),
    (DELETION_STARTED, DELETION_SUCCESSFUL, NON_EXISTENT_REPLICA),
)
#: The one step that Kafka's table does not have: the broker of a replica that is being added died and came back.
#: Kafka's controller then called the replica online; the image knows that it is still being added.
REPLICA_RETURN: Final[tuple[ReplicaState, ReplicaState]] = (OFFLINE_REPLICA, NEW_REPLICA)


def partition_state(partition: Partition | None) -> PartitionState:
    """The state of a partition; None = the image has none such."""
    if partition is None:
        return NON_EXISTENT_PARTITION
    if partition.has_leader:
        return ONLINE_PARTITION
    # Losing a leader raises the epochs.
    is_as_created = partition.leader_epoch == 0 and partition.partition_epoch == 0
    return NEW_PARTITION if is_as_created else OFFLINE_PARTITION


def replica_state(image: MetadataImage, partition: Partition | None, broker_id: int) -> ReplicaState:
    """The state of the replica of a partition on a broker; None = the image has no such partition."""
    if partition is None or broker_id not in partition.replicas:
        return NON_EXISTENT_REPLICA
    broker = image.cluster.brokers.get(broker_id)
    directory = partition.directories[partition.replicas.index(broker_id)]
    if broker is None or broker.is_fenced or not broker.has_online(directory):
        return OFFLINE_REPLICA
    return NEW_REPLICA if broker_id in partition.adding_replicas else ONLINE_REPLICA


def replica_states(image: MetadataImage, partition: Partition) -> list[ReplicaState]:
    """The states of all replicas of a partition, in their order."""
    return [replica_state(image, partition, broker_id) for broker_id in partition.replicas]


def offline_replicas(partition: Partition, states: Sequence[ReplicaState]) -> list[int]:
    """The replicas of a partition that are offline; ``states``: those of all its replicas, in their order."""
    return [id_ for id_, state in zip(partition.replicas, states, strict=True) if state == OFFLINE_REPLICA]


@dataclass(frozen=True, slots=True)
class StateCounts:
    """Partitions and replicas by state; only states that an image can show, each of them."""

    partitions: Mapping[PartitionState, int]
    replicas: Mapping[ReplicaState, int]


def count_states(image: MetadataImage) -> StateCounts:
    """States of all partitions of an image and of all their replicas, out of the counts kept with its table."""
    tally = tally_of(image.partitions)
    shapes, counts = tally.shapes, tally.partitions.counts
    new, without_leader = int(counts[shapes.are(NEW)].sum()), int(counts[shapes.are(OFFLINE)].sum())
    brokers, codes, parts, _ = tally.replicas.keys
    living = [broker.id for broker in image.cluster.brokers.values() if not broker.is_fenced]
    online = np.isin(brokers, living) & OnlineDirectories(image).are_online(brokers, codes)
    of_replicas, is_added = tally.replicas.counts, (parts & ADDING) != 0
    return StateCounts(
        partitions={
            NEW_PARTITION: new,
            ONLINE_PARTITION: int(counts.sum()) - without_leader,
            OFFLINE_PARTITION: without_leader - new,
        },
        replicas={
            NEW_REPLICA: int(of_replicas[online & is_added].sum()),
            ONLINE_REPLICA: int(of_replicas[online & ~is_added].sum()),
            OFFLINE_REPLICA: int(of_replicas[~online].sum()),
        },
    )
