"""Values of configs beyond Kafka's vectors, as Kafka 4.3.1 takes them or refuses them."""

from __future__ import annotations

import pytest

from quorate.controller.configs.resources import (
    RESOURCE_TYPES,
    ConfigResource,
    check_configs,
    default_of,
    is_list,
    is_sensitive,
)
from quorate.controller.configs.topic_configs import BROKER_SYNONYMS, TOPIC_CONFIGS, check_topic_configs
from quorate.controller.configs.values import ConfigType, parse_value
from quorate.metadata_log.errors import ApiError

#: Squared, hours.
LONG = 300_000
DEEP = "(" * 9_000
ISOLATION = "String must be one of: read_committed, read_uncommitted"
SHARE_RESET = (
    "Invalid value by_duration:-PT1H for configuration share.auto.offset.reset: Invalid value `by_duration:-PT1H` for "
    "configuration share.auto.offset.reset. The value must be either 'earliest', 'latest' or of the format "
    "'by_duration:<PnDTnHnMn.nS>'."
)
THROTTLED = (
    "leader.replication.throttled.replicas must be the literal '*' or a list of replicas in the following format: "
    "[partitionId]:[brokerId],[partitionId]:[brokerId],..."
)


def refusal(resource: ConfigResource, configs: dict[str, str | None], **present: str) -> tuple[str, str] | None:
    try:
        check_configs(resource, configs, present)
    except ApiError as error:
        return error.code.name, error.message
    return None


@pytest.mark.parametrize(
    ("type_", "text", "value"),
    [
        (ConfigType.INT, " +7 ", 7),
        (ConfigType.INT, "00000000000000000000000000000012", 12),
        (ConfigType.LONG, "-9223372036854775808", -(2**63)),
        (ConfigType.BOOLEAN, "\tTRUE ", True),
        (ConfigType.DOUBLE, "0x1p-1", 0.5),
        (ConfigType.DOUBLE, "5.d", 5.0),
        (ConfigType.DOUBLE, "1e400", float("inf")),
        (ConfigType.DOUBLE, "-0x1p9999", float("-inf")),
        (ConfigType.STRING, " a ", "a"),
        (ConfigType.LIST, " a ,\tb,", ("a", "b", "")),
        (ConfigType.LIST, "  ", ()),
    ],
)
def test_value_is_read_as_java_reads_it(type_: ConfigType, text: str, value: object) -> None:
    assert parse_value("c", type_, text) == value


@pytest.mark.parametrize(
    ("type_", "text"),
    [
        (ConfigType.INT, "2147483648"),
        (ConfigType.INT, "1_0"),
        (ConfigType.INT, "0x1"),
        (ConfigType.INT, "9" * 10_000),
        (ConfigType.LONG, "9223372036854775808"),
        (ConfigType.LONG, "1e3"),
        (ConfigType.LONG, "-"),
        (ConfigType.DOUBLE, "inf"),
        (ConfigType.DOUBLE, "nan"),
        (ConfigType.DOUBLE, "0x1"),
        (ConfigType.DOUBLE, "1_0.0"),
        (ConfigType.DOUBLE, ""),
        (ConfigType.BOOLEAN, "1"),
        (ConfigType.BOOLEAN, "true\u00a0"),
    ],
)
def test_value_of_another_type_is_refused(type_: ConfigType, text: str) -> None:
    with pytest.raises(ApiError) as refused:
        parse_value("c", type_, text)
    assert refused.value.code.name == "INVALID_CONFIG"
    assert refused.value.message.startswith(f"Invalid value {text} for configuration c: ")


@pytest.mark.parametrize(
    "text",
    ["1" * LONG + "x", "1." * LONG, "0x" + "f" * LONG + "x", "0x." + "f" * LONG, "1e" + "1" * LONG + "x"],
    ids=["digits", "points", "hexadecimal", "fraction", "exponent"],
)
def test_long_text_that_is_no_number_is_refused_before_it_costs_minutes(text: str) -> None:
    with pytest.raises(ApiError):
        parse_value("c", ConfigType.DOUBLE, text)


def test_long_blanks_in_a_list_cost_no_minutes() -> None:
    assert parse_value("c", ConfigType.LIST, "a" + " " * LONG + "b") == ("a" + " " * LONG + "b",)


