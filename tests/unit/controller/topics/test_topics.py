"""Topics: creation, growth, deletion."""

from __future__ import annotations

import pytest

from quorate.controller.protocol import (
    CreatableTopic,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    CreateTopicsRequest,
    DeleteTopicsRequest,
)
from quorate.controller.reads.topic_description import describe_topic
from quorate.controller.topics.topics import decide_create_partitions, decide_create_topics, decide_delete_topics
from quorate.metadata_log.errors import ErrorCode, LimitExceeded
from quorate.metadata_log.records.records import ClearElrRecord, ConfigRecord, PartitionRecord, TopicRecord
from quorate.scripts.conformance_runner.java_random import JavaRandom
from tests.unit.controller.small_cluster import SmallCluster, records_of, uuid


def test_create_assigned_topic_leads_by_the_first_active_replica() -> None:
    cluster = SmallCluster()
    cluster.heartbeat(0, want_fence=True)
    (result,) = cluster.create("t", [0, 1, 2], [2, 1, 0]).topics
    assert (result.error_code, result.num_partitions, result.replication_factor) == (ErrorCode.NONE, 2, 3)
    first, second = cluster.partition("t", 0), cluster.partition("t", 1)
    assert (first.replicas, first.isr, first.leader) == ((0, 1, 2), (1, 2), 1)
    assert (second.isr, second.leader, second.leader_epoch, second.partition_epoch) == ((2, 1), 2, 0, 0)
    assert second.directories == (uuid(2, 2), uuid(2, 1), uuid(2, 0))


def test_create_many_topics_writes_one_run_of_partitions() -> None:
    cluster = SmallCluster()
    topics = [CreatableTopic(name=f"t{n}", num_partitions=20, replication_factor=3) for n in range(5)]
    request = CreateTopicsRequest(topics=topics)
    decision = decide_create_topics(cluster.image, cluster.config, request, JavaRandom(1), cluster.new_topic_id)
    assert [len(item) for item in decision.records[5:]] == [100]
    cluster.commit(decision)
    assert len(cluster.image.partitions) == 100
    assert {len(set(cluster.partition(f"t{n}", p).replicas)) for n in range(5) for p in range(20)} == {3}


def test_create_with_configs_under_elr_clears_elr_behind_the_config() -> None:
    cluster = SmallCluster(elr=True)
    request = CreateTopicsRequest.model_validate(
        {
            "topics": [
                {"name": "t", "num_partitions": 1, "replication_factor": 1,
                 "configs": [{"name": "min.insync.replicas", "value": "2"}]}
            ]
        }
    )  # fmt: skip
    decision = decide_create_topics(cluster.image, cluster.config, request, JavaRandom(1), cluster.new_topic_id)
    kinds = [type(record) for record in records_of(list(decision.records))]
    assert kinds == [TopicRecord, ConfigRecord, ClearElrRecord, PartitionRecord]


