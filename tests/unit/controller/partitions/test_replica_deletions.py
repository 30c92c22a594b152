"""Replicas of deleted topics: what brokers say of them, what has to wait, what is forgotten."""

from __future__ import annotations

from typing import Any

import pytest

from quorate.controller.partitions import replica_deletions
from quorate.controller.partitions.replica_deletions import DeletionCounts, TopicDeletions
from quorate.controller.protocol import DeleteTopicsRequest
from quorate.controller.protocol.deletions import UNDELETED_TOPICS_MAX, UndeletedReplicas, UndeletedTopic
from quorate.controller.topics.topics import decide_delete_topics
from quorate.metadata_log.ids import Uuid
from quorate.metadata_log.records.records import PartitionChangeRecord, UnregisterBrokerRecord
from tests.unit.controller.small_cluster import SmallCluster, uuid

STARTED, GONE, INELIGIBLE = "ReplicaDeletionStarted", "ReplicaDeletionSuccessful", "ReplicaDeletionIneligible"


class Stage:
    """A cluster whose topics are deleted, and what its active controller knows of that."""

    def __init__(self) -> None:
        self.cluster = SmallCluster()
        self.deletions = TopicDeletions()

    def delete(self, *names: str) -> list[Uuid]:
        before = self.cluster.image
        topics = [before.topics.by_name[name] for name in names]
        ids = [topic.id for topic in topics]
        self.cluster.commit(decide_delete_topics(before, DeleteTopicsRequest(topic_ids=ids)))
        self.deletions.begin(before, topics, self.cluster.next_offset - 1)
        return ids

    def report(self, broker: int, *topics: UndeletedTopic, offset: int | None = None) -> None:
        at = self.cluster.next_offset - 1 if offset is None else offset
        said = UndeletedReplicas(metadata_offset=at, topics=list(topics))
        self.deletions.report(self.cluster.image, broker, said)

    def shown(self) -> dict[str, dict[tuple[int, str], list[int]]]:
        """Topic -> (broker, state) -> partitions."""
        return {
            topic.name: {(one.broker_id, one.state): one.partitions for one in topic.replicas}
            for topic in self.deletions.describe(self.cluster.image)
        }

    @property
    def counts(self) -> DeletionCounts:
        return self.deletions.counts(self.cluster.image)


@pytest.fixture
def stage() -> Stage:
    """Brokers 0 to 2; topic t with a partition on 0 and 1 and one on 1 and 2."""
    stage = Stage()
    stage.cluster.create("t", [0, 1], [1, 2])
    return stage


def undeleted(topic_id: Uuid, **partitions: Any) -> UndeletedTopic:
    return UndeletedTopic(topic_id=topic_id, name="t", **partitions)


def test_deletion_goes_on_until_every_broker_has_said_that_nothing_is_left(stage: Stage) -> None:
    stage.delete("t")
    assert stage.shown() == {"t": {(0, STARTED): [0], (1, STARTED): [0, 1], (2, STARTED): [1]}}
    assert stage.counts == DeletionCounts(topics=1, replicas=4)
    stage.report(0)
    stage.report(2)
    assert stage.shown() == {"t": {(0, GONE): [0], (1, STARTED): [0, 1], (2, GONE): [1]}}
    assert stage.counts == DeletionCounts(topics=1, replicas=2)
    stage.report(1)
    assert stage.shown() == {}
    assert stage.counts == DeletionCounts()


def test_report_of_metadata_before_the_deletion_says_nothing_about_it(stage: Stage) -> None:
    before = stage.cluster.next_offset - 1
    stage.delete("t")
    stage.report(0, offset=before)
    assert stage.counts.replicas == 4


def test_broker_names_what_is_on_its_way_and_what_has_to_wait(stage: Stage) -> None:
    (topic_id,) = stage.delete("t")
    stage.report(1, undeleted(topic_id, deleting=[0], ineligible=[1]))
    assert stage.shown()["t"] == {
        (0, STARTED): [0],
        (1, STARTED): [0],
        (1, INELIGIBLE): [1],
        (2, STARTED): [1],
    }
    assert stage.counts == DeletionCounts(topics=1, replicas=4, ineligible_topics=1, ineligible_replicas=1)
    stage.report(1, undeleted(topic_id, deleting=[1]))
    assert stage.shown()["t"][1, GONE] == [0]
    assert stage.shown()["t"][1, STARTED] == [1]


