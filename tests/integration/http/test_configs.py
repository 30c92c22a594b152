"""Configs and features over HTTP: changes, descriptions, refusals that change nothing."""

from __future__ import annotations

from typing import Any, Final

import pytest

from quorate.controller.api.models import ErrorReply
from quorate.controller.client.client import ControllerClient
from quorate.controller.protocol import CreatableTopic, CreateTopicsRequest
from quorate.controller.protocol.configs import AlterConfigsRequest, IncrementalAlterConfigsRequest
from quorate.controller.protocol.features import UpdateFeaturesRequest
from quorate.metadata_log.errors import ApiError, ErrorCode
from tests.integration.http_stage import Bad, stage

CONFIGS = "/v1/configs"
REPLACE = "/v1/configs/replace"
FEATURES = "/v1/features"
ELR = "eligible.leader.replicas.version"


def changes(kind: str, name: str, *entries: tuple[str, str, str | None]) -> dict[str, Any]:
    configs = [{"name": key, "config_operation": op, "value": value} for key, op, value in entries]
    return {"resource_type": kind, "resource_name": name, "configs": configs}


def incremental(*resources: dict[str, Any], **fields: Any) -> IncrementalAlterConfigsRequest:
    return IncrementalAlterConfigsRequest.model_validate({"resources": list(resources), **fields})


def features(name: str, level: Any, kind: str = "UPGRADE", **fields: Any) -> dict[str, Any]:
    return {"feature_updates": [{"feature": name, "max_version_level": level, "upgrade_type": kind}], **fields}


async def test_client_changes_and_describes_configs() -> None:
    async with stage() as s, ControllerClient(s.urls) as client:
        await s.register(1, 11)
        await client.create_topics(CreateTopicsRequest(topics=[CreatableTopic(name="foo", num_partitions=1)]))
        change = changes("TOPIC", "foo", ("retention.ms", "SET", "7"), ("cleanup.policy", "APPEND", "compact"))
        await client.incremental_alter_configs(incremental(change, changes("BROKER", "", ("log.roll.ms", "SET", "9"))))
        described = await client.describe_configs("TOPIC", "foo", is_linearizable=True)
        configs = {config.name: config for config in described.configs}
        assert configs["cleanup.policy"].value == "delete,compact"
        assert (configs["segment.ms"].value, configs["segment.ms"].source) == ("9", "DYNAMIC_DEFAULT_BROKER_CONFIG")
        replaced = {
            "resources": [
                {
                    "resource_type": "TOPIC",
                    "resource_name": "foo",
                    "configs": [{"name": "flush.ms", "value": "1"}],
                }
            ]
        }
        await client.alter_configs(AlterConfigsRequest.model_validate(replaced))
        topic = await client.describe_topic("foo")
        assert [(config.name, config.value) for config in topic.configs] == [("flush.ms", "1")]
        dry = await client.incremental_alter_configs(incremental(change, validate_only=True))
        assert dry.responses[0].error_code is ErrorCode.NONE
        assert len((await client.describe_topic("foo")).configs) == 1


async def test_client_changes_and_describes_features() -> None:
    async with stage() as s, ControllerClient(s.urls) as client:
        off = UpdateFeaturesRequest.model_validate(features(ELR, 0, "SAFE_DOWNGRADE"))
        (result,) = (await client.update_features(off)).results
        assert (result.feature, result.level_before, result.level_after) == (ELR, 1, 0)
        described = await client.describe_features(is_linearizable=True)
        levels = {feature.feature: feature.finalized_version_level for feature in described.features}
        assert (levels[ELR], levels["metadata.version"]) == (0, 30)


async def test_client_is_told_what_a_refused_downgrade_would_lose() -> None:
    async with stage() as s, ControllerClient(s.urls) as client:
        await s.register(1, 11)
        down = UpdateFeaturesRequest.model_validate(features("metadata.version", 7, "SAFE_DOWNGRADE"))
        with pytest.raises(ApiError) as refused:
            await client.update_features(down)
        assert refused.value.code is ErrorCode.INVALID_UPDATE_VERSION
        assert isinstance(refused.value.details["losses"], list)


