"""Counting partitions by condition: equal to looking at them one by one, and cheap after a change."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from quorate.controller.api.resources import PartitionCounts
from quorate.controller.reads.partition_counts import (
    MIN_INSYNC_REPLICAS,
    OFFLINE_NAMED_MAX,
    CountedImages,
    PartitionCounter,
)
from quorate.controller.reads.state_counts import CountedStates
from quorate.metadata_log.records.records import (
    ConfigRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
    VersionedRecord,
)
from quorate.snapshots.checkpoints.loading import load_image
from quorate.snapshots.image.image import EMPTY_IMAGE, MetadataImage
from quorate.snapshots.image.image_parts import BROKER_RESOURCE, TOPIC_RESOURCE
from quorate.snapshots.replay.replay import replay
from quorate.snapshots.table.partition import Partition
from tests.waiting import eventually


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
        counts["without_preferred_leader"] += p.leader != p.replicas[0]
        counts["reassigning"] += p.is_reassigning
    return PartitionCounts.model_validate(counts)


@pytest.mark.parametrize("capture", ["static/m1", "static/m2", "static/m3", "static/m4", "dynamic-small/m1"])
@pytest.mark.parametrize("default", [1, 2])
def test_counts_of_captured_clusters_equal_looking_at_each_partition(
    kafka_data: Path, capture: str, default: int
) -> None:
    image = load_image(kafka_data / capture / "log")
    counts, offline, _ = PartitionCounter(default).count(image)
    assert counts == counted_one_by_one(image, default)
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


def test_counts_after_a_change_look_only_at_the_pages_it_touched() -> None:
    image = replay(EMPTY_IMAGE, [record for number in range(1, 6) for record in topic_of(number, 4096)])
    counter = PartitionCounter(1)
    assert counter.count(image).counts.total == 5 * 4096
    before = counter.pages_counted
    assert before == len(image.partitions.pages)
    counter.count(image)
    assert counter.pages_counted == before
    grown = replay(image, topic_of(9, 1))
    assert counter.count(grown).counts.total == 5 * 4096 + 1
    assert counter.pages_counted <= before + 1


def test_counts_follow_the_cluster_wide_min_isr() -> None:
    image = replay(EMPTY_IMAGE, [*topic_of(1, 10, replica_count=2)])
    counter = PartitionCounter(1)
    assert counter.count(image).counts.under_min_isr == 0
    config = ConfigRecord(resource_type=BROKER_RESOURCE, resource_name="", name=MIN_INSYNC_REPLICAS, value="5")
    # Two replicas cannot be five: with both in the ISR nothing is missing.
    assert counter.count(replay(image, [VersionedRecord(config, 0)])).counts.under_min_isr == 0


def test_counts_of_the_full_width_of_a_partition() -> None:
    image = replay(EMPTY_IMAGE, topic_of(1, 2, replica_count=64))
    assert PartitionCounter(1).count(image).counts == counted_one_by_one(image, 1)


def test_counts_take_a_min_isr_that_is_no_number_for_none() -> None:
    config = ConfigRecord(resource_type=BROKER_RESOURCE, resource_name="", name=MIN_INSYNC_REPLICAS, value="two")
    image = replay(EMPTY_IMAGE, [*topic_of(1, 3), VersionedRecord(config, 0)])
    assert PartitionCounter(3).count(image).counts.under_min_isr == 0


def test_counts_take_a_min_isr_beyond_all_numbers_for_all_replicas() -> None:
    config = ConfigRecord(resource_type=BROKER_RESOURCE, resource_name="", name=MIN_INSYNC_REPLICAS, value="9" * 40)
    image = replay(EMPTY_IMAGE, [*topic_of(1, 3), VersionedRecord(config, 0)])
    assert PartitionCounter(1).count(image).counts.under_min_isr == 0


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
    assert PartitionCounter(default).count(image).counts == counted_one_by_one(image, default)


@pytest.mark.parametrize("counted", [CountedImages(1), CountedStates()], ids=["conditions", "states"])
async def test_count_that_nobody_waits_for_any_more_ends_before_the_next_one_begins(
    counted: CountedImages | CountedStates, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[int] = []
    ended: list[MetadataImage] = []
    may_end, count = threading.Event(), counted._counter.count

    def held(image: MetadataImage) -> object:
        begun.append(len(ended))
        may_end.wait(10)
        found = count(image)
        ended.append(image)
        return found

    async def is_under_way() -> bool:
        return bool(begun)

    monkeypatch.setattr(counted._counter, "count", held)
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
