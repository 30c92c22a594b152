"""New partitions: where their replicas go, and the records that create them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from quorate.controller.decisions.metadata_version import DIRECTORIES_LEVEL, partition_version
from quorate.controller.partitions.columns import compact
from quorate.controller.topics.broker_choices import broker_choices
from quorate.metadata_log.batches.runs import BatchItem, PartitionRun
from quorate.metadata_log.errors import ApiError, ErrorCode
from quorate.metadata_log.ids import Uuid
from quorate.metadata_log.records.records import PartitionRecord, VersionedRecord
from quorate.snapshots.image.image import MetadataImage

_NO_BROKER = -1
#: Partitions that are made record by record in less time than as columns.
_BY_RECORD_MAX: Final = 8


@dataclass(frozen=True, slots=True)
class NewPartitions:
    """Partitions of one topic that are to be created."""

    topic_id: Uuid
    #: Number of the first; they are consecutive.
    first_partition: int
    #: int32[n, replication factor]
    replicas: NDArray[np.int32]


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


def partition_items(image: MetadataImage, created: Sequence[NewPartitions]) -> list[BatchItem]:
    """PartitionRecords of all new partitions: the ISR is every active replica, its first member leads.

    In order of the numbers of replicas, then of ISR members.
    """
    if sum(len(part.replicas) for part in created) <= _BY_RECORD_MAX:
        return _records(image, created)
    items: list[BatchItem] = []
    for factor in sorted({part.replicas.shape[1] for part in created}):
        parts = [part for part in created if part.replicas.shape[1] == factor]
        counts = [len(part.replicas) for part in parts]
        ids = np.frombuffer(b"".join(part.topic_id for part in parts), np.uint8).reshape(-1, 16)
        numbers = [np.arange(part.first_partition, part.first_partition + len(part.replicas)) for part in parts]
        items += _runs_of_factor(
            image,
            np.repeat(ids, counts, axis=0),
            np.concatenate(numbers).astype(np.int32),
            np.concatenate([part.replicas for part in parts]),
        )
    return items


def _records(image: MetadataImage, created: Sequence[NewPartitions]) -> list[BatchItem]:
    """The assignments of ``_runs_of_factor``, record by record."""
    by_id = broker_choices(image.cluster).by_id
    level = image.features.metadata_version
    version, has_directories = partition_version(level), level >= DIRECTORIES_LEVEL
    records: list[PartitionRecord] = []
    for part in created:
        for partition_id, replicas in enumerate(part.replicas.tolist(), part.first_partition):
            isr = tuple([replica for replica in replicas if by_id[replica][0]])
            records.append(
                PartitionRecord(
                    partition_id=partition_id,
                    topic_id=part.topic_id,
                    replicas=tuple(replicas),
                    isr=isr,
                    leader=isr[0],
                    leader_epoch=0,
                    partition_epoch=0,
                    directories=tuple([by_id[replica][1] for replica in replicas]) if has_directories else (),
                )
            )
    if len(records) > 1:
        records.sort(key=lambda record: (len(record.replicas), len(record.isr)))
    return [VersionedRecord(record, version) for record in records]


def _runs_of_factor(
    image: MetadataImage,
    topic_ids: NDArray[np.uint8],
    partition_ids: NDArray[np.int32],
    replicas: NDArray[np.int32],
) -> list[PartitionRun]:
    """Runs of partitions with equally many replicas: one per size of the ISR."""
    brokers = broker_choices(image.cluster)
    at = np.searchsorted(brokers.ids, replicas)
    is_active = brokers.is_active.take(at)
    isr = replicas if is_active.all() else compact(replicas, is_active, _NO_BROKER)
    level = image.features.metadata_version
    directories = brokers.directories.take(at, axis=0) if level >= DIRECTORIES_LEVEL else None
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
