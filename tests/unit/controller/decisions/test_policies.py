"""Policies: what they are shown, at which points they are asked, what becomes of their answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from quorate.controller.configs.alter_configs import decide_alter_configs, decide_incremental_alter_configs
from quorate.controller.decisions.policies import (
    REASON_CHARS_MAX,
    AlterConfigPolicy,
    ChangedConfigs,
    CreateTopicPolicy,
    NewTopic,
    Policies,
    PolicyViolation,
)
from quorate.controller.protocol.configs import (
    AlterConfigsRequest,
    AlterConfigsResourceResult,
    IncrementalAlterConfigsRequest,
)
from quorate.controller.protocol.topics import CreatableTopicResult, CreateTopicsRequest
from quorate.controller.topics.topics import decide_create_topics
from quorate.metadata_log.errors import ApiError, ErrorCode, LimitExceeded
from quorate.metadata_log.records.records import ConfigRecord
from quorate.scripts.conformance_runner.java_random import JavaRandom
from tests.policies_page import house_rules
from tests.unit.controller.small_cluster import CONFIG, SmallCluster

TOPIC, BROKER = 2, 4


class Watching:
    """Lets everything pass but what has a name of its own, and keeps what it was shown."""

    def __init__(self, refusing: Callable[[], object] = lambda: None) -> None:
        self.shown: list[Any] = []
        self._refusing = refusing

    def validate(self, shown: Any) -> Any:
        self.shown.append(shown)
        name = shown.name if isinstance(shown, NewTopic) else shown.resource_name
        return self._refusing() if name == "no" else None


def ruled(create_topic: CreateTopicPolicy | None = None, alter_config: AlterConfigPolicy | None = None) -> SmallCluster:
    return SmallCluster(config=replace(CONFIG, policies=Policies(create_topic, alter_config)))


def create(
    cluster: SmallCluster, *topics: dict[str, Any], validate_only: bool = False
) -> tuple[list[CreatableTopicResult], int]:
    """Outcomes, and how many records were written."""
    request = CreateTopicsRequest.model_validate({"topics": list(topics), "validate_only": validate_only})
    decision = decide_create_topics(cluster.image, cluster.config, request, JavaRandom(1), cluster.new_topic_id)
    return decision.reply.topics, len(cluster.commit(decision))


def alter(
    cluster: SmallCluster, kind: str, name: str, *changes: tuple[str, str, str | None], validate_only: bool = False
) -> tuple[AlterConfigsResourceResult, int]:
    configs = [{"name": key, "config_operation": operation, "value": value} for key, operation, value in changes]
    resource = {"resource_type": kind, "resource_name": name, "configs": configs}
    request = IncrementalAlterConfigsRequest.model_validate({"resources": [resource], "validate_only": validate_only})
    decision = decide_incremental_alter_configs(cluster.image, cluster.config, request)
    return decision.reply.responses[0], len(cluster.commit(decision))


def raising(error: Exception) -> Callable[[], object]:
    def refuse() -> object:
        raise error

    return refuse


# --- what it is shown --------------------------------------------------------------------------------


def test_topic_is_shown_with_numbers_or_with_replicas_and_what_is_refused_before_is_not() -> None:
    policy = Watching()
    config = [{"name": "retention.ms", "value": "5"}]
    create(
        ruled(policy),
        {"name": "placed", "configs": config},
        {"name": "given", "assignments": [{"partition_index": 0, "broker_ids": [2, 0]}]},
        {"name": "a/b"},
        {"name": "bad-config", "configs": [{"name": "no.such", "value": "1"}]},
        {"name": "too-wide", "replication_factor": 4},
        validate_only=True,
    )
    assert policy.shown == [
        NewTopic("placed", 1, 3, None, {"retention.ms": "5"}),
        NewTopic("given", None, None, {0: (2, 0)}, {}),
    ]
    with pytest.raises(TypeError):
        policy.shown[0].configs["retention.ms"] = "6"


def test_change_is_shown_as_it_would_be_made() -> None:
    policy = Watching()
    cluster = ruled(alter_config=policy)
    cluster.create("t", [0], configs={"retention.ms": "5", "flush.ms": "6"})
    cluster.write(ConfigRecord(BROKER, "1", "log.retention.ms", "7"))
    changes = [("retention.ms", "SET", "5"), ("flush.ms", "DELETE", None), ("cleanup.policy", "APPEND", "compact")]
    alter(cluster, "TOPIC", "t", *changes, validate_only=True)
    alter(cluster, "BROKER", "1", ("log.retention.ms", "SET", "7"))
    alter(cluster, "TOPIC", "absent", ("flush.ms", "SET", "1"))
    alter(cluster, "TOPIC", "t", ("flush.ms", "SET", "many"))
    assert policy.shown == [
        ChangedConfigs("TOPIC", "t", {"retention.ms": "5", "flush.ms": "6"}),
        ChangedConfigs("TOPIC", "t", {"flush.ms": None, "cleanup.policy": "delete,compact"}),
        ChangedConfigs("BROKER", "1", {"log.retention.ms": "7"}),
    ], "the configs a topic is created with; what changes; what is so already only of brokers"


def test_full_replacement_shows_what_it_names_and_not_what_it_drops() -> None:
    policy = Watching()
    cluster = ruled(alter_config=policy)
    cluster.create("t", [0], configs={"retention.ms": "5"})
    resource = {"resource_type": "TOPIC", "resource_name": "t", "configs": [{"name": "flush.ms", "value": "6"}]}
    request = AlterConfigsRequest.model_validate({"resources": [resource]})
    decision = decide_alter_configs(cluster.image, cluster.config, request)
    assert policy.shown[1:] == [ChangedConfigs("TOPIC", "t", {"flush.ms": "6"})]
    assert len(cluster.commit(decision)) == 2, "set and removed"


# --- what becomes of its answer ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("refusing", "code", "message"),
    [
        (raising(PolicyViolation("not here")), ErrorCode.POLICY_VIOLATION, "not here"),
        (raising(PolicyViolation("x" * 5000)), ErrorCode.POLICY_VIOLATION, "x" * REASON_CHARS_MAX + "…"),
        (raising(PolicyViolation("")), ErrorCode.POLICY_VIOLATION, "do not satisfy the configured policy"),
        (raising(ApiError(ErrorCode.INVALID_REQUEST, "odd")), ErrorCode.INVALID_REQUEST, "odd"),
        (raising(LimitExceeded("too much")), ErrorCode.INVALID_REQUEST, "too much"),
        (raising(ApiError(ErrorCode.NONE, "well")), ErrorCode.UNKNOWN_SERVER_ERROR, "failed and nothing was changed"),
        (raising(ValueError("secret")), ErrorCode.UNKNOWN_SERVER_ERROR, "failed and nothing was changed"),
        (lambda: False, ErrorCode.UNKNOWN_SERVER_ERROR, "failed and nothing was changed"),
    ],
)
def test_refusal_is_of_one_topic_or_resource_and_writes_nothing_of_it(
    refusing: Callable[[], object], code: ErrorCode, message: str
) -> None:
    one = {"num_partitions": 1, "replication_factor": 1}
    failures: list[str] = []
    policies = Policies(Watching(refusing), on_failure=lambda name, error: failures.append(name))
    cluster = SmallCluster(config=replace(CONFIG, policies=policies))
    (refused, made), written = create(cluster, {"name": "no", **one}, {"name": "yes", **one})
    assert (refused.error_code, made.error_code, written) == (code, ErrorCode.NONE, 2)
    assert refused.error_message is not None
    assert message in refused.error_message
    assert "secret" not in refused.error_message
    assert failures == ["create_topic"] * (code is ErrorCode.UNKNOWN_SERVER_ERROR)

    cluster = SmallCluster()
    cluster.create("no", [0])
    cluster.config = replace(CONFIG, policies=Policies(alter_config=Watching(refusing)))
    altered, written = alter(cluster, "TOPIC", "no", ("retention.ms", "SET", "5"))
    assert (altered.error_code, altered.error_message is not None and message in altered.error_message) == (code, True)
    assert written == 0


def test_configs_of_a_new_topic_are_for_the_policy_of_configs_too() -> None:
    cluster = ruled(alter_config=Watching(raising(PolicyViolation("not so"))))
    configs = [{"name": "retention.ms", "value": "5"}]
    (plain, with_configs), written = create(cluster, {"name": "plain"}, {"name": "no", "configs": configs})
    assert (plain.error_code, with_configs.error_code, written) == (ErrorCode.NONE, ErrorCode.POLICY_VIOLATION, 2)


def test_what_is_only_to_be_validated_is_refused_too() -> None:
    cluster = ruled(Watching(raising(PolicyViolation("not here"))))
    (result,), written = create(cluster, {"name": "no"}, validate_only=True)
    assert (result.error_code, written) == (ErrorCode.POLICY_VIOLATION, 0)


# --- the page ----------------------------------------------------------------------------------------


def test_rules_of_the_page_do_what_it_says() -> None:
    names: dict[str, Any] = {}
    exec(compile(house_rules(), "house_rules.py", "exec"), names)
    cluster = ruled(names["TopicRules"](), names["ConfigRules"]())
    month = [{"name": "retention.ms", "value": "2592000000"}]
    longer = [{"name": "retention.ms", "value": "2592000001"}]
    results, _ = create(
        cluster,
        {"name": "orders"},
        {"name": "sales.orders", "replication_factor": 1},
        {"name": "sales.lines", "assignments": [{"partition_index": 0, "broker_ids": [1]}]},
        {"name": "sales.kept", "configs": longer},
        {"name": "sales.good", "configs": month},
    )
    assert [result.error_message for result in results] == [
        "a topic is called team.purpose, not orders",
        "sales.orders would have one replica: at least two",
        "sales.lines would have one replica: at least two",
        "retention.ms of sales.kept: at most 2592000000, not 2592000001",
        None,
    ]
    assert alter(cluster, "TOPIC", "sales.good", ("retention.ms", "SET", "-1"))[0].error_code == 44
    assert alter(cluster, "TOPIC", "sales.good", ("retention.ms", "DELETE", None))[0].error_code == 0
    assert alter(cluster, "BROKER", "", ("retention.ms", "SET", "x"))[0].error_code == 0
