"""The whole state as one JSON value: what ``quorate image show --json`` prints.

Partitions are rows in the order of ``PARTITION_COLUMNS``. Uuids are Kafka's text; enumerations have Kafka's names.
Everything is sorted, so equal states give equal texts.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from quorate.metadata_log.ids import Uuid, uuid_text
from quorate.metadata_log.records.hidden_values import IsSecret, shown_configs
from quorate.metadata_log.records.records import (
    AccessControlEntryRecord,
    BrokerEndpoint,
    ControllerEndpoint,
    DelegationTokenRecord,
    VotersVoter,
)
from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.image.image_parts import (
    BROKER_RESOURCE,
    CLIENT_METRICS_RESOURCE,
    GROUP_RESOURCE,
    TOPIC_RESOURCE,
    KRaftImage,
)
from quorate.snapshots.table.cluster import BrokerRegistration, ControllerRegistration
from quorate.snapshots.table.partition import Partition
from quorate.snapshots.table.record_versions import CORDONED_LEVEL
from quorate.snapshots.views.derived_states import offline_replicas, replica_states
from quorate.snapshots.views.kafka_names import (
    ACL_OPERATIONS,
    ACL_RESOURCE_TYPES,
    INTERNAL_TOPICS,
    PATTERN_TYPES,
    PERMISSIONS,
    SCRAM_MECHANISMS,
    SECURITY_PROTOCOLS,
    ZK_MIGRATION_STATES,
    name_of,
)

PARTITION_COLUMNS: Final = (
    "leader",
    "leader_epoch",
    "replicas",
    "isr",
    "elr",
    "last_known_elr",
    "offline_replicas",
    "partition_epoch",
    "adding_replicas",
    "removing_replicas",
    "leader_recovery_state",
    "directories",
)

_CONFIG_KEYS: Final = {
    TOPIC_RESOURCE: "topic_configs",
    BROKER_RESOURCE: "broker_configs",
    CLIENT_METRICS_RESOURCE: "client_metrics_configs",
    GROUP_RESOURCE: "group_configs",
}


def image_json(image: MetadataImage, is_secret: IsSecret) -> dict[str, Any]:
    """The state as JSON values, topics included; configs that may be secrets as `(hidden)`."""
    return {**summary_json(image, is_secret), "topics": dict(topics_json(image))}


def summary_json(image: MetadataImage, is_secret: IsSecret) -> dict[str, Any]:
    """Everything but the topics."""
    features = dict(sorted(image.features.levels.items()))
    if image.kraft.version:
        features["kraft.version"] = image.kraft.version
    return {
        "provenance": {
            "last_contained_offset": image.provenance.last_contained_offset,
            "epoch": image.provenance.epoch,
            "log_time_ms": image.provenance.log_time_ms,
        },
        "features": dict(sorted(features.items())),
        "zk_migration_state": name_of(ZK_MIGRATION_STATES, image.features.zk_migration_state),
        "voters": _voters(image.kraft),
        "brokers": _brokers(image),
        "controllers": [controller_json(controller) for _, controller in sorted(image.cluster.controllers.items())],
        **_configs(image, is_secret),
        "labels": {
            resource: dict(sorted(labels.items())) for resource, labels in sorted(image.labels.resources.items())
        },
        "client_quotas": _quotas(image),
        "next_producer_id": image.producer_ids.next_producer_id,
        "acls": _acls(image),
        "scram": _scram(image),
        "delegation_tokens": _tokens(image),
        "reassignments": _reassignments(image),
        "partition_columns": list(PARTITION_COLUMNS),
    }


def topics_json(image: MetadataImage) -> Iterator[tuple[str, dict[str, Any]]]:
    """Topics by name, one by one: an image may have a million partitions."""
    for topic in sorted(image.topics.by_name.values(), key=lambda topic: topic.name):
        rows = {
            str(number): _partition_row(image, partition)
            for number, partition in image.partitions.partitions_of(topic.id)
        }
        yield topic.name, {"id": uuid_text(topic.id), "internal": topic.name in INTERNAL_TOPICS, "partitions": rows}


def _partition_row(image: MetadataImage, partition: Partition) -> list[Any]:
    return [
        partition.leader,
        partition.leader_epoch,
        list(partition.replicas),
        list(partition.isr),
        list(partition.elr),
        list(partition.last_known_elr),
        offline_replicas(partition, replica_states(image, partition)),
        partition.partition_epoch,
        list(partition.adding_replicas),
        list(partition.removing_replicas),
        partition.leader_recovery_state,
        _uuids(partition.directories),
    ]


def _uuids(uuids: tuple[Uuid, ...]) -> list[str]:
    return [uuid_text(uuid) for uuid in uuids]


def _voters(kraft: KRaftImage) -> list[dict[str, Any]] | None:
    if kraft.voters is None:
        return None
    return [voter_json(voter) for voter in sorted(kraft.voters.voters, key=lambda voter: voter.voter_id)]


def voter_json(voter: VotersVoter) -> dict[str, Any]:
    """One voter of the quorum."""
    return {
        "id": voter.voter_id,
        "directory_id": uuid_text(voter.voter_directory_id),
        "endpoints": [{"name": e.name, "host": e.host, "port": e.port} for e in voter.endpoints],
    }


def _listeners(listeners: tuple[BrokerEndpoint | ControllerEndpoint, ...]) -> list[dict[str, Any]]:
    return [
        {
            "name": listener.name,
            "host": listener.host,
            "port": listener.port,
            "security_protocol": name_of(SECURITY_PROTOCOLS, listener.security_protocol),
        }
        for listener in sorted(listeners, key=lambda listener: listener.name)
    ]


def _supported(registration: BrokerRegistration | ControllerRegistration) -> dict[str, list[int]]:
    ranges = {
        feature.name: [feature.min_supported_version, feature.max_supported_version]
        for feature in registration.supported_features
    }
    return dict(sorted(ranges.items()))


def _brokers(image: MetadataImage) -> list[dict[str, Any]]:
    knows_cordoned = image.features.metadata_version >= CORDONED_LEVEL
    return [broker_json(broker, knows_cordoned=knows_cordoned) for _, broker in sorted(image.cluster.brokers.items())]


def broker_json(broker: BrokerRegistration, *, knows_cordoned: bool = True) -> dict[str, Any]:
    """One broker's registration; ``knows_cordoned``: whether it can have directories that are cordoned."""
    return {
        "id": broker.id,
        "epoch": broker.epoch,
        "incarnation_id": uuid_text(broker.incarnation_id),
        "listeners": _listeners(broker.listeners),
        "supported_features": _supported(broker),
        "rack": broker.rack,
        "fenced": broker.is_fenced,
        "in_controlled_shutdown": broker.in_controlled_shutdown,
        "is_migrating_zk_broker": broker.is_migrating_zk_broker,
        "log_dirs": _uuids(broker.directories),
        # null: below this level of metadata.version there is no such thing
        "cordoned_log_dirs": _uuids(broker.cordoned_directories) if knows_cordoned else None,
    }


