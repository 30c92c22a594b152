"""Counts of images: equal to looking at partitions one by one."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from random import Random

import numpy as np
import pytest

from quorate.controller.api.resources import BrokerPartitionCounts, PartitionCounts
from quorate.controller.decisions.controller_config import ControllerConfig
from quorate.controller.partitions.view import min_insync_replicas
from quorate.controller.reads import partition_counts
from quorate.controller.reads.image_counts import OFFLINE_NAMED_MAX, count_image
from quorate.controller.reads.partition_conditions import MinIsrs, is_in
from quorate.controller.reads.partition_counts import CountedImages
from quorate.metadata_log.records.records import (
    ConfigRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
    VersionedRecord,
)
from quorate.snapshots.checkpoints.loading import load_image
from quorate.snapshots.image.image import EMPTY_IMAGE, MetadataImage
from quorate.snapshots.image.image_parts import BROKER_RESOURCE, MIN_INSYNC_REPLICAS, TOPIC_RESOURCE
from quorate.snapshots.replay.replay import replay
from quorate.snapshots.table.partition import Partition
from quorate.snapshots.views.derived_states import replica_state
from quorate.snapshots.views.state_names import OFFLINE_REPLICA
from tests.default_parts import controller_config
from tests.waiting import eventually

CONFIG = controller_config(node_id=1, cluster_id="c")


def config(min_isr: int) -> ControllerConfig:
    """With a ``min.insync.replicas`` where the log has none."""
    return controller_config(node_id=1, cluster_id="c", static_configs={MIN_INSYNC_REPLICAS: str(min_isr)})


def partitions(image: MetadataImage) -> Iterator[tuple[str, int, Partition]]:
    for topic in image.topics.by_id.values():
        for number, partition in image.partitions.partitions_of(topic.id):
            yield topic.name, number, partition


def min_isr(image: MetadataImage, topic: str, default: int) -> int:
    own = image.configs.of(TOPIC_RESOURCE, topic).get(MIN_INSYNC_REPLICAS)
    cluster = image.configs.of(BROKER_RESOURCE, "").get(MIN_INSYNC_REPLICAS)
    return int(own or cluster or default)


def counted_one_by_one(image: MetadataImage, default: int) -> PartitionCounts:
    """The definitions, read off each partition."""
    counts = dict.fromkeys(PartitionCounts.model_fields, 0)
    for topic, _, p in partitions(image):
        needed = min(min_isr(image, topic, default), len(p.replicas))
        counts["total"] += 1
        counts["offline"] += not p.has_leader
        counts["under_replicated"] += bool(set(p.replicas) - set(p.isr) - set(p.adding_replicas))
        counts["under_min_isr"] += len(p.isr) < needed
        counts["at_min_isr"] += len(p.isr) == needed
        counts["without_preferred_leader"] += p.leader != p.replicas[0]
        counts["reassigning"] += p.is_reassigning
    return PartitionCounts.model_validate(counts)


def brokers_one_by_one(image: MetadataImage, default: int) -> dict[int, BrokerPartitionCounts]:
    """The same for brokers."""
    found = defaultdict[int, Counter[str]](Counter)
    for topic, _, p in partitions(image):
        above = len(p.isr) - min(min_isr(image, topic, default), len(p.replicas))
        is_under = bool(set(p.replicas) - set(p.isr) - set(p.adding_replicas))
        for broker in p.replicas:
            of = found[broker]
            of["replicas"] += 1
            of["leaders"] += p.leader == broker
            of["offline_replicas"] += replica_state(image, p, broker) == OFFLINE_REPLICA
            of["offline"] += not p.has_leader
            of["under_replicated"] += is_under
            of["under_min_isr"] += above < 0
            of["at_min_isr"] += above == 0
    return {broker: BrokerPartitionCounts.model_validate(of) for broker, of in found.items()}


@pytest.mark.parametrize("capture", ["static/m1", "static/m2", "static/m3", "static/m4", "dynamic-small/m1"])
@pytest.mark.parametrize("default", [1, 2])
def test_counts_of_captured_clusters_equal_looking_at_each_partition(
    kafka_data: Path, capture: str, default: int
) -> None:
    image = load_image(kafka_data / capture / "log")
    counted = count_image(image, config(default))
    offline = counted.offline
    assert counted.counts == counted_one_by_one(image, default)
    assert counted.brokers == brokers_one_by_one(image, default)
    all_offline = {f"{topic}-{number}" for topic, number, p in partitions(image) if not p.has_leader}
    assert set(offline) <= all_offline
    assert len(offline) == min(len(all_offline), OFFLINE_NAMED_MAX)


def topic_of(number: int, size: int, replica_count: int = 3) -> list[VersionedRecord]:
    """A topic whose partitions are led by their first replica."""
    topic_id = number.to_bytes(16, "big")
    replicas = tuple(range(1, replica_count + 1))
    return [
        VersionedRecord(TopicRecord(f"topic-{number}", topic_id), 0),
        *(
            VersionedRecord(
                PartitionRecord(partition_id=n, topic_id=topic_id, replicas=replicas, isr=replicas, leader=1), 0
            )
            for n in range(size)
        ),
    ]


def cluster_wide(value: str, resource: str = "") -> VersionedRecord:
    """The cluster's ``min.insync.replicas``, or that of the broker ``resource``."""
    return VersionedRecord(ConfigRecord(BROKER_RESOURCE, resource, MIN_INSYNC_REPLICAS, value), 0)