async def test_several_resources_of_which_some_fail_are_answered_one_by_one() -> None:
    async with stage() as s:
        body = incremental(
            changes("GROUP", "g", ("consumer.heartbeat.interval.ms", "SET", "6000")),
            changes("BROKER", "", ("num.io.threads", "SET", "0")),
            changes("TOPIC", "none", ("retention.ms", "SET", "1")),
            changes("BROKER", "", ("nonsense.config", "SET", "x"), ("log.retention.ms", "SET", "7")),
            changes("BROKER", "", ("log.retention.ms", "DELETE", None), ("log.preallocate", "SET", "maybe")),
        ).model_dump()
        body["resources"][3]["resource_name"] = "11"
        await s.register(1, 11)
        status, reply, _ = await s.ask(2, "POST", CONFIGS, body)
        assert status == 207
        codes = [result["error_code"] for result in reply["responses"]]
        assert codes == [
            0, ErrorCode.INVALID_REQUEST, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 0, ErrorCode.INVALID_REQUEST,
        ]  # fmt: skip
        of_broker = s.members[1].controller.stable.configs.of(4, "11")
        assert dict(of_broker) == {"nonsense.config": "x", "log.retention.ms": "7"}
        status, reply, _ = await s.ask(2, "GET", f"{CONFIGS}?resource_type=GROUP&resource_name=g")
        assert (status, reply["configs"][1]["value"]) == (200, "6000")


def one(*entries: Any, kind: Any = "TOPIC", name: Any = "known") -> dict[str, Any]:
    return {"resources": [{"resource_type": kind, "resource_name": name, "configs": list(entries)}]}


def entry(**fields: Any) -> dict[str, Any]:
    return {"name": "retention.ms", "config_operation": "SET", "value": "1", **fields}


