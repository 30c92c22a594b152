"""Topics and partitions have an upper bound in all, and who goes over it is told by which setting."""

from __future__ import annotations

from dataclasses import replace

import pytest

from quorate.controller.protocol import (
    CreatableTopic,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    CreateTopicsRequest,
)
from quorate.controller.topics.topics import decide_create_partitions, decide_create_topics
from quorate.metadata_log.errors import ErrorCode
from quorate.scripts.conformance_runner.java_random import JavaRandom
from tests.unit.controller.small_cluster import SmallCluster


def new(*names: str, partitions: int = 1) -> CreateTopicsRequest:
    topics = [CreatableTopic(name=name, num_partitions=partitions, replication_factor=1) for name in names]
    return CreateTopicsRequest(topics=topics)


@pytest.mark.parametrize("bound", ["topics_max", "partitions_max"])
def test_topics_of_one_request_are_created_until_there_is_no_room(bound: str) -> None:
    cluster = SmallCluster()
    cluster.create("there", [0])
    config = replace(cluster.config, **{bound: 3})  # type: ignore[arg-type]
    decision = decide_create_topics(cluster.image, config, new("a", "b", "c", "d"), JavaRandom(1), cluster.new_topic_id)
    cluster.commit(decision)
    codes = [result.error_code for result in decision.reply.topics]
    assert codes == [ErrorCode.NONE, ErrorCode.NONE, ErrorCode.POLICY_VIOLATION, ErrorCode.POLICY_VIOLATION]
    assert f"limits.{bound}" in (decision.reply.topics[2].error_message or "")
    assert sorted(cluster.image.topics.by_name) == ["a", "b", "there"]
    assert len(cluster.image.partitions) == 3


def test_topic_that_is_too_large_leaves_its_room_to_the_next_one() -> None:
    cluster = SmallCluster()
    config = replace(cluster.config, partitions_max=2)
    request = CreateTopicsRequest(topics=[*new("large", partitions=3).topics, *new("small", partitions=2).topics])
    decision = decide_create_topics(cluster.image, config, request, JavaRandom(1), cluster.new_topic_id)
    codes = [result.error_code for result in decision.reply.topics]
    assert codes == [ErrorCode.POLICY_VIOLATION, ErrorCode.NONE]


def test_topics_grow_until_there_is_no_room_and_no_further() -> None:
    cluster = SmallCluster()
    for name in ("a", "b"):
        cluster.create(name, [0])
    config = replace(cluster.config, topics_max=1, partitions_max=4)
    topics = [CreatePartitionsTopic(name=name, count=3) for name in ("a", "b")]
    decision = decide_create_partitions(cluster.image, config, CreatePartitionsRequest(topics=topics), JavaRandom(1))
    cluster.commit(decision)
    codes = [result.error_code for result in decision.reply.results]
    assert codes == [ErrorCode.NONE, ErrorCode.POLICY_VIOLATION]
    assert len(cluster.image.partitions) == 4
