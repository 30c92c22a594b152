"""New partitions: where their replicas go, and the records that create them, as runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from controller.metadata_version import DIRECTORIES_LEVEL, partition_version
from controller.partition_columns import compact
from controller.placement import UsableBroker
from metadata_log.errors import ApiError, ErrorCode
from metadata_log.ids import DIRECTORY_MIGRATING, DIRECTORY_UNASSIGNED, UUID_BYTES, Uuid
from metadata_log.runs import PartitionRun
from snapshots.cluster import BrokerRegistration
from snapshots.image import MetadataImage

_NO_BROKER = -1


@dataclass(frozen=True, slots=True)
class NewPartitions:
    """Partitions of one topic that are to be created."""

    topic_id: Uuid
    #: Number of the first; they are consecutive.
    first_partition: int
    #: int32[n, replication factor]
    replicas: NDArray[np.int32]


def usable_brokers(image: MetadataImage) -> list[UsableBroker]:
    """Brokers that may be given replicas: all but those that shut down or have no directory that takes any."""
    return [
        UsableBroker(broker.id, broker.rack, broker.is_fenced)
        for broker in sorted(image.cluster.brokers.values(), key=lambda broker: broker.id)
        if (broker.is_fenced or not broker.in_controlled_shutdown) and not _is_cordoned(broker)
    ]


def _is_cordoned(broker: BrokerRegistration) -> bool:
    return bool(broker.directories) and set(broker.directories) <= set(broker.cordoned_directories)


def default_directory(broker: BrokerRegistration | None) -> Uuid:
    """Where a new replica on this broker is said to be, until the broker says (Kafka's ``DefaultDirProvider``)."""
    if broker is None:
        return DIRECTORY_UNASSIGNED
    if not broker.directories:
        return DIRECTORY_MIGRATING
    return broker.directories[0] if len(broker.directories) == 1 else DIRECTORY_UNASSIGNED


def check_assignment(image: MetadataImage, broker_ids: Sequence[int], replication_factor: int | None) -> None:
    """Refuse a list of replicas that cannot be.

    Args:
        replication_factor: of the partitions before it; None for the first.

    Raises:
        ApiError: INVALID_REPLICA_ASSIGNMENT.
    """
    start = "The manual partition assignment includes"
    if not broker_ids:
        raise ApiError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"{start} an empty replica list.")
    seen: set[int] = set()
    for broker_id in sorted(broker_ids):
        if broker_id not in image.cluster.brokers:
            problem = f"{start} broker {broker_id}, but no such broker is registered."
            raise ApiError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, problem)
        if broker_id in seen:
            problem = f"{start} the broker {broker_id} more than once."
            raise ApiError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, problem)
        seen.add(broker_id)
    if replication_factor is not None and len(broker_ids) != replication_factor:
        raise ApiError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"{start} a partition with {len(broker_ids)} replica(s), but this is not consistent with previous "
            f"partitions, which have {replication_factor} replica(s).",
        )


def check_has_active(image: MetadataImage, partition: int, broker_ids: Iterable[int]) -> None:
    """Refuse a partition that nobody could lead.

    Raises:
        ApiError: INVALID_REPLICA_ASSIGNMENT.
    """
    brokers = image.cluster.brokers
    if not any(broker_id in brokers and brokers[broker_id].is_active for broker_id in broker_ids):
        raise ApiError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"All brokers specified in the manual partition assignment for partition {partition} are fenced or in "
            "controlled shutdown.",
        )


def partition_runs(image: MetadataImage, created: Sequence[NewPartitions]) -> list[PartitionRun]:
    """PartitionRecords of all new partitions: the ISR is every active replica, its first member leads."""
    runs: list[PartitionRun] = []
    for factor in sorted({part.replicas.shape[1] for part in created}):
        parts = [part for part in created if part.replicas.shape[1] == factor]
        counts = [len(part.replicas) for part in parts]
        ids = np.frombuffer(b"".join(part.topic_id for part in parts), np.uint8).reshape(-1, 16)
        numbers = [np.arange(part.first_partition, part.first_partition + len(part.replicas)) for part in parts]
        runs += _runs_of_factor(
            image,
            np.repeat(ids, counts, axis=0),
            np.concatenate(numbers).astype(np.int32),
            np.concatenate([part.replicas for part in parts]),
        )
    return runs


def _runs_of_factor(
    image: MetadataImage,
    topic_ids: NDArray[np.uint8],
    partition_ids: NDArray[np.int32],
    replicas: NDArray[np.int32],
) -> list[PartitionRun]:
    """Runs of partitions with equally many replicas: one per size of the ISR."""
    brokers = sorted(image.cluster.brokers.values(), key=lambda broker: broker.id)
    at = np.searchsorted(np.array([broker.id for broker in brokers], np.int32), replicas)
    is_active = np.array([broker.is_active for broker in brokers]).take(at)
    isr = replicas if is_active.all() else compact(replicas, is_active, _NO_BROKER)
    level = image.features.metadata_version
    directories = None
    if level >= DIRECTORIES_LEVEL:
        ids = np.frombuffer(b"".join(map(default_directory, brokers)), np.uint8).reshape(-1, UUID_BYTES)
        directories = ids.take(at, axis=0)
    sizes = is_active.sum(axis=1)
    runs = []
    for size in np.flatnonzero(np.bincount(sizes)).tolist():
        rows = np.flatnonzero(sizes == size)
        count = len(rows)
        none, zeros = np.empty((count, 0), np.int32), np.zeros(count, np.int32)
        runs.append(
            PartitionRun(
                version=partition_version(level),
                topic_ids=topic_ids.take(rows, axis=0),
                partition_ids=partition_ids.take(rows),
                replicas=replicas.take(rows, axis=0),
                isr=isr[:, :size].take(rows, axis=0),
                removing_replicas=none,
                adding_replicas=none,
                leader=isr[:, 0].take(rows),
                leader_epoch=zeros,
                partition_epoch=zeros,
                directories=None if directories is None else directories.take(rows, axis=0),
            )
        )
    return runs
