"""What is answered to who creates topics, held to what controllers of Kafka 4.3.1 answered."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from quorate.controller.protocol.configs import CreatedTopicConfig
from quorate.controller.protocol.topics import CreatableTopicResult, CreateTopicsRequest
from quorate.controller.topics.topics import decide_create_topics
from quorate.metadata_log.errors import ErrorCode
from quorate.metadata_log.records.records import ConfigRecord
from quorate.scripts.conformance_runner.java_random import JavaRandom
from tests.default_parts import controller_config
from tests.unit.controller.small_cluster import CLUSTER_ID, SmallCluster, registration

CAPTURED = Path(__file__).parents[3] / "data" / "kafka-wire" / "created_topics.jsonl.gz"
BROKER = 4
RETENTION, MIN_ISR = "log.retention.ms", "min.insync.replicas"
#: Kafka's numbers of the sources (``DescribeConfigsResponse.ConfigSource``).
SOURCES = {
    1: "DYNAMIC_TOPIC_CONFIG",
    2: "DYNAMIC_BROKER_CONFIG",
    3: "DYNAMIC_DEFAULT_BROKER_CONFIG",
    4: "STATIC_BROKER_CONFIG",
    5: "DEFAULT_CONFIG",
}


def exchanges(run: str) -> Iterator[dict[str, Any]]:
    """What was asked in one run, and answered, in the order of time."""
    with gzip.open(CAPTURED, "rt", encoding="utf-8") as lines:
        yield from (one for one in map(json.loads, lines) if one["run"] == run)


def captured_cluster() -> SmallCluster:
    """The controllers and brokers of the captures, before anybody asked for anything."""
    static = {"log.index.size.max.bytes": "16384"}
    config = controller_config(3000, CLUSTER_ID, default_replication_factor=1, static_configs=static)
    cluster = SmallCluster(0, elr=True, config=config)
    for broker in (11, 12):
        cluster.register(registration(broker))
        cluster.heartbeat(broker)
    cluster.write(ConfigRecord(BROKER, "", MIN_ISR, "1"))
    return cluster


def asked(request: dict[str, Any]) -> CreateTopicsRequest:
    topics = [
        {
            "name": topic["name"],
            "num_partitions": topic["numPartitions"],
            "replication_factor": topic["replicationFactor"],
            "configs": topic["configs"],
            "assignments": [
                {"partition_index": one["partitionIndex"], "broker_ids": one["brokerIds"]}
                for one in topic["assignments"]
            ],
        }
        for topic in request["topics"]
    ]
    return CreateTopicsRequest.model_validate({"topics": topics, "validate_only": request["validateOnly"]})


def answered(topic: dict[str, Any]) -> dict[str, Any]:
    """Kafka's answer about one topic in our form. Its id is left out: those are random."""
    configs = [
        CreatedTopicConfig(
            name=config["name"],
            value=config["value"],
            source=SOURCES[config["configSource"]],  # type: ignore[arg-type]
            is_sensitive=config["isSensitive"],
            read_only=config["readOnly"],
        )
        for config in topic["configs"]
    ]
    result = CreatableTopicResult(
        name=topic["name"],
        error_code=topic["errorCode"],
        error_message=topic["errorMessage"],
        num_partitions=topic["numPartitions"],
        replication_factor=topic["replicationFactor"],
        configs=configs,
    )
    return result.model_dump(exclude={"topic_id"})


@pytest.mark.parametrize(("run", "count"), [("one", 43), ("dynamic", 31)])
def test_answers_are_those_of_kafkas_controllers(run: str, count: int) -> None:
    cluster, compared = captured_cluster(), 0
    for exchange in exchanges(run):
        request, response = exchange["request"], exchange["response"]
        if exchange["api"] != "CreateTopics":
            change(cluster, request, response)
            continue
        for topic in response["topics"]:
            # Made by somebody whose request was not kept.
            if (
                topic["errorCode"] == ErrorCode.TOPIC_ALREADY_EXISTS
                and topic["name"] not in cluster.image.topics.by_name
            ):
                cluster.create(topic["name"], [11])
        decision = decide_create_topics(
            cluster.image, cluster.config, asked(request), JavaRandom(1), cluster.new_topic_id
        )
        cluster.commit(decision)
        results = {one.name: one.model_dump(exclude={"topic_id"}) for one in decision.reply.topics}
        assert results == {topic["name"]: answered(topic) for topic in response["topics"]}, exchange["id"]
        compared += len(results)
    assert compared == count


def change(cluster: SmallCluster, request: dict[str, Any], response: dict[str, Any]) -> None:
    """What a request altered of the brokers' defaults."""
    outcomes = {(one["resourceType"], one["resourceName"]): one["errorCode"] for one in response["responses"]}
    for resource in request["resources"]:
        if (resource["resourceType"], resource["resourceName"]) == (BROKER, "") and not outcomes[BROKER, ""]:
            for config in resource["configs"]:
                cluster.write(ConfigRecord(BROKER, "", config["name"], config["value"]))


def test_configs_of_the_topic_go_before_the_nodes_and_these_before_all_brokers() -> None:
    cluster = captured_cluster()
    cluster.write(
        ConfigRecord(BROKER, "", RETENTION, "2"),
        ConfigRecord(BROKER, "3000", RETENTION, "3"),
        ConfigRecord(BROKER, "3001", "log.roll.ms", "4"),
        ConfigRecord(BROKER, "", "log.roll.hours", "many"),
        ConfigRecord(BROKER, "", "log.roll.jitter.hours", "2"),
    )
    configs: dict[str, str | None] = {"internal.segment.bytes": "2000000", "flush.ms": "5"}
    held = {one.name: (one.value, one.source) for one in cluster.create("t", [11], configs=configs).topics[0].configs}
    assert held["flush.ms"] == ("5", "DYNAMIC_TOPIC_CONFIG")
    assert held["retention.ms"] == ("3", "DYNAMIC_BROKER_CONFIG")
    assert held["segment.jitter.ms"] == ("7200000", "DYNAMIC_DEFAULT_BROKER_CONFIG")
    assert held["segment.index.bytes"] == ("16384", "STATIC_BROKER_CONFIG")
    assert held["segment.ms"] == ("604800000", "DEFAULT_CONFIG"), "what is no number, and what is another node's"
    assert held["internal.segment.bytes"] == ("2000000", "DYNAMIC_TOPIC_CONFIG")
    assert list(held) == sorted(held)


def test_topic_that_is_not_made_has_no_id_and_all_else_of_the_answer() -> None:
    cluster = captured_cluster()
    request = CreateTopicsRequest.model_validate({"topics": [{"name": "t"}], "validate_only": True})
    decision = decide_create_topics(cluster.image, cluster.config, request, JavaRandom(1), cluster.new_topic_id)
    (result,) = decision.reply.topics
    assert (result.topic_id, result.num_partitions, result.replication_factor) == (None, 1, 1)
    assert len(result.configs) == 33