@pytest.mark.parametrize(
    ("topic", "code"),
    [
        ({"name": ""}, ErrorCode.INVALID_TOPIC_EXCEPTION),
        ({"name": "a/b"}, ErrorCode.INVALID_TOPIC_EXCEPTION),
        ({"name": "x" * 250}, ErrorCode.INVALID_TOPIC_EXCEPTION),
        ({"name": "there.is"}, ErrorCode.TOPIC_ALREADY_EXISTS),
        ({"name": "there_is"}, ErrorCode.INVALID_TOPIC_EXCEPTION),
        ({"name": "__cluster_metadata"}, ErrorCode.INVALID_REQUEST),
        ({"name": "t", "num_partitions": 0}, ErrorCode.INVALID_PARTITIONS),
        ({"name": "t", "replication_factor": 0}, ErrorCode.INVALID_REPLICATION_FACTOR),
        ({"name": "t", "replication_factor": 4}, ErrorCode.INVALID_REPLICATION_FACTOR),
        ({"name": "t", "configs": [{"name": "retention.ms", "value": None}]}, ErrorCode.INVALID_CONFIG),
        ({"name": "t", "configs": [{"name": "min.insync.replicas", "value": "0"}]}, ErrorCode.INVALID_CONFIG),
        ({"name": "t", "num_partitions": 2, "assignments": [[0]]}, ErrorCode.INVALID_REQUEST),
        ({"name": "t", "assignments": [[]]}, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ({"name": "t", "assignments": [[0, 0]]}, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ({"name": "t", "assignments": [[0, 9]]}, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ({"name": "t", "assignments": [[0, 1], [1]]}, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ({"name": "t", "assignments": [[2]]}, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ],
)
def test_create_invalid_topic_fails_alone(topic: dict[str, object], code: ErrorCode) -> None:
    cluster = SmallCluster()
    cluster.create("there.is", [0])
    cluster.heartbeat(2, want_fence=True)
    lists = topic.pop("assignments", [])
    assert isinstance(lists, list)
    topic["assignments"] = [{"partition_index": n, "broker_ids": ids} for n, ids in enumerate(lists)]
    good = {"name": "good", "num_partitions": 1, "replication_factor": 1}
    response = cluster.create_topics(CreateTopicsRequest.model_validate({"topics": [topic, good]}))
    assert [result.error_code for result in response.topics] == [code, ErrorCode.NONE]
    assert sorted(cluster.image.topics.by_name) == ["good", "there.is"]


def test_create_validate_only_changes_nothing() -> None:
    cluster = SmallCluster()
    request = CreateTopicsRequest(topics=[CreatableTopic(name="t")], validate_only=True)
    decision = decide_create_topics(cluster.image, cluster.config, request, JavaRandom(1), cluster.new_topic_id)
    (result,) = decision.reply.topics
    assert (list(decision.records), result.topic_id, result.num_partitions) == ([], None, 1)


@pytest.mark.parametrize("count", [10_001, 2**31 - 1])
def test_create_more_records_than_one_operation_may_write_is_refused(count: int) -> None:
    cluster = SmallCluster()
    request = CreateTopicsRequest(topics=[CreatableTopic(name="t", num_partitions=count, replication_factor=1)])
    with pytest.raises(LimitExceeded) as caught:
        decide_create_topics(cluster.image, cluster.config, request, JavaRandom(1), cluster.new_topic_id)
    assert caught.value.code == ErrorCode.POLICY_VIOLATION
    assert f"it would write {count} records, and 10000 is the most." in caught.value.message


def test_create_partitions_grows_a_topic() -> None:
    cluster = SmallCluster()
    cluster.create("t", [0, 1])
    topics = [
        CreatePartitionsTopic(name="t", count=3, assignments=[[1, 2], [2, 0]]),
        CreatePartitionsTopic(name="nowhere", count=3),
    ]
    decision = decide_create_partitions(
        cluster.image, cluster.config, CreatePartitionsRequest(topics=topics), JavaRandom(1)
    )
    cluster.commit(decision)
    codes = [result.error_code for result in decision.reply.results]
    assert codes == [ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert (cluster.partition("t", 1).replicas, cluster.partition("t", 2).replicas) == ((1, 2), (2, 0))


@pytest.mark.parametrize(
    ("count", "assignments", "code"),
    [
        (1, None, ErrorCode.INVALID_PARTITIONS),
        (0, None, ErrorCode.INVALID_PARTITIONS),
        (3, [[0, 1]], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (2, [[0]], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ],
)
def test_create_partitions_invalid_growth_is_refused(
    count: int, assignments: list[list[int]] | None, code: ErrorCode
) -> None:
    cluster = SmallCluster()
    cluster.create("t", [0, 1])
    topic = CreatePartitionsTopic(name="t", count=count, assignments=assignments)
    decision = decide_create_partitions(
        cluster.image, cluster.config, CreatePartitionsRequest(topics=[topic]), JavaRandom(1)
    )
    assert (list(decision.records), decision.reply.results[0].error_code) == ([], code)


def test_delete_topics_known_and_unknown() -> None:
    cluster = SmallCluster()
    cluster.create("t", [0, 1])
    request = DeleteTopicsRequest(topic_ids=[cluster.topic_id("t"), uuid(3, 99)])
    decision = decide_delete_topics(cluster.image, request)
    cluster.commit(decision)
    codes = [result.error_code for result in decision.reply.responses]
    assert codes == [ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_ID]
    assert len(cluster.image.topics) == 0


def test_describe_topic_shows_offline_replicas() -> None:
    cluster = SmallCluster()
    cluster.create("t", [0, 1])
    cluster.heartbeat(0, want_fence=True)
    (partition,) = describe_topic(cluster.image, "t").partitions
    assert (partition.leader_id, partition.isr_nodes, partition.offline_replicas) == (1, [1], [0])
    assert describe_topic(cluster.image, "nowhere").error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