def shrunk(number: int) -> VersionedRecord:
    """The first partition of a topic, with its leader alone in sync."""
    return VersionedRecord(PartitionChangeRecord(0, number.to_bytes(16, "big"), isr=(1,)), 0)


def test_counts_follow_the_cluster_wide_min_isr() -> None:
    image = replay(EMPTY_IMAGE, [*topic_of(1, 10, replica_count=2)])
    assert count_image(image, CONFIG).counts.under_min_isr == 0
    # Two replicas cannot be five: with both in the ISR nothing is missing.
    counts = count_image(replay(image, [cluster_wide("5")]), CONFIG).counts
    assert (counts.under_min_isr, counts.at_min_isr) == (0, 10)


def test_counts_of_the_full_width_of_a_partition() -> None:
    image = replay(EMPTY_IMAGE, topic_of(1, 2, replica_count=64))
    assert count_image(image, CONFIG).counts == counted_one_by_one(image, 1)


@pytest.mark.parametrize("value", ["2", " +2 ", "-129", "two", "\u00b2", "9" * 40, "9" * 5_000])
@pytest.mark.parametrize("resource", ["", "1", "2"])
def test_counts_and_elections_take_the_same_min_isr_for_the_clusters(value: str, resource: str) -> None:
    """Whatever stands in an imported log: what is no number is none; a controller's own value is its own alone."""
    image = replay(EMPTY_IMAGE, [*topic_of(1, 3, replica_count=3), shrunk(1), cluster_wide(value, resource)])
    counts = count_image(image, CONFIG).counts
    needed = min_insync_replicas(image, CONFIG, "topic-1")
    assert (counts.under_min_isr, counts.at_min_isr) == (needed > 1, needed == 1)
    (page,), min_isrs = image.partitions.pages, MinIsrs(image, CONFIG)
    assert np.count_nonzero(is_in(page, "under-min-isr", min_isrs)) == counts.under_min_isr
    assert (needed == 2) is (value in ("2", " +2 ") and resource in ("", "1"))


@pytest.mark.parametrize("width", [3, 9, 40])
@pytest.mark.parametrize("default", [1, 2, 5])
def test_counts_of_rows_of_every_kind_equal_looking_at_each_partition(width: int, default: int) -> None:
    """Rows of other lengths, in other states and without a partition (of a deleted topic), in one page."""
    draw = Random(width * 100 + default)
    image = replay(EMPTY_IMAGE, topic_of(1, 50, replica_count=width))
    for number in range(2, 30):
        topic_id = number.to_bytes(16, "big")
        image = replay(image, [VersionedRecord(TopicRecord(f"topic-{number}", topic_id), 0)])
        for partition_id in range(draw.randrange(1, 9)):
            replicas = tuple(draw.sample(range(1, 80), draw.randrange(1, width + 1)))
            isr = tuple(draw.sample(replicas, draw.randrange(len(replicas) + 1)))
            record = PartitionRecord(
                partition_id=partition_id,
                topic_id=topic_id,
                replicas=replicas,
                isr=isr,
                leader=draw.choice(isr) if isr else -1,
                adding_replicas=tuple(draw.sample(replicas, draw.randrange(2))),
                removing_replicas=tuple(draw.sample(replicas, draw.randrange(2))),
            )
            image = replay(image, [VersionedRecord(record, 0)])
    for number in (3, 7, 8, 20):
        image = replay(image, [VersionedRecord(RemoveTopicRecord(number.to_bytes(16, "big")), 0)])
    counted = count_image(image, config(default))
    assert counted.counts == counted_one_by_one(image, default)
    assert counted.brokers == brokers_one_by_one(image, default)


def test_broker_without_replicas_is_counted_with_none() -> None:
    assert count_image(EMPTY_IMAGE, CONFIG).of_broker(7) == BrokerPartitionCounts()


async def test_count_that_nobody_waits_for_any_more_ends_before_the_next_one_begins(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun: list[int] = []
    ended: list[MetadataImage] = []
    may_end, counted = threading.Event(), CountedImages(CONFIG)

    def held(image: MetadataImage, config: ControllerConfig) -> object:
        begun.append(len(ended))
        may_end.wait(10)
        found = count_image(image, config)
        ended.append(image)
        return found

    async def is_under_way() -> bool:
        return bool(begun)

    monkeypatch.setattr(partition_counts, "count_image", held)
    given_up = asyncio.create_task(counted.count(EMPTY_IMAGE))
    await eventually(is_under_way, "the first count is under way")
    given_up.cancel()
    await asyncio.wait([given_up])
    following = asyncio.create_task(counted.count(EMPTY_IMAGE))
    # A thread for the next count would be there before this one has ended.
    await asyncio.sleep(0)
    await asyncio.to_thread(int)
    may_end.set()
    await following
    assert begun == [0, 1]
