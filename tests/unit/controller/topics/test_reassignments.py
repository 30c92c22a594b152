"""Reassignments: start, cancel, list."""

from __future__ import annotations

from random import Random

import pytest

from quorate.controller.partitions.alter_partition import decide_alter_partition
from quorate.controller.protocol import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionRequest,
    ListPartitionReassignmentsRequest,
)
from quorate.controller.topics.reassignments import decide_alter_partition_reassignments, list_partition_reassignments
from quorate.metadata_log.errors import ErrorCode
from quorate.metadata_log.records.records import PartitionChangeRecord
from quorate.snapshots.table.reassignment import STEPS, ReassignmentState, ReassignmentStep, step_between
from tests.unit.controller.small_cluster import SmallCluster, uuid


def reassign(
    cluster: SmallCluster, replicas: list[int] | None, *, topic: str = "t", partition: int = 0, **changes: object
) -> ErrorCode:
    partitions = [{"partition_index": partition, "replicas": replicas}]
    values = {"topics": [{"name": topic, "partitions": partitions}]} | changes
    request = AlterPartitionReassignmentsRequest.model_validate(values)
    decision = decide_alter_partition_reassignments(cluster.image, cluster.config, request)
    cluster.commit(decision)
    return decision.reply.responses[0].partitions[0].error_code


@pytest.fixture
def cluster() -> SmallCluster:
    cluster = SmallCluster(brokers=5)
    cluster.create("t", [0, 1, 2])
    return cluster


def test_start_writes_target_then_removing_replicas(cluster: SmallCluster) -> None:
    assert reassign(cluster, [4, 1, 3]) == ErrorCode.NONE
    partition = cluster.partition("t")
    assert partition.replicas == (4, 1, 3, 0, 2)
    assert (partition.adding_replicas, partition.removing_replicas) == ((3, 4), (0, 2))
    assert partition.directories == tuple(uuid(2, broker) for broker in partition.replicas)
    assert (partition.leader, partition.leader_epoch, partition.partition_epoch) == (0, 0, 1)


def test_start_pure_removal_completes_at_once(cluster: SmallCluster) -> None:
    assert reassign(cluster, [1, 2]) == ErrorCode.NONE
    partition = cluster.partition("t")
    assert (partition.replicas, partition.isr, partition.leader) == ((1, 2), (1, 2), 1)
    assert not partition.is_reassigning


def test_start_reorder_changes_only_the_list(cluster: SmallCluster) -> None:
    assert reassign(cluster, [2, 0, 1]) == ErrorCode.NONE
    partition = cluster.partition("t")
    assert (partition.replicas, partition.leader, partition.leader_epoch) == ((2, 0, 1), 0, 0)


def test_start_again_turns_the_first_target_into_removing(cluster: SmallCluster) -> None:
    reassign(cluster, [3, 4])
    reassign(cluster, [1, 3])
    partition = cluster.partition("t")
    assert (partition.replicas, partition.removing_replicas) == ((1, 3, 0, 2, 4), (0, 2, 4))


def test_cancel_drops_the_adding_replicas(cluster: SmallCluster) -> None:
    reassign(cluster, [4, 1, 3])
    assert reassign(cluster, None) == ErrorCode.NONE
    partition = cluster.partition("t")
    assert (partition.replicas, partition.is_reassigning) == ((1, 0, 2), False)


@pytest.mark.parametrize(("allowed", "code"), [("false", 39), ("true", 0)])
def test_cancel_with_only_adding_replicas_in_sync_needs_an_unclean_election(allowed: str, code: int) -> None:
    cluster = SmallCluster(brokers=3)
    cluster.create("t", [0], configs={"unclean.leader.election.enable": allowed})
    reassign(cluster, [1, 2])
    cluster.write(PartitionChangeRecord(partition_id=0, topic_id=cluster.topic_id("t"), isr=(1,), leader=1))
    assert reassign(cluster, None) == code
    partition = cluster.partition("t")
    assert partition.isr == ((0,) if code == 0 else (1,))
    assert partition.is_reassigning == (code != 0)


@pytest.mark.parametrize(
    ("replicas", "changes", "code"),
    [
        ([], {}, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ([0, 0], {}, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ([0, 99], {}, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ([0, 1], {"allow_replication_factor_change": False}, ErrorCode.INVALID_REPLICATION_FACTOR),
        (None, {}, ErrorCode.NO_REASSIGNMENT_IN_PROGRESS),
        ([0], {"topic": "nowhere"}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ([0], {"partition": 9}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
def test_start_invalid_target_is_refused(
    cluster: SmallCluster, replicas: list[int] | None, changes: dict[str, object], code: ErrorCode
) -> None:
    before = cluster.partition("t")
    assert reassign(cluster, replicas, **changes) == code  # type: ignore[arg-type]
    assert cluster.partition("t") == before


def test_list_shows_open_reassignments_by_topic(cluster: SmallCluster) -> None:
    cluster.create("u", [0], [1])
    reassign(cluster, [3, 4])
    reassign(cluster, [2], topic="u", partition=1)
    everything = list_partition_reassignments(cluster.image, ListPartitionReassignmentsRequest(topics=None))
    assert [(topic.name, [p.partition_index for p in topic.partitions]) for topic in everything.topics] == [
        ("t", [0]),
        ("u", [1]),
    ]
    asked = ListPartitionReassignmentsRequest.model_validate({"topics": [{"name": "u", "partition_indexes": [0, 1]}]})
    (topic,) = list_partition_reassignments(cluster.image, asked).topics
    (found,) = topic.partitions
    assert (found.replicas, found.adding_replicas, found.removing_replicas) == ([2, 1], [2], [1])


def alter_isr(cluster: SmallCluster, isr: list[int]) -> None:
    """What the leader asks for; it may be refused."""
    present = cluster.partition("t")
    asked = {
        "partition_index": 0,
        "leader_epoch": present.leader_epoch,
        "partition_epoch": present.partition_epoch,
        "new_isr_with_epochs": [{"broker_id": broker, "broker_epoch": cluster.epoch(broker)} for broker in isr],
    }
    leader = {"broker_id": present.leader, "broker_epoch": cluster.epoch(present.leader)}
    topics = [{"topic_id": cluster.topic_id("t"), "partitions": [asked]}]
    request = AlterPartitionRequest.model_validate({**leader, "topics": topics})
    cluster.commit(decide_alter_partition(cluster.image, cluster.config, request))


def test_requests_and_isr_changes_take_every_edge_of_the_table_and_no_other() -> None:
    taken: set[tuple[ReassignmentState, ReassignmentStep]] = set()
    for seed in range(12):
        rng, cluster = Random(seed), SmallCluster(brokers=5)
        cluster.create("t", rng.sample(range(5), 3), configs={"unclean.leader.election.enable": "true"})
        for _ in range(25):
            before = cluster.partition("t")
            if rng.random() < 0.5:
                reassign(cluster, None if rng.random() < 0.3 else rng.sample(range(5), rng.randint(1, 4)))
            else:
                alter_isr(cluster, [one for one in before.replicas if one == before.leader or rng.random() < 0.5])
            after = cluster.partition("t")
            step = step_between(before.assignment, after.assignment, {*before.isr, *after.isr})
            if step is not None:
                taken.add((before.assignment.state, step))

    assert taken == {(state, step) for state, steps in STEPS.items() for step in steps}
