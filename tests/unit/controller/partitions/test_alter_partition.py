"""AlterPartition: who may ask for what, and what becomes of it."""

from __future__ import annotations

import pytest

from quorate.controller.partitions.alter_partition import decide_alter_partition
from quorate.controller.protocol import AlterPartitionReassignmentsRequest, AlterPartitionRequest, AlterPartitionResult
from quorate.controller.topics.reassignments import decide_alter_partition_reassignments
from quorate.metadata_log.errors import ApiError, ErrorCode
from quorate.metadata_log.records.records import PartitionRecord
from tests.guards.sound_images import take_broken
from tests.unit.controller.small_cluster import SmallCluster, uuid


def ask(cluster: SmallCluster, leader: int, isr: list[int], **changes: object) -> AlterPartitionResult:
    """What the leader of t-0 is answered; the change is committed."""
    present = cluster.partition("t")
    topic_id = changes.pop("topic_id", cluster.topic_id("t"))
    epochs = changes.pop("epochs", {})
    assert isinstance(epochs, dict)
    partition = {
        "partition_index": 0,
        "leader_epoch": present.leader_epoch,
        "partition_epoch": present.partition_epoch,
        "leader_recovery_state": 0,
        "new_isr_with_epochs": [
            {"broker_id": broker, "broker_epoch": epochs.get(broker, cluster.epoch(broker))} for broker in isr
        ],
    } | changes
    request = AlterPartitionRequest.model_validate(
        {
            "broker_id": leader,
            "broker_epoch": cluster.epoch(leader),
            "topics": [{"topic_id": topic_id, "partitions": [partition]}],
        }
    )
    decision = decide_alter_partition(cluster.image, cluster.config, request)
    cluster.commit(decision)
    return decision.reply.topics[0].partitions[0]


@pytest.fixture
def cluster() -> SmallCluster:
    cluster = SmallCluster(brokers=4)
    cluster.create("t", [0, 1, 2])
    return cluster


def test_alter_partition_shrink_answers_with_the_new_state(cluster: SmallCluster) -> None:
    result = ask(cluster, 0, [0, 2])
    assert (result.error_code, result.isr, result.leader_id) == (ErrorCode.NONE, [0, 2], 0)
    assert (result.leader_epoch, result.partition_epoch) == (0, 1)
    assert cluster.partition("t").isr == (0, 2)


def test_alter_partition_same_isr_succeeds_without_a_record(cluster: SmallCluster) -> None:
    offset = cluster.next_offset
    assert ask(cluster, 0, [0, 1, 2]).partition_epoch == 0
    assert cluster.next_offset == offset


def test_alter_partition_other_order_is_a_change(cluster: SmallCluster) -> None:
    assert ask(cluster, 0, [2, 1, 0]).partition_epoch == 1
    assert cluster.partition("t").isr == (2, 1, 0)


