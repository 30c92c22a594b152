"""Searching partitions: equal to looking at them one by one, whatever is asked for and however it is paged."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorate.controller.partitions.view import min_insync_replicas
from quorate.controller.reads.name_patterns import NamePatterns
from quorate.controller.reads.partition_filter import Condition, PartitionFilter
from quorate.controller.reads.partition_search import PartitionSearch
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
from quorate.snapshots.image.image_parts import BROKER_RESOURCE, TOPIC_RESOURCE
from quorate.snapshots.replay.replay import replay
from quorate.snapshots.table.partition import Partition
from tests.default_parts import controller_config

CONFIG = controller_config(node_id=1, cluster_id="c")
CONDITIONS: tuple[Condition, ...] = get_args(Condition)


def is_in(image: MetadataImage, topic: str, p: Partition, condition: Condition) -> bool:
    """The definitions, read off one partition."""
    spare = len(p.isr) - min(min_insync_replicas(image, CONFIG, topic), len(p.replicas))
    return {
        "offline": not p.has_leader,
        "under-replicated": bool(set(p.replicas) - set(p.isr) - set(p.adding_replicas)),
        "under-min-isr": spare < 0,
        "at-min-isr": spare == 0,
        "not-preferred": p.leader != p.replicas[0],
        "reassigning": p.is_reassigning,
    }[condition]


def one_by_one(image: MetadataImage, wanted: PartitionFilter) -> list[tuple[str, int]]:
    found = []
    for topic in image.topics.by_id.values():
        if wanted.names.patterns and topic.name not in wanted.names.patterns:
            continue
        for number, p in image.partitions.partitions_of(topic.id):
            fits = not wanted.conditions or any(is_in(image, topic.name, p, one) for one in wanted.conditions)
            fits &= wanted.replica is None or wanted.replica in p.replicas
            fits &= wanted.leader is None or wanted.leader == p.leader
            if fits:
                found.append((topic.name, number))
    return sorted(found)


def pages(image: MetadataImage, wanted: PartitionFilter, limit: int, matching: int) -> Iterator[tuple[str, int]]:
    search, after = PartitionSearch(CONFIG), None
    while True:
        page = search.partitions(image, wanted, after, limit)
        assert page.matching == matching
        assert len(page.rows) <= limit
        table = image.partitions
        named = [(image.topics.by_id[table.topic_id(r)].name, table.partition_id(r)) for r in page.rows.tolist()]
        yield from named
        if not page.has_more:
            return
        after = named[-1]


def topic_pages(image: MetadataImage, wanted: PartitionFilter, limit: int) -> Iterator[tuple[str, int]]:
    search, after = PartitionSearch(CONFIG), ""
    while True:
        page = search.topics(image, wanted, after, limit, has_configs=False)
        yield from ((found.topic.name, found.matching) for found in page.topics)
        if not page.has_more:
            return
        after = page.topics[-1].topic.name


FILTERS = [
    PartitionFilter(NamePatterns()),
    *(PartitionFilter(NamePatterns(), (condition,)) for condition in CONDITIONS),
    PartitionFilter(NamePatterns(), ("offline", "at-min-isr")),
    PartitionFilter(NamePatterns(), ("under-replicated",), replica=1),
    PartitionFilter(NamePatterns(), leader=2),
]


@pytest.mark.parametrize("capture", ["static/m1", "static/m3", "dynamic-small/m1"])
def test_search_of_captured_clusters_finds_what_looking_at_each_partition_finds(kafka_data: Path, capture: str) -> None:
    image = load_image(kafka_data / capture / "log")
    for wanted in FILTERS:
        found = one_by_one(image, wanted)
        assert list(pages(image, wanted, 97, len(found))) == found
        counts = {name: sum(1 for other, _ in found if other == name) for name, _ in found}
        if wanted.is_about_partitions:
            assert dict(topic_pages(image, wanted, 7)) == counts
        else:
            assert [name for name, _ in topic_pages(image, wanted, 7)] == sorted(image.topics.by_name)


def records(draw: st.DrawFn) -> Iterator[VersionedRecord]:
    """Topics whose partitions have any ISR and leader; some are removed again, some have a min ISR of their own."""
    brokers = st.lists(st.integers(1, 5), unique=True, min_size=1, max_size=4)
    for topic in draw(st.lists(st.sampled_from("cadbe"), unique=True)):
        topic_id = topic.encode() * 16
        yield VersionedRecord(TopicRecord(topic, topic_id), 0)
        for number in range(draw(st.integers(0, 4))):
            replicas = tuple(draw(brokers))
            isr = tuple(broker for broker in replicas if draw(st.booleans()))
            leader = draw(st.sampled_from((-1, *isr)))
            adding = tuple(sorted(broker for broker in replicas if draw(st.booleans())))
            yield VersionedRecord(
                PartitionRecord(
                    partition_id=number, topic_id=topic_id, replicas=replicas, isr=isr, leader=leader,
                    adding_replicas=adding,
                ),
                0,
            )  # fmt: skip
        if draw(st.booleans()):
            value = str(draw(st.integers(1, 4)))
            yield VersionedRecord(ConfigRecord(TOPIC_RESOURCE, topic, "min.insync.replicas", value), 0)
        if draw(st.integers(0, 4)) == 0:
            yield VersionedRecord(RemoveTopicRecord(topic_id), 0)
    value = str(draw(st.integers(1, 4)))
    yield VersionedRecord(ConfigRecord(BROKER_RESOURCE, "", "min.insync.replicas", value), 0)


@st.composite
def images(draw: st.DrawFn) -> MetadataImage:
    return replay(EMPTY_IMAGE, list(records(draw)))


@st.composite
def filters(draw: st.DrawFn) -> PartitionFilter:
    return PartitionFilter(
        NamePatterns(tuple(draw(st.lists(st.sampled_from("abcdef"), unique=True, max_size=3)))),
        tuple(draw(st.lists(st.sampled_from(CONDITIONS), unique=True, max_size=2))),
        draw(st.none() | st.integers(1, 6)),
        draw(st.none() | st.integers(1, 6)),
    )


@settings(deadline=None)
@given(image=images(), wanted=filters(), limit=st.integers(1, 5))
def test_search_of_any_cluster_finds_what_looking_at_each_partition_finds(
    image: MetadataImage, wanted: PartitionFilter, limit: int
) -> None:
    found = one_by_one(image, wanted)
    assert list(pages(image, wanted, limit, len(found))) == found


@given(image=images(), after=st.tuples(st.sampled_from("abcdef"), st.integers(0, 5)))
@settings(deadline=None)
def test_cursor_that_is_no_partition_any_more_goes_on_behind_its_place(
    image: MetadataImage, after: tuple[str, int]
) -> None:
    wanted = PartitionFilter(NamePatterns())
    page = PartitionSearch(CONFIG).partitions(image, wanted, after, 100)
    table = image.partitions
    named = [(image.topics.by_id[table.topic_id(r)].name, table.partition_id(r)) for r in page.rows.tolist()]
    assert named == [one for one in one_by_one(image, wanted) if one > after]


def test_search_follows_a_topic_that_grows_and_one_that_is_new() -> None:
    def topic(name: str, size: int) -> list[VersionedRecord]:
        id_ = name.encode() * 16
        parts = [PartitionRecord(partition_id=n, topic_id=id_, replicas=(1,), isr=(1,), leader=1) for n in range(size)]
        return [VersionedRecord(TopicRecord(name, id_), 0), *(VersionedRecord(part, 0) for part in parts)]

    search, wanted = PartitionSearch(CONFIG), PartitionFilter(NamePatterns())
    first = replay(EMPTY_IMAGE, topic("b", 2))
    assert search.partitions(first, wanted, None, 10).matching == 2
    more = PartitionRecord(partition_id=2, topic_id=b"b" * 16, replicas=(1,), isr=(1,), leader=1)
    second = replay(first, [VersionedRecord(more, 0), *topic("a", 1)])
    assert search.partitions(second, wanted, None, 10).matching == 4
    gone = PartitionChangeRecord(partition_id=0, topic_id=b"b" * 16, leader=-1)
    third = replay(second, [VersionedRecord(gone, 0)])
    assert search.partitions(third, PartitionFilter(NamePatterns(), ("offline",)), None, 10).matching == 1
    assert [found.topic.name for found in search.topics(first, wanted, "", 10, has_configs=False).topics] == ["b"]
