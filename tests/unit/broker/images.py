"""Images and batches for the broker's tests, made by replaying records."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from quorate.metadata_log.batches.batch import data_batch, place_batch
from quorate.metadata_log.batches.runs import BatchItem
from quorate.metadata_log.records.records import (
    BrokerRegistrationChangeRecord,
    FeatureLevelRecord,
    PartitionChangeRecord,
    PartitionRecord,
    Record,
    RegisterBrokerRecord,
    TopicRecord,
    VersionedRecord,
)
from quorate.snapshots.checkpoints.checkpoint import checkpoint_items
from quorate.snapshots.image.image import EMPTY_IMAGE, MetadataImage
from quorate.snapshots.image.image_parts import Provenance
from quorate.snapshots.replay.replay import replay

VERSIONS: dict[type[object], int] = {
    RegisterBrokerRecord: 3,
    PartitionRecord: 2,
    PartitionChangeRecord: 2,
    BrokerRegistrationChangeRecord: 0,
}


def uuid(number: int) -> bytes:
    """A uuid that is not reserved."""
    return (1000 + number).to_bytes(16, "big")


def versioned(record: Record) -> VersionedRecord:
    """A record at the version that metadata.version 25 writes."""
    return VersionedRecord(record, VERSIONS.get(type(record), 0))


def replayed(image: MetadataImage, *records: Record) -> MetadataImage:
    """The image after some more records."""
    items: list[BatchItem] = [versioned(record) for record in records]
    end = image.provenance.end_offset + len(records)
    return replay(image, items, Provenance(end - 1, 1, 1_000))


def registration(broker_id: int, epoch: int = 1, *, fenced: bool = False, incarnation: int = 0) -> RegisterBrokerRecord:
    """A broker with one directory."""
    return RegisterBrokerRecord(
        broker_id=broker_id,
        incarnation_id=uuid(900 + broker_id + 1000 * incarnation),
        broker_epoch=epoch,
        fenced=fenced,
        log_dirs=(uuid(500 + broker_id),),
    )


def fencing(broker_id: int, epoch: int = 1, *, fenced: bool) -> BrokerRegistrationChangeRecord:
    """A broker is fenced or unfenced."""
    return BrokerRegistrationChangeRecord(broker_id=broker_id, broker_epoch=epoch, fenced=1 if fenced else -1)


def partition(
    topic: int, number: int, replicas: Sequence[int], isr: Sequence[int] | None = None, leader: int | None = None
) -> PartitionRecord:
    """A partition of topic ``topic``, led by its first replica, all in sync."""
    return PartitionRecord(
        partition_id=number,
        topic_id=uuid(topic),
        replicas=tuple(replicas),
        isr=tuple(replicas if isr is None else isr),
        leader=replicas[0] if leader is None else leader,
        leader_epoch=0,
        partition_epoch=0,
        directories=tuple(uuid(500 + replica) for replica in replicas),
    )


def change(topic: int, number: int, *, isr: Sequence[int] | None = None, leader: int = -2) -> PartitionChangeRecord:
    """A change of one partition."""
    return PartitionChangeRecord(
        partition_id=number, topic_id=uuid(topic), isr=None if isr is None else tuple(isr), leader=leader
    )


def cluster_image(brokers: Iterable[int], partitions: Iterable[PartitionRecord]) -> MetadataImage:
    """An image with unfenced brokers, and the topics that the partitions name."""
    placed = list(partitions)
    topics = sorted({record.topic_id for record in placed})
    return replayed(
        EMPTY_IMAGE,
        FeatureLevelRecord(name="metadata.version", feature_level=25),
        *(registration(broker) for broker in brokers),
        *(TopicRecord(name=f"topic-{int.from_bytes(topic, 'big') - 1000}", topic_id=topic) for topic in topics),
        *placed,
    )


def reloaded(image: MetadataImage) -> MetadataImage:
    """The same state, as whoever reads a checkpoint of it has it."""
    return replay(EMPTY_IMAGE, list(checkpoint_items(image)), image.provenance)


def batch(base_offset: int, epoch: int, *records: Record, timestamp: int = 1_000) -> bytes:
    """A batch of records at its place in the log."""
    items = [versioned(record) for record in records]
    return place_batch(data_batch([(item.record, item.version) for item in items], timestamp), base_offset, epoch)
