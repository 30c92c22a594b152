"""Changes of configs: incremental ones and full replacement."""

from __future__ import annotations

import pytest

from quorate.controller.configs.alter_configs import decide_alter_configs, decide_incremental_alter_configs
from quorate.controller.decisions.decision import Decision
from quorate.controller.partitions.view import effective_min_isr, min_insync_replicas
from quorate.controller.protocol.configs import (
    AlterConfigsRequest,
    AlterConfigsResponse,
    IncrementalAlterConfigsRequest,
)
from quorate.metadata_log.errors import ErrorCode, LimitExceeded
from quorate.metadata_log.records.records import (
    ClearElrRecord,
    ConfigRecord,
    FeatureLevelRecord,
    PartitionChangeRecord,
    Record,
    RegisterControllerRecord,
    VersionedRecord,
)
from tests.default_parts import controller_config
from tests.unit.controller.small_cluster import CLUSTER_ID, CONFIG, SmallCluster, uuid

TOPIC, BROKER, CLIENT_METRICS, GROUP = 2, 4, 16, 32
MIN_ISR = "min.insync.replicas"
Change = tuple[str, str, str | None]


def incremental(
    cluster: SmallCluster, *resources: tuple[str, str, list[Change]], validate_only: bool = False
) -> tuple[AlterConfigsResponse, list[Record]]:
    request = IncrementalAlterConfigsRequest.model_validate(
        {
            "resources": [
                {
                    "resource_type": kind,
                    "resource_name": name,
                    "configs": [{"name": key, "config_operation": op, "value": value} for key, op, value in changes],
                }
                for kind, name, changes in resources
            ],
            "validate_only": validate_only,
        }
    )
    decision = decide_incremental_alter_configs(cluster.image, cluster.config, request)
    return decision.reply, cluster.commit(decision)


def replacement(cluster: SmallCluster, kind: str, name: str, **configs: str) -> tuple[ErrorCode, list[Record]]:
    entries = [{"name": key.replace("_", "."), "value": value} for key, value in configs.items()]
    resource = {"resource_type": kind, "resource_name": name, "configs": entries}
    request = AlterConfigsRequest.model_validate({"resources": [resource]})
    decision = decide_alter_configs(cluster.image, cluster.config, request)
    return decision.reply.responses[0].error_code, cluster.commit(decision)


@pytest.fixture
def cluster() -> SmallCluster:
    cluster = SmallCluster()
    cluster.create("t", [0, 1, 2], configs={"retention.ms": "5"})
    return cluster


@pytest.fixture
def elr_cluster() -> SmallCluster:
    cluster = SmallCluster(elr=True)
    cluster.write(ConfigRecord(BROKER, "", MIN_ISR, "1"))
    cluster.create("t", [0, 1, 2])
    return cluster


# --- incremental ---------------------------------------------------------------------------------------


def test_resources_of_one_request_have_their_own_outcomes(cluster: SmallCluster) -> None:
    reply, records = incremental(
        cluster,
        ("TOPIC", "t", [("retention.ms", "SET", "7"), ("cleanup.policy", "APPEND", "compact")]),
        ("TOPIC", "none", [("retention.ms", "SET", "7")]),
        ("BROKER", "1", [("log.retention.ms", "SET", "x")]),
        ("GROUP", "g", [("consumer.heartbeat.interval.ms", "SET", "6000")]),
        ("CLIENT_METRICS", "m", [("interval.ms", "SET", "100")]),
    )
    assert [r.error_code.name for r in reply.responses] == [
        "NONE",
        "UNKNOWN_TOPIC_OR_PARTITION",
        "NONE",
        "NONE",
        "NONE",
    ]
    assert reply.responses[1].error_message == "The topic 'none' does not exist."
    assert records == [
        ConfigRecord(TOPIC, "t", "retention.ms", "7"),
        ConfigRecord(TOPIC, "t", "cleanup.policy", "delete,compact"),
        ConfigRecord(BROKER, "1", "log.retention.ms", "x"),
        ConfigRecord(GROUP, "g", "consumer.heartbeat.interval.ms", "6000"),
        ConfigRecord(CLIENT_METRICS, "m", "interval.ms", "100"),
    ]


