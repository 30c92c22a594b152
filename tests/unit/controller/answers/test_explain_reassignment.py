"""Where a reassignment has got to, whom it waits for since when, and what cancelling it would bring."""

from __future__ import annotations

import json
import shlex

from quorate.controller.answers.subjects import AskedPartitions, Moments, explain_subject
from quorate.controller.api.answers.explain_models import ExplainedReassignment, ExplainReply
from quorate.controller.partitions.alter_partition import decide_alter_partition
from quorate.controller.protocol import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from quorate.controller.protocol.partitions import AlterPartitionData, AlterPartitionTopic, BrokerState
from quorate.controller.topics.reassignments import decide_alter_partition_reassignments
from tests.unit.controller.small_cluster import SmallCluster

NAME = "moved"
NOT_KNOWN = Moments()


class Moving(SmallCluster):
    """Four brokers, and a partition that is on its way from 0 and 1 to some of them."""

    def __init__(self, target: list[int]) -> None:
        super().__init__(4)
        self.create(NAME, [0, 1])
        self.move(target)

    def move(self, target: list[int] | None) -> None:
        asked = ReassignablePartition(partition_index=0, replicas=target)
        request = AlterPartitionReassignmentsRequest(topics=[ReassignableTopic(name=NAME, partitions=[asked])])
        decision = decide_alter_partition_reassignments(self.image, self.config, request)
        assert not decision.reply.responses[0].partitions[0].error_code
        self.commit(decision)

    def in_sync(self, *isr: int) -> None:
        """As the leader asks for it."""
        now = self.partition(NAME)
        asked = AlterPartitionData(
            partition_index=0,
            leader_epoch=now.leader_epoch,
            partition_epoch=now.partition_epoch,
            new_isr_with_epochs=[BrokerState(broker_id=one, broker_epoch=self.epoch(one)) for one in isr],
        )
        topic = AlterPartitionTopic(topic_id=self.topic_id(NAME), partitions=[asked])
        request = AlterPartitionRequest(broker_id=now.leader, broker_epoch=self.epoch(now.leader), topics=[topic])
        self.commit(decide_alter_partition(self.image, self.config, request))

    def fence(self, *brokers: int) -> None:
        for broker in brokers:
            self.heartbeat(broker, want_fence=True)

    def explained(self, moments: Moments = NOT_KNOWN) -> ExplainReply:
        return explain_subject(self.image, self.config, AskedPartitions(NAME, 0), 1, moments)

    def moving(self, moments: Moments = NOT_KNOWN) -> ExplainedReassignment:
        found = self.explained(moments).reassignment
        assert found is not None
        return found


def test_reassignment_copies_while_those_that_it_waits_for_are_there() -> None:
    cluster = Moving([1, 2, 3])
    cluster.in_sync(0, 1, 2)

    found = cluster.moving(Moments({}, {2: 70, 3: 80}))

    assert (found.progress, found.before, found.target) == ("COPYING", [1, 0], [1, 2, 3])
    assert (found.leader, found.since_ms) == (0, 70)
    told = [tuple(one.model_dump().values()) for one in found.replicas]
    assert told == [
        (1, False, True, False, None, None),
        (2, True, True, False, None, None),
        (3, True, False, True, "NOT_CAUGHT_UP", 80),
    ]
    assert [one.code for one in cluster.explained().remedies] == ["WAIT"]


def test_reassignment_that_waits_for_a_dead_target_stalls_and_can_be_cancelled() -> None:
    cluster = Moving([2, 3])
    cluster.in_sync(0, 1, 2)
    cluster.fence(3)

    found = cluster.moving(Moments({3: 99}, {2: 70, 3: 80}))

    assert found.progress == "STALLED"
    (dead,) = [one for one in found.replicas if one.is_awaited]
    assert (dead.broker, dead.cause, dead.since_ms) == (3, "BROKER_DOWN", 99)
    remedies = {one.code: one for one in cluster.explained().remedies}
    assert list(remedies) == ["START_BROKER", "CANCEL_REASSIGNMENT"]
    assert (remedies["START_BROKER"].broker, remedies["START_BROKER"].replicas) == (3, 1)
    cancel = remedies["CANCEL_REASSIGNMENT"]
    assert cancel.message == "or cancel it: the replicas are 0, 1 again"
    assert (cancel.led_again, cancel.risk) == (0, "NONE")

    cluster.move(None)
    assert cluster.partition(NAME).replicas == (0, 1)
    assert cluster.explained().reassignment is None


def test_command_names_this_partition_and_no_other() -> None:
    cluster = Moving([2, 3])
    cluster.fence(2)
    words = shlex.split(cluster.explained().remedies[-1].command)
    assert words[:2] == ["printf", "%s"]
    assert words[3:] == ["|", "quorate", "reassign", "cancel", "-", "--yes"]
    (named,) = json.loads(words[2])["partitions"]
    assert (named["topic"], named["partition"]) == (NAME, 0)


def test_reassignment_without_a_leader_stalls_though_all_targets_are_there() -> None:
    cluster = Moving([2, 3])
    cluster.fence(1, 0)

    found = cluster.moving()

    assert (found.progress, found.leader) == ("STALLED", None)
    assert {one.cause for one in found.replicas} == {"NOT_CAUGHT_UP"}
    remedies = cluster.explained().remedies
    assert (remedies[0].code, remedies[0].broker, remedies[0].led_again) == ("START_BROKER", 0, 1)


def test_cancelling_is_no_remedy_where_it_would_be_refused() -> None:
    """Nobody who would stay is in sync: the first replica would have to lead uncleanly."""
    cluster = Moving([2, 3])
    cluster.in_sync(0, 1, 2)
    cluster.fence(0, 1, 3)

    assert (cluster.moving().progress, cluster.moving().leader) == ("STALLED", 2)
    assert "CANCEL_REASSIGNMENT" not in [one.code for one in cluster.explained().remedies]