def controller_json(controller: ControllerRegistration) -> dict[str, Any]:
    """One controller's registration."""
    return {
        "id": controller.id,
        "incarnation_id": uuid_text(controller.incarnation_id),
        "zk_migration_ready": controller.zk_migration_ready,
        "listeners": _listeners(controller.listeners),
        "supported_features": _supported(controller),
    }


def _configs(image: MetadataImage, is_secret: IsSecret) -> dict[str, Any]:
    """Configs by kind of resource; kinds without a name of their own are under ``other_configs``."""
    named: dict[str, Any] = {key: {} for key in _CONFIG_KEYS.values()}
    other: dict[str, Any] = {}
    for (resource_type, resource_name), configs in sorted(image.configs.resources.items()):
        key = _CONFIG_KEYS.get(resource_type)
        target = other.setdefault(str(resource_type), {}) if key is None else named[key]
        target[resource_name] = shown_configs(resource_type, configs, is_secret)
    return {**named, "other_configs": other}


def _quotas(image: MetadataImage) -> list[dict[str, Any]]:
    rows = [
        {"entity": {part.entity_type: part.entity_name for part in entity}, "values": dict(sorted(values.items()))}
        for entity, values in image.client_quotas.entities.items()
    ]
    return sorted(rows, key=lambda row: [(kind, n is not None, n or "") for kind, n in row["entity"].items()])


def _acls(image: MetadataImage) -> list[dict[str, Any]]:
    rows = [acl_json(entry) for entry in image.acls.entries.values()]
    return sorted(rows, key=lambda row: [*list(row.values())[1:], row["id"]])


def acl_json(entry: AccessControlEntryRecord) -> dict[str, Any]:
    """One ACL entry."""
    return {
        "id": uuid_text(entry.id),
        "resource_type": name_of(ACL_RESOURCE_TYPES, entry.resource_type),
        "resource_name": entry.resource_name,
        "pattern_type": name_of(PATTERN_TYPES, entry.pattern_type),
        "principal": entry.principal,
        "host": entry.host,
        "operation": name_of(ACL_OPERATIONS, entry.operation),
        "permission": name_of(PERMISSIONS, entry.permission_type),
    }


def _scram(image: MetadataImage) -> dict[str, list[dict[str, Any]]]:
    """Users and mechanisms; what authenticates is left out."""
    users: dict[str, list[dict[str, Any]]] = {}
    for (name, mechanism), credential in sorted(image.scram.credentials.items()):
        row = {"mechanism": name_of(SCRAM_MECHANISMS, mechanism), "iterations": credential.iterations}
        users.setdefault(name, []).append(row)
    return users


def _tokens(image: MetadataImage) -> dict[str, dict[str, Any]]:
    return {token_id: token_json(token) for token_id, token in sorted(image.delegation_tokens.tokens.items())}


def token_json(token: DelegationTokenRecord) -> dict[str, Any]:
    """One delegation token, without its id."""
    return {
        "owner": token.owner,
        "requester": token.requester,
        "renewers": list(token.renewers),
        "issue_timestamp": token.issue_timestamp,
        "expiration_timestamp": token.expiration_timestamp,
        "max_timestamp": token.max_timestamp,
    }


def _reassignments(image: MetadataImage) -> dict[str, dict[str, list[int]]]:
    rows = {}
    for row in image.partitions.rows_reassigning().tolist():
        topic = image.topics.by_id[image.partitions.topic_id(row)]
        partition = image.partitions.partition(row)
        rows[f"{topic.name}-{image.partitions.partition_id(row)}"] = {
            "replicas": list(partition.replicas),
            "adding": list(partition.adding_replicas),
            "removing": list(partition.removing_replicas),
        }
    return dict(sorted(rows.items()))
