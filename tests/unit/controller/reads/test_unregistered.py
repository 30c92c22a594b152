"""Brokers that hold replicas and are not registered: equal to looking at each partition."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from quorate.controller.reads.image_counts import count_image
from quorate.metadata_log.records.records import (
    PartitionRecord,
    TopicRecord,
    UnregisterBrokerRecord,
    VersionedRecord,
)
from quorate.snapshots.checkpoints.loading import load_image
from quorate.snapshots.image.image import EMPTY_IMAGE, MetadataImage
from quorate.snapshots.replay.replay import replay
from tests.default_parts import controller_config

CONFIG = controller_config(node_id=1, cluster_id="c")


def held_by_unknown(image: MetadataImage) -> dict[int, int]:
    """The definition, read off each partition."""
    counts = Counter(
        replica
        for topic in image.topics.by_id.values()
        for _, partition in image.partitions.partitions_of(topic.id)
        for replica in partition.replicas
    )
    return {id_: count for id_, count in sorted(counts.items()) if id_ not in image.cluster.brokers}


@pytest.mark.parametrize("gone", [(), (12,), (11, 14)])
def test_brokers_that_were_unregistered_too_soon_are_counted(kafka_data: Path, gone: tuple[int, ...]) -> None:
    image = load_image(kafka_data / "static/m3/log")
    for id_ in gone:
        epoch = image.cluster.brokers[id_].epoch
        image = replay(image, [VersionedRecord(UnregisterBrokerRecord(broker_id=id_, broker_epoch=epoch), 0)])
    found = count_image(image, CONFIG).unregistered
    assert found == held_by_unknown(image)
    assert sorted(found) == sorted(gone)


def test_brokers_that_sets_mention_and_no_replica_is_on_hold_nothing() -> None:
    topic_id = bytes(15) + b"t"
    topic = VersionedRecord(TopicRecord("orders", topic_id), 0)
    partition = PartitionRecord(partition_id=0, topic_id=topic_id, replicas=(1,), isr=(1, 7), leader=1)
    image = replay(EMPTY_IMAGE, [topic, VersionedRecord(partition, 0)])
    assert count_image(image, CONFIG).unregistered == {1: 1}
