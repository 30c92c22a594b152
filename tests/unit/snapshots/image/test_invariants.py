"""The rules of every state: each is broken by a change of its own, and names what breaks it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from quorate.metadata_log.ids import uuid_text
from quorate.metadata_log.records.records import PartitionRecord, UnregisterBrokerRecord
from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.image.invariants import broken_rules, rules_broken_by
from quorate.snapshots.table.extents import Extent
from quorate.snapshots.table.partition import Partition
from tests.guards.sound_images import take_broken, watch
from tests.unit.broker.images import cluster_image, fencing, partition, replayed, uuid

SOUND = partition(0, 0, [1, 2, 3], [1, 2])


def state(first: PartitionRecord = SOUND, *others: PartitionRecord) -> MetadataImage:
    """Three brokers, and topic-0 with these partitions."""
    return cluster_image([1, 2, 3], [first, *others])


def test_state_that_obeys_them_breaks_none() -> None:
    assert list(broken_rules(state(SOUND, partition(0, 1, [2, 3]), partition(7, 0, [3])))) == []


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"leader": 3}, "its leader is not in the ISR"),
        ({"isr": (1, 2, 4)}, "the ISR has a broker that is no replica"),
        ({"eligible_leader_replicas": (2,)}, "a broker is in the ISR and in the ELR"),
        ({"adding_replicas": (4,)}, "a broker that is added or removed is no replica"),
        ({"removing_replicas": (4,)}, "a broker that is added or removed is no replica"),
    ],
)
def test_partition_that_breaks_one_is_named_with_it(changes: dict[str, Any], rule: str) -> None:
    (found,) = broken_rules(state(replace(SOUND, **changes)))

    assert found.startswith(f"topic-0-0: {rule}: ")


def test_leader_that_is_fenced_or_gone_breaks_one() -> None:
    (fenced,) = broken_rules(replayed(state(), fencing(1, fenced=True)))
    (gone,) = broken_rules(replayed(state(), UnregisterBrokerRecord(broker_id=1, broker_epoch=1)))

    assert fenced.startswith("topic-0-0: its leader is fenced: ")
    assert gone.startswith("topic-0-0: its leader is not registered: ")


def test_gap_in_the_numbers_of_partitions_breaks_one() -> None:
    assert list(broken_rules(state(SOUND, partition(0, 2, [1])))) == [
        "topic topic-0: its partitions are not numbered from 0 on: [0, 2]"
    ]


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"replicas": (), "directories": (), "isr": (), "leader": -1}, "it has no replica"),
        ({"replicas": (1, 2, 2)}, "a broker is its replica twice"),
        ({"directories": (bytes(16),)}, "there is not one directory for each replica"),
    ],
)
def test_partition_as_no_replay_makes_it_breaks_one(changes: dict[str, Any], rule: str) -> None:
    sound = Partition.from_record(SOUND)

    assert list(rules_broken_by(state(), replace(sound, **changes))) == [rule]


def test_parts_of_two_states_put_together_break_some() -> None:
    here, other = state(), state(SOUND, partition(5, 0, [1]))
    swapped = state(partition(5, 0, [1]))

    assert list(broken_rules(other._replace(topics=here.topics))) == [
        f"there are partitions of the topic {uuid_text(uuid(5))}, which is not there",
        "2 partitions are held, and 1 are of topics that are there",
    ]
    assert list(broken_rules(here._replace(topics=replace(here.topics, by_name=other.topics.by_name)))) == [
        "2 names of topics lead to 1 topics"
    ]
    assert list(broken_rules(here._replace(topics=replace(here.topics, by_name=swapped.topics.by_name)))) == [
        f"topic topic-0: its name does not lead to its id {uuid_text(uuid(0))}"
    ]


def test_topic_found_under_the_id_of_another_breaks_one() -> None:
    here = state()
    by_id = here.topics.by_id.put(uuid(0), here.topics.by_id[uuid(0)]._replace(id=uuid(9)))
    topics = replace(here.topics, by_id=by_id, by_name=here.topics.by_name.put("topic-0", by_id[uuid(0)]))

    assert list(broken_rules(here._replace(topics=topics))) == [
        f"topic topic-0: it has the id {uuid_text(uuid(9))}, and is found under {uuid_text(uuid(0))}"
    ]


def test_topic_that_the_index_gives_partitions_and_that_has_none_breaks_one() -> None:
    here = state(SOUND, partition(5, 0, [1]))
    here.partitions.extents = here.partitions.extents.put(uuid(5), Extent(0, 0))
    here.partitions.partition_count = 1

    assert list(broken_rules(here)) == ["topic topic-5: the index of partitions is wrong about whether it has any"]


def test_image_that_a_test_has_watched_is_asked_once_at_its_end() -> None:
    """By several owners or one: and a test that breaks a rule on purpose takes it away, so that it is told no more."""
    broken = state(SOUND, partition(0, 2, [1]))
    for image in (broken, broken, state()):
        watch(lambda image=image: image)  # type: ignore[misc]

    assert take_broken() == ["at offset 7: topic topic-0: its partitions are not numbered from 0 on: [0, 2]"]
    assert take_broken() == []
