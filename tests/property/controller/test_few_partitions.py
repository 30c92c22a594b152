"""Few partitions are created row by row, many by column: both say the same, and both are Kafka's."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from quorate.controller.topics import assignments, placement
from quorate.controller.topics.assignments import NewPartitions, partition_items
from quorate.controller.topics.broker_choices import broker_choices
from quorate.controller.topics.placement import Racks, ReplicaPlacer, UsableBroker
from quorate.metadata_log.batches.builder import encode_items
from quorate.metadata_log.records.records import FeatureLevelRecord, VersionedRecord
from quorate.scripts.conformance_runner.java_random import JavaRandom
from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.replay.replay import replay
from tests.guards.patching import patching
from tests.unit.controller.small_cluster import SmallCluster, records_of, uuid

_WHERE = st.lists(st.sampled_from([None, "a", "b", "c", "d"]), min_size=1, max_size=9)


@given(_WHERE, st.integers(0, 40), st.integers(1, 5), st.integers(0, 2**48))
@settings(max_examples=60, deadline=None)
def test_placement_by_rounds_and_by_arithmetic_are_one(
    racks: list[str | None], count: int, factor: int, seed: int
) -> None:
    brokers = [UsableBroker(id_, rack, False) for id_, rack in enumerate(racks)]
    placed = []
    for by_rounds_max in (-1, 1000):
        with patching() as patch:
            patch.setattr(placement, "_BY_ROUNDS_MAX", by_rounds_max)
            random = JavaRandom(seed)
            placer = ReplicaPlacer(Racks(brokers), random)
            both = [placer.place(count, min(factor, len(brokers))).tolist() for _ in range(2)]
            placed.append((both, random.next_int(1 << 20)))
    assert placed[0] == placed[1]


@given(st.data(), st.sampled_from([7, 16, 17, 22, 23, 30]))
@settings(max_examples=60, deadline=None)
def test_new_partitions_by_record_and_by_column_are_one(data: st.DataObject, level: int) -> None:
    image = _image(level)
    ids = sorted(image.cluster.brokers)
    active = {broker.id for broker in image.cluster.brokers.values() if broker.is_active}
    created = []
    for topic in range(data.draw(st.integers(1, 3))):
        factor = data.draw(st.integers(1, len(ids)))
        brokers = st.lists(st.sampled_from(ids), min_size=factor, max_size=factor, unique=True)
        led = brokers.filter(lambda replicas: not active.isdisjoint(replicas))
        replicas = np.array(data.draw(st.lists(led, min_size=1, max_size=4)), np.int32)
        created.append(NewPartitions(uuid(3, topic), data.draw(st.integers(0, 2)), replicas))
    written = []
    for by_record_max in (-1, 1000):
        with patching() as patch:
            patch.setattr(assignments, "_BY_RECORD_MAX", by_record_max)
            items = partition_items(image, created)
            written.append((list(records_of(items)), encode_items(items, 3)))
    assert written[0] == written[1]


def _image(level: int) -> MetadataImage:
    cluster = SmallCluster()
    cluster.heartbeat(1, want_fence=True)
    return replay(cluster.image, [VersionedRecord(FeatureLevelRecord("metadata.version", level), 0)])


def test_choices_follow_the_brokers() -> None:
    cluster = SmallCluster()
    before = broker_choices(cluster.image.cluster)
    assert broker_choices(cluster.image.cluster) is before
    assert before.racks.unfenced_count == len(before.ids)
    earlier = cluster.image.cluster
    cluster.heartbeat(1, want_fence=True)
    after = broker_choices(cluster.image.cluster)
    assert (before.by_id[1][0], after.by_id[1][0]) == (True, False)
    assert after.racks.unfenced_count == before.racks.unfenced_count - 1
    assert broker_choices(earlier).by_id == before.by_id
    assert broker_choices(replace(earlier)).by_id == before.by_id