@pytest.mark.parametrize(
    ("leader", "isr", "changes", "code"),
    [
        (0, [0], {"topic_id": uuid(3, 99)}, ErrorCode.UNKNOWN_TOPIC_ID),
        (0, [0], {"partition_index": 7}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (0, [0], {"leader_epoch": 5}, ErrorCode.NOT_CONTROLLER),
        (0, [0], {"partition_epoch": 50}, ErrorCode.NOT_CONTROLLER),
        (0, [0], {"leader_epoch": -1}, ErrorCode.FENCED_LEADER_EPOCH),
        (1, [1], {}, ErrorCode.INVALID_REQUEST),
        (0, [0], {"partition_epoch": -1}, ErrorCode.INVALID_UPDATE_VERSION),
        (0, [0, 3], {}, ErrorCode.INVALID_REQUEST),
        (0, [0, 0], {}, ErrorCode.INVALID_REQUEST),
        (0, [], {}, ErrorCode.INVALID_REQUEST),
        (0, [1], {}, ErrorCode.INVALID_REQUEST),
        (0, [0], {"leader_recovery_state": 1}, ErrorCode.INVALID_REQUEST),
        (0, [0, 1], {"epochs": {1: 999}}, ErrorCode.INELIGIBLE_REPLICA),
    ],
)
def test_alter_partition_invalid_request_is_answered(
    cluster: SmallCluster, leader: int, isr: list[int], changes: dict[str, object], code: ErrorCode
) -> None:
    before = cluster.partition("t")
    assert ask(cluster, leader, isr, **changes).error_code == code
    assert cluster.partition("t") == before


def test_alter_partition_fenced_member_is_ineligible(cluster: SmallCluster) -> None:
    cluster.heartbeat(2, want_fence=True)
    assert ask(cluster, 0, [0, 1, 2]).error_code == ErrorCode.INELIGIBLE_REPLICA
    assert ask(cluster, 0, [0, 1, 2], epochs={2: -1}).error_code == ErrorCode.INELIGIBLE_REPLICA


def test_alter_partition_stale_broker_epoch_is_refused(cluster: SmallCluster) -> None:
    request = AlterPartitionRequest(broker_id=0, broker_epoch=999, topics=[])
    with pytest.raises(ApiError) as caught:
        decide_alter_partition(cluster.image, cluster.config, request)
    assert caught.value.code == ErrorCode.STALE_BROKER_EPOCH


def test_alter_partition_that_completes_a_reassignment_elects_a_new_leader(cluster: SmallCluster) -> None:
    request = AlterPartitionReassignmentsRequest.model_validate(
        {"topics": [{"name": "t", "partitions": [{"partition_index": 0, "replicas": [3, 1, 2]}]}]}
    )
    cluster.commit(decide_alter_partition_reassignments(cluster.image, cluster.config, request))
    assert cluster.partition("t").replicas == (3, 1, 2, 0)
    assert ask(cluster, 0, [0, 1, 2, 3]).error_code == ErrorCode.NEW_LEADER_ELECTED
    partition = cluster.partition("t")
    assert (partition.replicas, partition.isr, partition.leader) == ((3, 1, 2), (1, 2, 3), 3)
    assert not partition.is_reassigning


def test_alter_partition_same_partition_twice_refuses_the_second(cluster: SmallCluster) -> None:
    data = {
        "partition_index": 0,
        "leader_epoch": 0,
        "partition_epoch": 0,
        "new_isr_with_epochs": [{"broker_id": 0}],
    }
    topics = [{"topic_id": cluster.topic_id("t"), "partitions": [data, data]}]
    request = AlterPartitionRequest.model_validate({"broker_id": 0, "broker_epoch": cluster.epoch(0), "topics": topics})
    decision = decide_alter_partition(cluster.image, cluster.config, request)
    codes = [result.error_code for result in decision.reply.topics[0].partitions]
    assert codes == [ErrorCode.NONE, ErrorCode.INVALID_REQUEST]


def test_alter_many_partitions_one_that_was_never_declared_is_unknown_and_the_others_are_changed() -> None:
    """A Kafka log may declare partition 8 and not 7: row 7 is reserved, and empty."""
    cluster = SmallCluster(brokers=3)
    cluster.create("t", *[[0, 1, 2]] * 7)
    topic_id = cluster.topic_id("t")
    for number in range(8, 20):
        replicas = (0, 1, 2)
        cluster.write(
            PartitionRecord(number, topic_id, replicas, replicas, leader=0, leader_epoch=0, partition_epoch=0)
        )
    numbers = [*range(20), 7, 3]
    partitions = [
        {
            "partition_index": number,
            "leader_epoch": 0,
            "partition_epoch": 0,
            "leader_recovery_state": 0,
            "new_isr_with_epochs": [{"broker_id": broker, "broker_epoch": cluster.epoch(broker)} for broker in (0, 1)],
        }
        for number in numbers
    ]
    topics = [{"topic_id": topic_id, "partitions": partitions}]
    request = AlterPartitionRequest.model_validate({"broker_id": 0, "broker_epoch": cluster.epoch(0), "topics": topics})

    decision = decide_alter_partition(cluster.image, cluster.config, request)
    cluster.commit(decision)

    codes = [one.error_code for one in decision.reply.topics[0].partitions]
    unknown, repeated = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.INVALID_REQUEST
    assert codes == [unknown if number == 7 else ErrorCode.NONE for number in range(20)] + [unknown, repeated]
    assert {cluster.partition("t", number).isr for number in range(20) if number != 7} == {(0, 1)}
    (gap,) = take_broken()
    assert "topic t: its partitions are not numbered from 0 on: [0, 1, 2, 3, 4, 5, 6, 8, 9" in gap
