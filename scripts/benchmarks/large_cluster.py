"""The metadata of a large cluster, made as columns: brokers, topics of 100 partitions, replicas in a ring."""

from __future__ import annotations

import time
import uuid
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from quorate.controller.operations.bootstrap import FRESH_FEATURES, fresh_records
from quorate.metadata_log.batches.runs import BatchItem, PartitionRun
from quorate.metadata_log.checkpoints.checkpoint_files import CheckpointId, checkpoint_name
from quorate.metadata_log.ids import Uuid
from quorate.metadata_log.records.records import (
    BrokerEndpoint,
    BrokerFeature,
    RegisterBrokerRecord,
    TopicRecord,
    VersionedRecord,
)
from quorate.snapshots.checkpoints.checkpoint import checkpoint_batches
from quorate.snapshots.image.image import EMPTY_IMAGE, MetadataImage
from quorate.snapshots.image.image_parts import Provenance
from quorate.snapshots.replay.replay import replay
from quorate.snapshots.table.record_versions import PARTITION_NEWEST

BROKERS: Final = 12
FIRST_BROKER_ID: Final = 1
PARTITIONS_PER_TOPIC: Final = 100
REPLICATION_FACTOR: Final = 3
_EPOCH: Final = 1
_REGISTER_VERSION: Final = 3
#: Of every feature that brokers say they support.
_HIGHEST_LEVEL: Final = 30


def large_image(partition_count: int) -> MetadataImage:
    """Twelve live brokers; every replica in sync; each broker has a quarter of the partitions at factor three."""
    items: list[BatchItem] = [*fresh_records()]
    directories = [_new_id() for _ in range(BROKERS)]
    for place, directory in enumerate(directories):
        items.append(VersionedRecord(_registration(FIRST_BROKER_ID + place, directory), _REGISTER_VERSION))
    topics = -(-partition_count // PARTITIONS_PER_TOPIC)
    ids = [_new_id() for _ in range(topics)]
    items += (VersionedRecord(TopicRecord(f"topic-{number:06}", topic_id), 0) for number, topic_id in enumerate(ids))
    if partition_count:
        items.append(_partitions(partition_count, ids, directories))
    return replay(EMPTY_IMAGE, items, Provenance(partition_count + len(items), _EPOCH, time.time_ns() // 1_000_000))


def _registration(broker_id: int, directory: Uuid) -> RegisterBrokerRecord:
    features = [name for name, _ in FRESH_FEATURES]
    return RegisterBrokerRecord(
        broker_id=broker_id,
        incarnation_id=_new_id(),
        broker_epoch=broker_id,
        end_points=(BrokerEndpoint("PLAINTEXT", "127.0.0.1", 9092, 0),),
        features=tuple(BrokerFeature(name, 0, _HIGHEST_LEVEL) for name in (*features, "kraft.version")),
        rack="abc"[broker_id % 3],
        fenced=False,
        log_dirs=(directory,),
    )


def _partitions(count: int, topic_ids: list[Uuid], directories: list[Uuid]) -> PartitionRun:
    numbers = np.arange(count)
    places = _places(count)
    replicas = (places + FIRST_BROKER_ID).astype(np.int32)
    none = np.empty((count, 0), np.int32)
    topic_table = np.frombuffer(b"".join(topic_ids), np.uint8).reshape(-1, 16)
    directory_table = np.frombuffer(b"".join(directories), np.uint8).reshape(-1, 16)
    return PartitionRun(
        version=PARTITION_NEWEST,
        topic_ids=topic_table[numbers // PARTITIONS_PER_TOPIC],
        partition_ids=(numbers % PARTITIONS_PER_TOPIC).astype(np.int32),
        replicas=replicas,
        isr=replicas,
        removing_replicas=none,
        adding_replicas=none,
        leader=np.ascontiguousarray(replicas[:, 0]),
        leader_epoch=np.zeros(count, np.int32),
        partition_epoch=np.zeros(count, np.int32),
        directories=directory_table[places],
    )


def partitions_of(broker_id: int, count: int) -> int:
    """The number of ``count`` partitions that have a replica on a broker: a quarter, give or take a few."""
    return int((_places(count) + FIRST_BROKER_ID == broker_id).sum())


def _places(count: int) -> NDArray[np.int64]:
    """int64[count, replicas]: where in the ring each replica is."""
    numbers = np.arange(count)
    # Neighbours in the ring share partitions; the step of a topic's start keeps leaders even within any topic.
    first = (numbers + numbers // PARTITIONS_PER_TOPIC) % BROKERS
    places: NDArray[np.int64] = (first[:, None] + np.arange(REPLICATION_FACTOR)) % BROKERS
    return places


def write_checkpoint(directory: Path, image: MetadataImage) -> Path:
    """The image as a checkpoint file under Kafka's name."""
    provenance = image.provenance
    path = directory / checkpoint_name(CheckpointId(provenance.end_offset, provenance.epoch))
    with path.open("wb") as file:
        for batch in checkpoint_batches(image, provenance.log_time_ms):
            file.write(batch)
    return path


def _new_id() -> Uuid:
    return uuid.uuid4().bytes
