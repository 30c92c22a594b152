"""Requests as brokers and operators might send them, made from what a node believes: mostly sensible, some not."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from random import Random
from typing import Any, TypeVar

from quorate.controller.operations.bootstrap import FRESH_FEATURES
from quorate.controller.protocol import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionRequest,
    AssignReplicasToDirsRequest,
    BrokerHeartbeatRequest,
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    ElectLeadersRequest,
    UnregisterBrokerRequest,
)
from quorate.controller.protocol.configs import AlterConfigsRequest, IncrementalAlterConfigsRequest
from quorate.controller.protocol.features import UpdateFeaturesRequest
from quorate.metadata_log.ids import Uuid
from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.image.image_parts import ELR_VERSION, METADATA_VERSION
from quorate.snapshots.table.partition import Partition
from tests.property.controller_machine.access_requests import access_request
from tests.property.controller_machine.stage import Node
from tests.unit.controller.small_cluster import registration, uuid

T = TypeVar("T")
Request = Callable[[Node], Coroutine[Any, Any, Any]]

BROKERS = range(4)
TOPICS = [f"topic-{number}" for number in range(6)]
FAR_AHEAD = 10**9
#: Every feature at every level up to a fresh cluster's.
FEATURES = [
    {"name": name, "min_supported_version": 7 if name == METADATA_VERSION else 0, "max_supported_version": level}
    for name, level in (*FRESH_FEATURES, ("kraft.version", 1))
]
TIMEOUTS_MS = (300.0, 2_000.0, 5_000.0)


def random_request(chance: Random, image: MetadataImage) -> Request:
    """Any request."""
    make = chance.choices(*_WEIGHTED)[0]
    return make(chance, image)


def heartbeat(chance: Random, image: MetadataImage, broker: int, **changes: object) -> Request:
    """A broker speaks, under the epoch that it should have or, rarely, another; a broker that is unknown registers."""
    known = image.cluster.brokers.get(broker)
    if known is None:
        return register(chance, image, broker)
    values = {
        "broker_id": broker,
        "broker_epoch": known.epoch - (chance.random() < 0.03),
        "current_metadata_offset": FAR_AHEAD if chance.random() < 0.9 else chance.randrange(100),
    }
    request = BrokerHeartbeatRequest.model_validate(values | changes)
    timeout_ms = chance.choice(TIMEOUTS_MS)
    return lambda node: node.operations.broker_heartbeat(request, timeout_ms)


def register(chance: Random, image: MetadataImage, broker: int) -> Request:
    known = image.cluster.brokers.get(broker)
    is_same = known is not None and chance.random() < 0.3
    request = registration(
        broker,
        incarnation_id=known.incarnation_id if known and is_same else chance.randbytes(16),
        log_dirs=[uuid(2, broker), uuid(2, broker, 1)][: chance.randint(1, 2)],
        previous_broker_epoch=known.epoch if known and chance.random() < 0.5 else -1,
        rack=chance.choice([None, "a", "b"]),
        features=FEATURES,
    )
    timeout_ms = chance.choice(TIMEOUTS_MS)
    return lambda node: node.operations.register_broker(request, timeout_ms)


def _any_heartbeat(chance: Random, image: MetadataImage) -> Request:
    changes: dict[str, object] = {}
    kind = chance.random()
    if kind < 0.2:
        changes["want_fence"] = True
    elif kind < 0.4:
        changes["want_shut_down"] = True
    elif kind < 0.5:
        changes["offline_log_dirs"] = [uuid(2, chance.choice(BROKERS), chance.randrange(2))]
    elif kind < 0.6:
        changes["cordoned_log_dirs"] = [uuid(2, broker) for broker in BROKERS if chance.random() < 0.3]
    return heartbeat(chance, image, chance.choice(BROKERS), **changes)


def _register(chance: Random, image: MetadataImage) -> Request:
    return register(chance, image, chance.choice(BROKERS))


def _unregister(chance: Random, _: MetadataImage) -> Request:
    request = UnregisterBrokerRequest(broker_id=chance.choice(BROKERS))
    return lambda node: node.operations.unregister_broker(request, 2_000.0)


def _create_topics(chance: Random, _: MetadataImage) -> Request:
    topics = []
    for name in chance.sample(TOPICS, chance.randint(1, 3)):
        topic: dict[str, object] = {"name": name}
        if chance.random() < 0.6:
            count, replicas = chance.randint(1, 6), chance.randint(1, 3)
            topic["assignments"] = [
                {"partition_index": number, "broker_ids": chance.sample(BROKERS, replicas)} for number in range(count)
            ]
        else:
            topic |= {"num_partitions": chance.choice([-1, 1, 2, 9]), "replication_factor": chance.choice([-1, 1, 2])}
        if chance.random() < 0.3:
            topic["configs"] = [{"name": "min.insync.replicas", "value": chance.choice("12")}]
        elif chance.random() < 0.2:
            topic["configs"] = [{"name": "unclean.leader.election.enable", "value": "true"}]
        topics.append(topic)
    values = {"topics": topics, "validate_only": chance.random() < 0.1}
    request = CreateTopicsRequest.model_validate(values)
    timeout_ms = chance.choice(TIMEOUTS_MS)
    return lambda node: node.operations.create_topics(request, timeout_ms)


def create_large(chance: Random, name: str) -> Request:
    """A topic of which each broker has more partitions than a slice."""
    replicas = chance.randint(2, 4)
    assignments = [{"partition_index": n, "broker_ids": chance.sample(BROKERS, replicas)} for n in range(9)]
    request = CreateTopicsRequest.model_validate({"topics": [{"name": name, "assignments": assignments}]})
    return lambda node: node.operations.create_topics(request, 60_000.0)


def _create_partitions(chance: Random, _: MetadataImage) -> Request:
    values = {"topics": [{"name": chance.choice(TOPICS), "count": chance.randint(1, 8)}]}
    request = CreatePartitionsRequest.model_validate(values)
    return lambda node: node.operations.create_partitions(request, 2_000.0)


def _delete_topics(chance: Random, image: MetadataImage) -> Request:
    known = [topic.id for topic in image.topics.by_id.values()]
    request = DeleteTopicsRequest(topic_ids=chance.sample([*known, uuid(3, 10_000)], 1))
    return lambda node: node.operations.delete_topics(request, 2_000.0)


def _alter_partition(chance: Random, image: MetadataImage) -> Request:
    """Some leader proposes other ISRs for some of what it leads."""
    broker = image.cluster.brokers.get(chance.choice(BROKERS))
    if broker is None:
        return _create_topics(chance, image)
    led = [(at, p) for at, p in _partitions(image) if p.leader == broker.id or chance.random() < 0.05]
    topics = [
        {
            "topic_id": topic_id,
            "partitions": [
                {
                    "partition_index": number,
                    "leader_epoch": partition.leader_epoch - (chance.random() < 0.05),
                    "partition_epoch": partition.partition_epoch - (chance.random() < 0.05),
                    "leader_recovery_state": partition.leader_recovery_state if chance.random() < 0.5 else 0,
                    "new_isr_with_epochs": [
                        {"broker_id": replica, "broker_epoch": _epoch(image, replica)}
                        for replica in partition.replicas
                        if replica == broker.id or chance.random() < 0.7
                    ],
                }
            ],
        }
        for (topic_id, number), partition in chance.sample(led, min(len(led), 3))
    ]
    values = {"broker_id": broker.id, "broker_epoch": broker.epoch - (chance.random() < 0.05), "topics": topics}
    request = AlterPartitionRequest.model_validate(values)
    return lambda node: node.operations.alter_partition(request, 2_000.0)


def _reassign(chance: Random, image: MetadataImage) -> Request:
    topics = []
    partitions = _partitions(image)
    for (topic_id, number), _ in chance.sample(partitions, min(len(partitions), 3)):
        replicas = None if chance.random() < 0.3 else _some_brokers(chance)
        partition = {"partition_index": number, "replicas": replicas}
        topics.append({"name": image.topics.by_id[topic_id].name, "partitions": [partition]})
    values = {"topics": topics, "allow_replication_factor_change": chance.random() < 0.8}
    request = AlterPartitionReassignmentsRequest.model_validate(values)
    return lambda node: node.operations.alter_partition_reassignments(request, 2_000.0)


def _elect_leaders(chance: Random, image: MetadataImage) -> Request:
    values: dict[str, object] = {"election_type": chance.choice(["PREFERRED", "UNCLEAN"])}
    partitions = _partitions(image)
    if partitions and chance.random() < 0.5:
        (topic_id, number), _ = chance.choice(partitions)
        name = image.topics.by_id[topic_id].name
        values["topic_partitions"] = [{"topic": name, "partitions": [number]}]
    request = ElectLeadersRequest.model_validate(values)
    return lambda node: node.operations.elect_leaders(request, 2_000.0)


def _alter_configs(chance: Random, _: MetadataImage) -> Request:
    names = ("min.insync.replicas", chance.choice("12")), ("unclean.leader.election.enable", "true")
    name, value = chance.choice(names)
    kind, resource = chance.choice([("TOPIC", chance.choice(TOPICS)), ("BROKER", "")])
    resources: dict[str, object] = {"resource_type": kind, "resource_name": resource}
    if chance.random() < 0.3:
        values = {"resources": [resources | {"configs": [{"name": name, "value": value}]}]}
        replacing = AlterConfigsRequest.model_validate(values)
        return lambda node: node.operations.alter_configs(replacing, 2_000.0)
    change = {"name": name, "config_operation": chance.choice(["SET", "DELETE"]), "value": value}
    request = IncrementalAlterConfigsRequest.model_validate({"resources": [resources | {"configs": [change]}]})
    return lambda node: node.operations.incremental_alter_configs(request, 2_000.0)


def _update_features(chance: Random, _: MetadataImage) -> Request:
    levels = (ELR_VERSION, chance.randint(0, 1)), (METADATA_VERSION, chance.randint(22, 30))
    feature, level = chance.choice(levels)
    update = {
        "feature": feature,
        "max_version_level": level,
        "upgrade_type": chance.choice(["UPGRADE", "UPGRADE", "SAFE_DOWNGRADE", "UNSAFE_DOWNGRADE"]),
    }
    values = {"feature_updates": [update], "validate_only": chance.random() < 0.2}
    request = UpdateFeaturesRequest.model_validate(values)
    return lambda node: node.operations.update_features(request, 2_000.0)


def _assign_directories(chance: Random, image: MetadataImage) -> Request:
    broker = image.cluster.brokers.get(chance.choice(BROKERS))
    if broker is None:
        return _create_topics(chance, image)
    partitions = _partitions(image)
    directories = [
        {
            "id": uuid(2, broker.id, chance.randrange(2)),
            "topics": [{"topic_id": topic_id, "partitions": [{"partition_index": number}]}],
        }
        for (topic_id, number), _ in chance.sample(partitions, min(len(partitions), 2))
    ]
    values = {"broker_id": broker.id, "broker_epoch": broker.epoch, "directories": directories}
    request = AssignReplicasToDirsRequest.model_validate(values)
    return lambda node: node.operations.assign_replicas_to_dirs(request, 2_000.0)


def _partitions(image: MetadataImage) -> list[tuple[tuple[Uuid, int], Partition]]:
    return [
        ((topic_id, number), partition)
        for topic_id in sorted(image.topics.by_id)
        for number, partition in image.partitions.partitions_of(topic_id)
    ]


def _some_brokers(chance: Random) -> list[int]:
    return chance.sample(BROKERS, chance.randint(1, 3))


def _epoch(image: MetadataImage, broker: int) -> int:
    known = image.cluster.brokers.get(broker)
    return -1 if known is None else known.epoch


_WEIGHTED: tuple[list[Callable[[Random, MetadataImage], Request]], list[int]] = (
    [
        _any_heartbeat,
        _register,
        _unregister,
        _create_topics,
        _create_partitions,
        _delete_topics,
        _alter_partition,
        _reassign,
        _elect_leaders,
        _alter_configs,
        _update_features,
        _assign_directories,
        access_request,
    ],
    [20, 8, 3, 12, 4, 4, 20, 10, 5, 4, 3, 5, 8],
)