def test_one_bad_change_keeps_all_of_its_resource_out(cluster: SmallCluster) -> None:
    reply, records = incremental(cluster, ("TOPIC", "t", [("retention.ms", "SET", "7"), ("segment.ms", "SET", "0")]))
    assert reply.responses[0].error_code is ErrorCode.INVALID_CONFIG
    assert records == []


def test_change_to_the_same_value_is_written_for_brokers_only(cluster: SmallCluster) -> None:
    """Brokers load what a config points at (a key store, say) whenever its record comes."""
    incremental(cluster, ("BROKER", "", [("log.retention.ms", "SET", "5")]))
    _, records = incremental(
        cluster,
        ("TOPIC", "t", [("retention.ms", "SET", "5"), ("segment.ms", "DELETE", None)]),
        ("BROKER", "", [("log.retention.ms", "SET", "5"), ("nope", "DELETE", None)]),
    )
    assert records == [ConfigRecord(BROKER, "", "log.retention.ms", "5"), ConfigRecord(BROKER, "", "nope", None)]


def test_validate_only_answers_and_writes_nothing(cluster: SmallCluster) -> None:
    reply, records = incremental(
        cluster,
        ("TOPIC", "t", [("retention.ms", "SET", "7")]),
        ("TOPIC", "t2", [("retention.ms", "SET", "7")]),
        validate_only=True,
    )
    assert [r.error_code for r in reply.responses] == [ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert records == []


@pytest.mark.parametrize(
    ("before", "operation", "value", "after"),
    [
        (None, "APPEND", "", "delete,"),
        (None, "APPEND", "delete", "delete"),
        (None, "APPEND", "bad,bad,", "delete,bad"),
        (None, "SUBTRACT", "bad", "delete"),
        (None, "SUBTRACT", "compact,delete", ""),
        ("a,b,,c", "SUBTRACT", "b,", "a,c"),
        ("", "APPEND", "x", "x"),
        ("a", "APPEND", ",,", "a"),
    ],
)
def test_list_is_appended_to_and_taken_from_as_java_splits_it(
    cluster: SmallCluster, before: str | None, operation: str, value: str, after: str
) -> None:
    if before is not None:
        cluster.write(ConfigRecord(BROKER, "", "log.cleanup.policy", before))
    _, records = incremental(cluster, ("BROKER", "", [("log.cleanup.policy", operation, value)]))
    assert records == [ConfigRecord(BROKER, "", "log.cleanup.policy", after)]


@pytest.mark.parametrize(
    ("kind", "name", "change", "code", "says"),
    [
        ("TOPIC", "t", ("nope", "SET", "1"), "INVALID_CONFIG", "Unknown topic config name: nope"),
        ("TOPIC", "t", ("retention.ms", "APPEND", "1"), "INVALID_CONFIG", "Can't APPEND to key retention.ms because"),
        ("TOPIC", "t", ("cleanup.policy", "SUBTRACT", None), "INVALID_CONFIG", "without a value"),
        ("TOPIC", "t", ("cleanup.policy", "APPEND", ""), "INVALID_CONFIG", "values must not be empty"),
        ("TOPIC", "t", ("remote.storage.enable", "SET", "true"), "INVALID_CONFIG", "Tiered Storage functionality"),
        ("TOPIC", "t", ("compression.type", "SET", "é" * 20_000), "INVALID_CONFIG", "maximum value size of 32767"),
        ("TOPIC", "", ("retention.ms", "SET", "1"), "INVALID_REQUEST", "Default topic resources"),
        ("TOPIC", "a/b", ("retention.ms", "SET", "1"), "INVALID_TOPIC_EXCEPTION", "a/b"),
        ("BROKER", "9", ("nope", "SET", "1"), "BROKER_ID_NOT_REGISTERED", "No node with id 9 found."),
        ("BROKER", "x", ("nope", "SET", "1"), "INVALID_REQUEST", "Unable to parse broker name"),
        ("BROKER", "-1", ("nope", "SET", "1"), "INVALID_REQUEST", "Invalid negative broker ID."),
        ("BROKER", "", ("log.retention.ms", "APPEND", "1"), "INVALID_CONFIG", "its type is not LIST"),
        ("BROKER", "1", ("cordoned.log.dirs", "SET", "/d"), "INVALID_CONFIG", "must be a subset of the current"),
        ("BROKER", "", ("é" * 20_000, "SET", "1"), "INVALID_REQUEST", "longer than 32767 bytes"),
        ("BROKER_LOGGER", "1", ("kafka", "SET", "INFO"), "INVALID_REQUEST", "Unknown resource type BROKER_LOGGER"),
        ("GROUP", "", ("consumer.session.timeout.ms", "SET", "1"), "INVALID_REQUEST", "Default group resources"),
        ("GROUP", "g", ("consumer.session.timeout.ms", "SET", "1"), "INVALID_CONFIG", "group.consumer.min.session"),
        ("CLIENT_METRICS", "", ("interval.ms", "SET", "1"), "INVALID_REQUEST", "Subscription name can't be empty"),
        ("CLIENT_METRICS", "m", ("interval.ms", "SET", "1"), "INVALID_REQUEST", "between 100 and 3600000"),
    ],
)  # fmt: skip
def test_bad_change_is_refused_and_changes_nothing(
    cluster: SmallCluster, kind: str, name: str, change: Change, code: str, says: str
) -> None:
    reply, records = incremental(cluster, (kind, name, [change]))
    (result,) = reply.responses
    assert result.error_code.name == code
    assert result.error_message is not None
    assert says in result.error_message
    assert records == []


def test_resource_or_config_named_twice_is_refused(cluster: SmallCluster) -> None:
    one: Change = ("retention.ms", "SET", "1")
    reply, records = incremental(cluster, ("TOPIC", "t", [one]), ("TOPIC", "t", [one]), ("BROKER", "1", [one, one]))
    assert [r.error_message for r in reply.responses] == [
        "Duplicate resource.",
        "Duplicate resource.",
        "Error due to duplicate config keys",
    ]
    assert records == []


def test_controllers_have_configs_as_brokers_do(cluster: SmallCluster) -> None:
    cluster.write(RegisterControllerRecord(3001, uuid(1, 3001), False))
    for node in ("3000", "3001", "+3000"):
        reply, _ = incremental(cluster, ("BROKER", node, [("log.retention.ms", "SET", "1")]))
        assert reply.responses[0].error_code is ErrorCode.NONE, node


def test_cordoned_directories_can_only_be_given_back(cluster: SmallCluster) -> None:
    cluster.write(ConfigRecord(BROKER, "1", "cordoned.log.dirs", "/a, /b"))
    reply, _ = incremental(cluster, ("BROKER", "1", [("cordoned.log.dirs", "SET", "/b")]))
    assert reply.responses[0].error_code is ErrorCode.NONE
    cluster.write(FeatureLevelRecord("metadata.version", 29))
    reply, _ = incremental(cluster, ("BROKER", "1", [("cordoned.log.dirs", "SET", "")]))
    assert "requires metadata.version >= 4.3-IV0" in (reply.responses[0].error_message or "")


def test_request_with_too_many_records_is_refused_as_a_whole(cluster: SmallCluster) -> None:
    changes: list[Change] = [(f"c{n}", "SET", "1") for n in range(1_000)]
    change: Change = ("consumer.heartbeat.interval.ms", "SET", "6000")
    groups = [("GROUP", f"g{n}", [change]) for n in range(9_999)]
    with pytest.raises(LimitExceeded) as refused:
        incremental(cluster, ("BROKER", "", changes), *groups)
    assert refused.value.code is ErrorCode.POLICY_VIOLATION


# --- full replacement ----------------------------------------------------------------------------------


def test_replacement_removes_what_it_does_not_name(cluster: SmallCluster) -> None:
    incremental(cluster, ("TOPIC", "t", [("segment.ms", "SET", "9"), ("flush.ms", "SET", "9")]))
    code, records = replacement(cluster, "TOPIC", "t", segment_ms="9", retention_bytes="1")
    assert code is ErrorCode.NONE
    assert records == [
        ConfigRecord(TOPIC, "t", "retention.bytes", "1"),
        ConfigRecord(TOPIC, "t", "flush.ms", None),
        ConfigRecord(TOPIC, "t", "retention.ms", None),
    ]
    assert cluster.image.configs.of(TOPIC, "t") == {"segment.ms": "9", "retention.bytes": "1"}


def test_replacement_that_is_refused_removes_nothing(cluster: SmallCluster) -> None:
    code, records = replacement(cluster, "TOPIC", "t", segment_ms="0")
    assert (code, records) == (ErrorCode.INVALID_CONFIG, [])


def test_replacement_cannot_drop_the_clusters_min_isr_under_elr(elr_cluster: SmallCluster) -> None:
    assert replacement(elr_cluster, "BROKER", "", log_retention_ms="1") == (ErrorCode.INVALID_CONFIG, [])


# --- min.insync.replicas -------------------------------------------------------------------------------


def test_change_of_min_isr_under_elr_forgets_who_was_eligible(elr_cluster: SmallCluster) -> None:
    _, records = incremental(
        elr_cluster,
        ("TOPIC", "t", [(MIN_ISR, "SET", "2"), ("retention.ms", "SET", "1")]),
        ("BROKER", "", [(MIN_ISR, "SET", "2")]),
    )
    assert records[-2:] == [ClearElrRecord("t"), ClearElrRecord("")]
    assert [type(record) for record in records[:3]] == [ConfigRecord] * 3
    _, records = incremental(elr_cluster, ("TOPIC", "t", [(MIN_ISR, "SET", "2")]))
    assert records == []


def test_eligible_replicas_are_forgotten_with_the_change(elr_cluster: SmallCluster) -> None:
    topic = elr_cluster.topic_id("t")
    change = PartitionChangeRecord(0, topic, isr=(0,), eligible_leader_replicas=(1, 2))
    elr_cluster.commit(Decision([VersionedRecord(change, 2)], None))
    before = elr_cluster.partition("t")
    incremental(elr_cluster, ("TOPIC", "t", [(MIN_ISR, "SET", "3")]))
    after = elr_cluster.partition("t")
    assert (before.elr, after.elr) == ((1, 2), ())
    assert after.partition_epoch == before.partition_epoch + 1


@pytest.mark.parametrize(
    ("name", "change", "says"),
    [
        ("1", (MIN_ISR, "SET", "1"), "Broker-level min.insync.replicas cannot be altered while ELR is enabled."),
        ("1", (MIN_ISR, "DELETE", None), "Broker-level min.insync.replicas cannot be altered while ELR is enabled."),
        ("", (MIN_ISR, "DELETE", None), "Cluster-level min.insync.replicas cannot be removed while ELR is enabled."),
        ("", (MIN_ISR, "SET", None), "Cluster-level min.insync.replicas cannot be removed while ELR is enabled."),
    ],
)
def test_min_isr_under_elr_is_one_for_all_brokers(
    elr_cluster: SmallCluster, name: str, change: Change, says: str
) -> None:
    reply, records = incremental(elr_cluster, ("BROKER", name, [change]))
    assert (reply.responses[0].error_code, reply.responses[0].error_message) == (ErrorCode.INVALID_CONFIG, says)
    assert records == []


@pytest.mark.parametrize("value", ["", "many", "1.5", "9" * 30])
def test_min_isr_that_is_no_number_counts_as_none(cluster: SmallCluster, value: str) -> None:
    """Values of brokers' configs are not checked by controllers. A bad one must not end elections."""
    config = controller_config(3000, CLUSTER_ID, static_configs={MIN_ISR: "3"})
    incremental(cluster, ("BROKER", "3000", [(MIN_ISR, "SET", value)]))
    assert min_insync_replicas(cluster.image, config, "t") == 3
    assert min_insync_replicas(cluster.image, CONFIG, "t") == 1
    incremental(cluster, ("BROKER", "", [(MIN_ISR, "SET", " 2 ")]))
    assert min_insync_replicas(cluster.image, config, "t") == 2
    assert effective_min_isr(cluster.image, config, "t", 1) == 1
    cluster.heartbeat(0, want_fence=True)  # An election over all of it.
    assert cluster.partition("t").leader == 1
