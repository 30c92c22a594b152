"""Configs as they hold, and where they come from."""

from __future__ import annotations

import pytest

from quorate.controller.configs.description import describe_configs
from quorate.controller.configs.topic_configs import TOPIC_CONFIGS
from quorate.controller.http.handlers.views import topic_reply
from quorate.controller.partitions.view import min_insync_replicas
from quorate.controller.protocol.configs import DescribeConfigsRequest, DescribeConfigsResult
from quorate.metadata_log.errors import ErrorCode
from quorate.metadata_log.records.records import ConfigRecord
from tests.default_parts import controller_config
from tests.unit.controller.small_cluster import CLUSTER_ID, SmallCluster

TOPIC, BROKER, CLIENT_METRICS, GROUP = 2, 4, 16, 32
MIN_ISR = "min.insync.replicas"
NODE = 3000


@pytest.fixture
def cluster() -> SmallCluster:
    config = controller_config(NODE, CLUSTER_ID, static_configs={MIN_ISR: "3", "log.roll.hours": "2"})
    cluster = SmallCluster(config=config)
    cluster.create("t", [0, 1, 2], configs={"retention.ms": "5"})
    return cluster


def describe(cluster: SmallCluster, kind: str, name: str, *keys: str) -> DescribeConfigsResult:
    resource = {"resource_type": kind, "resource_name": name, "configuration_keys": list(keys) or None}
    request = DescribeConfigsRequest.model_validate({"resources": [resource]})
    return describe_configs(cluster.image, cluster.config, request).results[0]


def places(cluster: SmallCluster, kind: str, name: str, key: str) -> list[tuple[str, str | None, str]]:
    (config,) = describe(cluster, kind, name, key).configs
    assert (config.value, config.source) == (config.synonyms[0].value, config.synonyms[0].source)
    return [(place.name, place.value, place.source) for place in config.synonyms]


def test_topic_without_any_config_has_all_of_kafkas_defaults(cluster: SmallCluster) -> None:
    configs = describe(cluster, "TOPIC", "t").configs
    assert [config.name for config in configs] == sorted(n for n, d in TOPIC_CONFIGS.items() if not d.is_internal)
    values = {config.name: (config.value, config.source, config.config_type) for config in configs}
    assert values["compression.type"] == ("producer", "DEFAULT_CONFIG", "STRING")
    assert values["retention.ms"] == ("5", "DYNAMIC_TOPIC_CONFIG", "LONG")
    assert not any(config.is_sensitive for config in configs)


def test_every_place_is_named_the_one_that_counts_first(cluster: SmallCluster) -> None:
    for kind, name, value in ((TOPIC, "t", "1"), (BROKER, str(NODE), "2"), (BROKER, "", "4"), (BROKER, "1", "9")):
        cluster.write(ConfigRecord(kind, name, MIN_ISR, value))
    assert places(cluster, "TOPIC", "t", MIN_ISR) == [
        (MIN_ISR, "1", "DYNAMIC_TOPIC_CONFIG"),
        (MIN_ISR, "2", "DYNAMIC_BROKER_CONFIG"),
        (MIN_ISR, "4", "DYNAMIC_DEFAULT_BROKER_CONFIG"),
        (MIN_ISR, "3", "STATIC_BROKER_CONFIG"),
        (MIN_ISR, "1", "DEFAULT_CONFIG"),
    ]


def test_brokers_config_of_another_name_and_unit_stands_in_for_the_topics(cluster: SmallCluster) -> None:
    assert places(cluster, "TOPIC", "t", "segment.ms") == [
        ("log.roll.hours", "7200000", "STATIC_BROKER_CONFIG"),
        ("segment.ms", "604800000", "DEFAULT_CONFIG"),
    ]
    cluster.write(ConfigRecord(BROKER, "", "log.roll.hours", "1"), ConfigRecord(BROKER, "", "log.roll.ms", "70"))
    assert places(cluster, "TOPIC", "t", "segment.ms")[:2] == [
        ("log.roll.ms", "70", "DYNAMIC_DEFAULT_BROKER_CONFIG"),
        ("log.roll.hours", "3600000", "DYNAMIC_DEFAULT_BROKER_CONFIG"),
    ]