def test_dead_broker_makes_a_deletion_wait_until_it_is_back(stage: Stage) -> None:
    stage.cluster.heartbeat(0, want_fence=True)
    stage.delete("t")
    assert stage.shown()["t"][0, INELIGIBLE] == [0]
    assert stage.counts == DeletionCounts(topics=1, replicas=4, ineligible_topics=1, ineligible_replicas=1)
    (topic,) = stage.deletions.describe(stage.cluster.image)
    assert topic.replicas[0].waits_for == "the broker, which is fenced"
    for broker in (1, 2):
        stage.report(broker)
    stage.cluster.heartbeat(0)
    assert stage.shown()["t"][0, STARTED] == [0]
    stage.report(0)
    assert stage.shown() == {}


def test_unregistered_broker_is_not_waited_for(stage: Stage) -> None:
    stage.delete("t")
    for broker in (1, 2):
        stage.report(broker)
    stage.cluster.write(UnregisterBrokerRecord(broker_id=0, broker_epoch=stage.cluster.epoch(0)))
    stage.deletions.forget_broker(0)
    assert stage.shown() == {}


def test_new_active_controller_learns_from_what_brokers_report(stage: Stage) -> None:
    (topic_id,) = stage.delete("t")
    stage.deletions = TopicDeletions()
    stage.report(1)
    assert stage.shown() == {}, "what is gone, nobody has to know"
    stage.report(0, undeleted(topic_id, deleting=[0]))
    stage.report(2, undeleted(topic_id, ineligible=[1]))
    assert stage.shown() == {"t": {(0, STARTED): [0], (2, INELIGIBLE): [1]}}
    assert stage.deletions.describe(stage.cluster.image)[0].offset is None
    stage.report(0)
    stage.report(2)
    assert stage.shown() == {}


def test_report_about_a_topic_that_exists_or_without_a_partition_is_nothing(stage: Stage) -> None:
    stage.report(0, undeleted(stage.cluster.topic_id("t"), deleting=[0]), undeleted(uuid(3, 99)))
    assert stage.shown() == {}
    assert stage.counts == DeletionCounts()


def test_open_reassignment_does_not_make_a_deletion_wait(stage: Stage) -> None:
    """Unlike in Kafka's older controller: with the topic its reassignment is gone."""
    stage.cluster.create("moving", [0])
    topic_id = stage.cluster.topic_id("moving")
    stage.cluster.write(PartitionChangeRecord(partition_id=0, topic_id=topic_id, replicas=(0, 1), adding_replicas=(1,)))
    stage.delete("moving")
    assert stage.shown() == {"moving": {(0, STARTED): [0], (1, STARTED): [0]}}


def test_deletion_that_is_not_committed_is_not_shown(stage: Stage) -> None:
    before = stage.cluster.image
    stage.deletions.begin(before, [before.topics.by_name["t"]], stage.cluster.next_offset)
    assert stage.shown() == {}
    assert stage.counts == DeletionCounts()


def test_oldest_topics_are_forgotten_over_the_limits(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replica_deletions, "REPLICAS_MAX", 6)
    monkeypatch.setattr(replica_deletions, "UNDELETED_TOPICS_MAX", 3)
    for name in ("a", "b", "c", "d"):
        stage.cluster.create(name, [0])
    stage.delete("t", "a", "b", "c", "d")
    assert list(stage.shown()) == ["b", "c", "d"]
    assert stage.deletions.forgotten == 2
    stage.cluster.create("wide", [0, 1, 2], [0, 1, 2])
    stage.delete("wide")
    assert list(stage.shown()) == ["wide"]
    stage.cluster.create("wider", [0, 1, 2], [0, 1, 2], [0, 1, 2])
    stage.delete("wider")
    assert list(stage.shown()) == ["wide"], "more than may be kept at all"
    for broker in range(3):
        stage.report(broker)
    assert stage.shown() == {}
    assert stage.counts == DeletionCounts()


def test_soft_state_of_a_thousand_deletions_comes_and_goes(stage: Stage) -> None:
    """Whatever is said in whatever order, what is kept stays within the limits and ends with nothing."""
    for number in range(1_200):
        stage.deletions.report(
            stage.cluster.image,
            number % 3,
            UndeletedReplicas(metadata_offset=0, topics=[undeleted(uuid(3, 1_000 + number), deleting=[number])]),
        )
    assert stage.counts.topics <= UNDELETED_TOPICS_MAX
    for broker in range(3):
        stage.report(broker)
    assert stage.counts == DeletionCounts()
