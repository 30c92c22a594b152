"""Replicas of deleted topics change their states as Kafka's table allows, whatever brokers say in whatever order."""

from __future__ import annotations

from collections import Counter
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from quorate.controller.partitions.replica_deletions import DeletionCounts, TopicDeletions
from quorate.controller.protocol import DeleteTopicsRequest
from quorate.controller.protocol.deletions import UndeletedReplicas, UndeletedTopic
from quorate.controller.topics.topics import decide_delete_topics
from quorate.metadata_log.ids import Uuid
from quorate.snapshots.views.derived_states import REPLICA_DELETION_CHAINS, REPLICA_PREVIOUS
from quorate.snapshots.views.state_names import (
    DELETION_INELIGIBLE,
    DELETION_STARTED,
    DELETION_SUCCESSFUL,
    NON_EXISTENT_REPLICA,
    ReplicaState,
)
from tests.unit.controller.small_cluster import SmallCluster

BROKERS = range(4)
_ENDS = {(chain[0], chain[-1]) for chain in REPLICA_DELETION_CHAINS}
Replica = tuple[Uuid, int, int]


class Brokers:
    """Brokers that die, come back and delete what they can, and what the controller makes of it."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.cluster = SmallCluster(len(BROKERS))
        self.deletions = TopicDeletions()
        #: Broker -> what it still has of deleted topics.
        self.kept: dict[int, dict[Uuid, set[int]]] = {broker: {} for broker in BROKERS}
        self.made = 0

    def step(self) -> None:
        """One thing happens."""
        kinds = (self.delete, self.report, self.report, self.report, self.die_or_return)
        self.random.choice(kinds)()

    def delete(self) -> None:
        assignments = [self.random.sample(BROKERS, 2) for _ in range(self.random.randint(1, 3))]
        self.made += 1
        name = f"t{self.made}"
        self.cluster.create(name, *assignments)
        topic = self.cluster.image.topics.by_name.get(name)
        if topic is None:
            return  # no broker that lives was among them
        for number, replicas in enumerate(assignments):
            for broker in replicas:
                self.kept[broker].setdefault(topic.id, set()).add(number)
        before = self.cluster.image
        self.cluster.commit(decide_delete_topics(before, DeleteTopicsRequest(topic_ids=[topic.id])))
        self.deletions.begin(before, [topic], self.cluster.next_offset - 1)

    def report(self) -> None:
        broker = self.random.choice(BROKERS)
        if self.cluster.image.cluster.brokers[broker].is_fenced:
            return
        said = []
        for topic_id, partitions in list(self.kept[broker].items()):
            partitions -= {number for number in partitions if self.random.random() < 0.4}
            if not partitions:
                del self.kept[broker][topic_id]
                continue
            failed = {number for number in sorted(partitions) if self.random.random() < 0.3}
            said.append(
                UndeletedTopic(
                    topic_id=topic_id, name="t", deleting=sorted(partitions - failed), ineligible=sorted(failed)
                )
            )
        self.say(broker, said)

    def say(self, broker: int, said: list[UndeletedTopic]) -> None:
        report = UndeletedReplicas(metadata_offset=self.cluster.next_offset - 1, topics=said)
        self.deletions.report(self.cluster.image, broker, report)

    def die_or_return(self) -> None:
        broker = self.random.choice(BROKERS)
        is_fenced = self.cluster.image.cluster.brokers[broker].is_fenced
        self.cluster.heartbeat(broker, want_fence=not is_fenced)

    def states(self) -> dict[Replica, ReplicaState]:
        return {
            (topic.topic_id, number, one.broker_id): one.state
            for topic in self.deletions.describe(self.cluster.image)
            for one in topic.replicas
            for number in one.partitions
        }


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_replicas_of_deleted_topics_change_as_kafkas_table_allows(seed: int) -> None:
    brokers = Brokers(seed)
    before: dict[Replica, ReplicaState] = {}
    for _ in range(60):
        brokers.step()
        after = brokers.states()
        for replica in before.keys() | after.keys():
            was, is_ = before.get(replica), after.get(replica, NON_EXISTENT_REPLICA)
            if was is None:
                # It comes into view as its topic goes: it was offline for that moment, as in the table.
                assert is_ in (DELETION_STARTED, DELETION_INELIGIBLE)
            else:
                assert was == is_ or was in REPLICA_PREVIOUS[is_] or (was, is_) in _ENDS, (was, is_)
        left = Counter(state for state in after.values() if state != DELETION_SUCCESSFUL)
        counts = brokers.deletions.counts(brokers.cluster.image)
        assert (counts.replicas, counts.ineligible_replicas) == (left.total(), left[DELETION_INELIGIBLE])
        before = after
    for broker in BROKERS:
        brokers.say(broker, [])
    assert brokers.deletions.counts(brokers.cluster.image) == DeletionCounts()