def test_what_is_said_to_hold_is_what_decisions_take(cluster: SmallCluster) -> None:
    cluster.write(ConfigRecord(BROKER, str(NODE), MIN_ISR, "many"), ConfigRecord(BROKER, "", MIN_ISR, " 2"))
    value, source = places(cluster, "TOPIC", "t", MIN_ISR)[0][1:]
    assert source == "DYNAMIC_DEFAULT_BROKER_CONFIG"
    assert int(value or "") == min_insync_replicas(cluster.image, cluster.config, "t") == 2


def test_broker_has_its_own_configs_the_clusters_and_if_it_answers_its_static_ones(cluster: SmallCluster) -> None:
    cluster.write(
        ConfigRecord(BROKER, "1", "log.retention.ms", "1"),
        ConfigRecord(BROKER, "", "log.retention.ms", "2"),
        ConfigRecord(BROKER, "", "log.cleanup.policy", "compact"),
    )
    assert places(cluster, "BROKER", "1", "log.retention.ms") == [
        ("log.retention.ms", "1", "DYNAMIC_BROKER_CONFIG"),
        ("log.retention.ms", "2", "DYNAMIC_DEFAULT_BROKER_CONFIG"),
    ]
    assert [c.name for c in describe(cluster, "BROKER", "1").configs] == ["log.cleanup.policy", "log.retention.ms"]
    assert [c.name for c in describe(cluster, "BROKER", "").configs] == ["log.cleanup.policy", "log.retention.ms"]
    own = describe(cluster, "BROKER", str(NODE)).configs
    assert [(c.name, c.source) for c in own if c.source == "STATIC_BROKER_CONFIG"] == [
        ("log.roll.hours", "STATIC_BROKER_CONFIG"),
        (MIN_ISR, "STATIC_BROKER_CONFIG"),
    ]


def test_group_and_subscription_are_described(cluster: SmallCluster) -> None:
    cluster.write(
        ConfigRecord(GROUP, "g", "share.delivery.count.limit", "7"),
        ConfigRecord(BROKER, "", "group.share.delivery.count.limit", "6"),
        ConfigRecord(CLIENT_METRICS, "m", "interval.ms", "100"),
    )
    assert places(cluster, "GROUP", "g", "share.delivery.count.limit") == [
        ("share.delivery.count.limit", "7", "GROUP_CONFIG"),
        ("group.share.delivery.count.limit", "6", "DYNAMIC_DEFAULT_BROKER_CONFIG"),
        ("share.delivery.count.limit", "5", "DEFAULT_CONFIG"),
    ]
    assert places(cluster, "CLIENT_METRICS", "m", "interval.ms")[0] == ("interval.ms", "100", "CLIENT_METRICS_CONFIG")


@pytest.mark.parametrize(
    "name", ["ssl.keystore.password", "sasl.jaas.config", "listener.name.x.ssl.key.password", "a.typing.error"]
)
def test_sensitive_value_is_never_shown(cluster: SmallCluster, name: str) -> None:
    cluster.write(ConfigRecord(BROKER, "1", name, "hush"), ConfigRecord(BROKER, "", name, "hush"))
    result = describe(cluster, "BROKER", "1")
    assert "hush" not in result.model_dump_json()
    (config,) = result.configs
    assert (config.name, config.value, config.is_sensitive, len(config.synonyms)) == (name, None, True, 2)


@pytest.mark.parametrize(
    ("kind", "name", "code"),
    [
        ("TOPIC", "none", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("TOPIC", "", ErrorCode.INVALID_REQUEST),
        ("TOPIC", "a/b", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("BROKER", "99", ErrorCode.BROKER_ID_NOT_REGISTERED),
        ("BROKER", "x", ErrorCode.INVALID_REQUEST),
        ("BROKER_LOGGER", "1", ErrorCode.INVALID_REQUEST),
        ("GROUP", "", ErrorCode.INVALID_REQUEST),
        ("CLIENT_METRICS", "", ErrorCode.INVALID_REQUEST),
    ],
)
def test_resource_that_is_not_there_is_said_so(cluster: SmallCluster, kind: str, name: str, code: ErrorCode) -> None:
    result = describe(cluster, kind, name)
    assert (result.error_code, result.configs) == (code, [])


def test_topics_own_config_that_nobody_knows_is_named_and_not_shown(cluster: SmallCluster) -> None:
    cluster.write(ConfigRecord(TOPIC, "t", "of.another.vendor", "hush"))
    reply = topic_reply(cluster.image, "t", has_configs=True)
    assert [(config.name, config.value) for config in reply.configs] == [
        ("of.another.vendor", None),
        ("retention.ms", "5"),
    ]