ALTER: Final = ("POST", CONFIGS)
FORM: Final = (400, "INVALID_REQUEST")
CONFIG: Final = (422, "INVALID_CONFIG")
LEVEL: Final = (409, "INVALID_UPDATE_VERSION")
CASES = [
    # --- form ---
    Bad("no resources", *ALTER, {}, *FORM, "body resources: must be given"),
    Bad("unknown field", *ALTER, one(entry(colour=1)), *FORM, "configs.0.colour: is not known"),
    Bad("unknown type", *ALTER, one(kind="LAKE"), *FORM, "resource_type"),
    Bad("type as a number", *ALTER, one(kind=2), *FORM, "resource_type"),
    Bad("unknown operation", *ALTER, one(entry(config_operation="ADD")), *FORM, "config_operation"),
    Bad("number for a value", *ALTER, one(entry(value=7)), *FORM, "value: "),
    Bad("no name", *ALTER, one({"value": "7"}), *FORM, "configs.0.name: must be given"),
    Bad("long value", *ALTER, one(entry(value="x" * 32_768)), *FORM, "32767"),
    Bad("too many configs", *ALTER, one(*[entry(name=f"c{n}") for n in range(1_001)]), *FORM,
        "at most 1000 items"),
    Bad("too many resources", *ALTER, {"resources": [one()["resources"][0]] * 10_001}, *FORM,
        "at most 10000 items"),
    Bad("replacement with operations", "POST", REPLACE, one(entry()), *FORM, "config_operation: is not"),
    Bad("description without a type", "GET", CONFIGS, None, *FORM, "resource_type: must be given"),
    Bad("description of an unknown type", "GET", f"{CONFIGS}?resource_type=LAKE", None, *FORM, "LAKE"),
    Bad("level as text", "POST", FEATURES, features(ELR, "1"), *FORM, "max_version_level"),
    Bad("huge level", "POST", FEATURES, features(ELR, 2**15), *FORM, "max_version_level"),
    Bad("unknown upgrade type", "POST", FEATURES, features(ELR, 1, "SIDEWAYS"), *FORM, "upgrade_type"),
    Bad("too many features", "POST", FEATURES, {"feature_updates": [{"feature": "f", "max_version_level": 1}] * 101},
        *FORM, "at most 100 items"),
    # --- what it says ---
    Bad("unknown config", *ALTER, one(entry(name="nope")), *CONFIG, "Unknown topic config name: nope"),
    Bad("bad value", *ALTER, one(entry(value="x")), *CONFIG, "Invalid value x for configuration"),
    Bad("bad value in a replacement", "POST", REPLACE, one({"name": "retention.ms", "value": "x"}), *CONFIG,
        "Not a number of type LONG"),
    Bad("append to a number", *ALTER, one(entry(config_operation="APPEND")), *CONFIG, "not LIST"),
    Bad("append of nothing", *ALTER, one(entry(name="cleanup.policy", config_operation="APPEND", value=None)),
        *CONFIG, "without a value"),
    Bad("config twice", *ALTER, one(entry(), entry()), *FORM, "duplicate config keys"),
    Bad("unknown topic", *ALTER, one(entry(), name="none"), 404, "UNKNOWN_TOPIC_OR_PARTITION", "none"),
    Bad("topic with a slash", *ALTER, one(entry(), name="a/b"), 422, "INVALID_TOPIC_EXCEPTION", "a/b"),
    Bad("unknown broker", *ALTER, one(entry(), kind="BROKER", name="99"), 404, "BROKER_ID_NOT_REGISTERED", "99"),
    Bad("broker that is no number", *ALTER, one(entry(), kind="BROKER", name="x"), *FORM, "parse"),
    Bad("logger", *ALTER, one(entry(), kind="BROKER_LOGGER", name="11"), *FORM, "BROKER_LOGGER"),
    Bad("min ISR of one broker", *ALTER, one(entry(name="min.insync.replicas"), kind="BROKER", name="11"), *CONFIG,
        "Broker-level min.insync.replicas cannot be altered"),
    Bad("min ISR that is no number", *ALTER,
        one(entry(name="min.insync.replicas", value="abc"), kind="BROKER", name=""), *FORM,
        "Invalid value abc for configuration min.insync.replicas: Not a number of type INT"),
    Bad("threads below one", *ALTER, one(entry(name="num.io.threads", value="-7"), kind="BROKER", name="11"), *FORM,
        "num.io.threads"),
    Bad("hours that are no int", "POST", REPLACE,
        one({"name": "log.retention.hours", "value": "3000000000"}, kind="BROKER", name="11"), *FORM, "type INT"),
    Bad("cluster without a min ISR", "POST", REPLACE, one(kind="BROKER", name=""), *CONFIG,
        "Cluster-level min.insync.replicas cannot be removed"),
    Bad("configs of no topic", "GET", f"{CONFIGS}?resource_type=TOPIC&resource_name=none", None, 404,
        "UNKNOWN_TOPIC_OR_PARTITION", "none"),
    Bad("topic of bad configs", "POST", "/v1/topics",
        {"topics": [{"name": "foo", "configs": [{"name": "segment.ms", "value": "0"}]}]}, *CONFIG,
        "Invalid value 0 for configuration segment.ms: Value must be at least 1"),
    Bad("unknown feature", "POST", FEATURES, features("nope", 1), *LEVEL, "does not support"),
    Bad("level that is too high", "POST", FEATURES, features(ELR, 2), *LEVEL, "versions 0-1"),
    Bad("lossy downgrade", "POST", FEATURES, features("metadata.version", 29, "UNSAFE_DOWNGRADE"), *LEVEL,
        "Unsupported metadata.version downgrade from 30 to 29."),
]  # fmt: skip


async def test_bad_input_is_refused_in_one_shape_and_changes_nothing() -> None:
    async with stage() as s:
        await s.register(1, 11)
        await s.ask(1, "POST", "/v1/topics", {"topics": [{"name": "known"}]})
        end = s.quorum.log_end_offset
        problems = []
        for bad in CASES:
            status, reply, _ = await s.ask(1, bad.method, bad.path, bad.body)
            if status == 200:
                problems.append(f"{bad.name}: {reply}")
                continue
            error = ErrorReply.model_validate(reply)
            if (status, error.error) != (bad.status, bad.error) or bad.says not in error.message:
                problems.append(f"{bad.name}: {status} {error.error}: {error.message}")
            if s.quorum.log_end_offset != end:
                problems.append(f"{bad.name}: something was written")
                end = s.quorum.log_end_offset
        assert problems == []