@pytest.mark.parametrize(
    ("kind", "configs", "error", "message"),
    [
        ("GROUP", {"nope": "1"}, "INVALID_CONFIG", "Unknown group config name: nope"),
        ("GROUP", {"consumer.session.timeout.ms": "60001"}, "INVALID_CONFIG",
         "consumer.session.timeout.ms must be less than or equal to group.consumer.max.session.timeout.ms"),
        ("GROUP", {"consumer.heartbeat.interval.ms": "0"}, "INVALID_CONFIG",
         "Invalid value 0 for configuration consumer.heartbeat.interval.ms: Value must be at least 1"),
        ("GROUP", {"share.record.lock.duration.ms": "1000"}, "INVALID_CONFIG",
         "share.record.lock.duration.ms must be greater than or equal to group.share.min.record.lock.duration.ms"),
        ("GROUP", {"streams.num.standby.replicas": "3"}, "INVALID_CONFIG",
         "streams.num.standby.replicas must be less than or equal to group.streams.max.standby.replicas"),
        ("GROUP", {"share.auto.offset.reset": "by_duration:-PT1H"}, "INVALID_CONFIG", SHARE_RESET),
        ("GROUP", {"share.isolation.level": "x"}, "INVALID_CONFIG",
         f"Invalid value x for configuration share.isolation.level: {ISOLATION}"),
        ("CLIENT_METRICS", {"nope": "1"}, "INVALID_REQUEST", "Unknown client metrics configuration: nope"),
        ("CLIENT_METRICS", {"metrics": "a,"}, "INVALID_CONFIG", "Configuration 'metrics' values must not be empty."),
        ("CLIENT_METRICS", {"match": "a"}, "INVALID_CONFIG", "Illegal client matching pattern: a"),
        ("CLIENT_METRICS", {"match": "client_id=("}, "INVALID_CONFIG",
         "Illegal client matching pattern: client_id=("),
        ("CLIENT_METRICS", {"match": f"client_id={DEEP}"}, "INVALID_CONFIG",
         f"Illegal client matching pattern: client_id={DEEP}"),
        ("CLIENT_METRICS", {"interval.ms": "3600001"}, "INVALID_REQUEST",
         "Invalid value 3600001 for interval.ms, interval must be between 100 and 3600000 (1 hour)"),
        ("TOPIC", {"leader.replication.throttled.replicas": "1:2,x"}, "INVALID_CONFIG",
         f"Invalid value [1:2, x] for configuration leader.replication.throttled.replicas: {THROTTLED}"),
        ("TOPIC", {"min.cleanable.dirty.ratio": "123456789012d"}, "INVALID_CONFIG",
         "Invalid value 1.23456789012E11 for configuration min.cleanable.dirty.ratio: Value must be no more than 1"),
        ("TOPIC", {"min.cleanable.dirty.ratio": "-1e-4"}, "INVALID_CONFIG",
         "Invalid value -1.0E-4 for configuration min.cleanable.dirty.ratio: Value must be at least 0"),
    ],
)  # fmt: skip
def test_config_is_refused_in_kafkas_words(kind: str, configs: dict[str, str | None], error: str, message: str) -> None:
    assert refusal(ConfigResource(RESOURCE_TYPES[kind], "x"), configs) == (error, message)


@pytest.mark.parametrize(
    ("kind", "configs"),
    [
        ("GROUP", {"share.auto.offset.reset": "by_duration:P1DT2H3M4.5S", "consumer.heartbeat.interval.ms": "15000"}),
        ("CLIENT_METRICS", {"match": r"client_id=\p{Alpha}++[(\[]\Q(\E(?<n>a)"}),
        ("CLIENT_METRICS", {"metrics": "", "match": "client_id = x.* , client_source_port=1", "interval.ms": "100"}),
        ("TOPIC", {"leader.replication.throttled.replicas": "1:2, 3:4", "cleanup.policy": " compact , delete "}),
        ("BROKER", {"whatever": "x", "min.insync.replicas": "0", "none": None}),
    ],
)
def test_config_that_kafka_takes_is_taken(kind: str, configs: dict[str, str | None]) -> None:
    assert refusal(ConfigResource(RESOURCE_TYPES[kind], "1"), configs) is None


def test_tiered_storage_of_an_imported_topic_is_not_lost_by_accident() -> None:
    topic = ConfigResource(RESOURCE_TYPES["TOPIC"], "t")
    on = {"remote.storage.enable": "true"}
    refused = refusal(topic, {"retention.ms": "1"}, **on)
    assert refused is not None
    assert refused[1].startswith("It is invalid to disable remote storage without deleting remote data.")
    assert refusal(topic, {"remote.log.delete.on.disable": "true"}, **on) is None


def test_lists_secrets_and_defaults_are_known_by_name() -> None:
    topic, broker, metrics = (RESOURCE_TYPES[kind] for kind in ("TOPIC", "BROKER", "CLIENT_METRICS"))
    assert is_list(topic, "cleanup.policy")
    assert is_list(broker, "log.cleanup.policy")
    assert not is_list(topic, "log.cleanup.policy")
    assert not is_list(metrics, "metrics")  # to Kafka's controller it is none, either
    assert default_of(broker, "log.cleanup.policy") == default_of(topic, "cleanup.policy") == "delete"
    for name in ("ssl.key.password", "listener.name.x.sasl.jaas.config", "a.typing.error"):
        assert is_sensitive(broker, name), name
    assert not is_sensitive(broker, "log.retention.ms")
    assert not is_sensitive(topic, "retention.ms")


def test_definitions_hold_for_their_own_defaults() -> None:
    assert check_topic_configs({name: d.default for name, d in TOPIC_CONFIGS.items() if d.default is not None})
    assert set(BROKER_SYNONYMS) <= set(TOPIC_CONFIGS)
    assert not any(is_sensitive(RESOURCE_TYPES["BROKER"], name) for s in BROKER_SYNONYMS.values() for name, _ in s)
