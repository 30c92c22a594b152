"""An image as the records of a snapshot, in Kafka's write order and at the record versions of its metadata.version."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from quorate.metadata_log.records.records import (
    BrokerEndpoint,
    BrokerFeature,
    ClientQuotaRecord,
    ConfigRecord,
    ControllerEndpoint,
    ControllerFeature,
    DataRecord,
    EntityData,
    FeatureLevelRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    TopicRecord,
    VersionedRecord,
    ZkMigrationStateRecord,
)
from quorate.snapshots.checkpoints.hash_map_order import in_hash_map_order
from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.image.image_parts import METADATA_VERSION, FeaturesImage, ProducerIdsImage, QuotaEntity
from quorate.snapshots.image.labels import Label, config_of
from quorate.snapshots.table.cluster import BrokerRegistration, ControllerRegistration
from quorate.snapshots.table.record_versions import (
    NEWEST_LEVEL,
    REGISTER_BROKER_NEWEST,
    partition_version,
    register_broker_version,
)

#: RegisterBrokerRecord has a place for cordoned directories from this version on.
_CORDONED_VERSION = 4


def image_records(image: MetadataImage) -> Iterator[VersionedRecord]:
    """Every record of the image, one by one: for showing and for tests. ``checkpoint`` writes mass records as runs."""
    level = image.features.metadata_version or NEWEST_LEVEL
    yield from before_topics(image, level)
    for topic in sorted(image.topics.by_name.values(), key=lambda topic: topic.name):
        yield VersionedRecord(TopicRecord(topic.name, topic.id), 0)
        for number, partition in image.partitions.partitions_of(topic.id):
            yield VersionedRecord(partition.to_record(topic.id, number), partition_version(partition, level))
    yield from after_topics(image)


def before_topics(image: MetadataImage, level: int) -> Iterator[VersionedRecord]:
    """Features and registrations: what a snapshot begins with."""
    for feature in feature_records(image.features):
        yield VersionedRecord(feature, 0)
    for _, broker in sorted(image.cluster.brokers.items()):
        version = register_broker_version(broker, level)
        yield VersionedRecord(broker_record(broker, version), version)
    for _, controller in sorted(image.cluster.controllers.items()):
        yield VersionedRecord(controller_record(controller), 0)


def feature_records(features: FeaturesImage) -> Iterator[DataRecord]:
    """``metadata.version`` first: readers must know it before anything else."""
    for name in sorted(features.levels, key=lambda name: (name != METADATA_VERSION, name)):
        yield feature_record(name, features.levels[name])
    yield from zk_records(features)


def feature_record(name: str, level: int) -> FeatureLevelRecord:
    """A finalised level."""
    return FeatureLevelRecord(name, level)


def zk_records(features: FeaturesImage) -> Iterator[DataRecord]:
    """The state of a migration from ZooKeeper; NONE is said by no record."""
    if features.zk_migration_state:
        yield ZkMigrationStateRecord(features.zk_migration_state)


def after_topics(image: MetadataImage) -> Iterator[VersionedRecord]:
    """Everything that is neither feature, registration nor topic."""
    for record in _resource_records(image):
        yield VersionedRecord(record, 0)


def _resource_records(image: MetadataImage) -> Iterator[DataRecord]:
    for resource, configs in sorted(image.configs.resources.items()):
        yield from config_records(resource, configs)
    for labelled, labels in sorted(image.labels.resources.items()):
        yield from label_records(labelled, labels)
    for entity, values in sorted(image.client_quotas.entities.items(), key=lambda item: _entity_key(item[0])):
        yield from quota_records(entity, values)
    yield from producer_ids_records(image.producer_ids)
    yield from (entry for _, entry in sorted(image.acls.entries.items()))
    yield from (credential for _, credential in sorted(image.scram.credentials.items()))
    yield from (token for _, token in sorted(image.delegation_tokens.tokens.items()))


def config_records(resource: tuple[int, str], configs: Mapping[str, str]) -> Iterator[DataRecord]:
    """The configs of one resource."""
    for name, value in sorted(configs.items()):
        yield ConfigRecord(*resource, name, value)


def label_records(resource: str, labels: Mapping[str, str]) -> Iterator[DataRecord]:
    """The labels of one resource."""
    for key, value in sorted(labels.items()):
        yield ConfigRecord(*config_of(Label(resource, key)), value)


def quota_records(entity: QuotaEntity, values: Mapping[str, float]) -> Iterator[DataRecord]:
    """The quotas of one entity."""
    for key, value in sorted(values.items()):
        yield ClientQuotaRecord(in_hash_map_order(entity, _entity_type), key, value)


def producer_ids_records(producer_ids: ProducerIdsImage) -> Iterator[DataRecord]:
    """The next producer id, without the broker that was given the last ones, as Kafka writes it."""
    if producer_ids.next_producer_id is not None:
        yield ProducerIdsRecord(-1, -1, producer_ids.next_producer_id)


def broker_record(broker: BrokerRegistration, version: int = REGISTER_BROKER_NEWEST) -> RegisterBrokerRecord:
    """A registration as a snapshot's record of this version; an older one has no place for cordoned directories."""
    return RegisterBrokerRecord(
        broker_id=broker.id,
        is_migrating_zk_broker=broker.is_migrating_zk_broker,
        incarnation_id=broker.incarnation_id,
        broker_epoch=broker.epoch,
        end_points=in_hash_map_order(broker.listeners, _listener_name),
        features=in_hash_map_order(broker.supported_features, _feature_name),
        rack=broker.rack,
        fenced=broker.is_fenced,
        in_controlled_shutdown=broker.in_controlled_shutdown,
        log_dirs=broker.directories,
        cordoned_log_dirs=broker.cordoned_directories if version >= _CORDONED_VERSION else None,
    )


def controller_record(controller: ControllerRegistration) -> RegisterControllerRecord:
    """A registration as a snapshot's record."""
    return RegisterControllerRecord(
        controller_id=controller.id,
        incarnation_id=controller.incarnation_id,
        zk_migration_ready=controller.zk_migration_ready,
        end_points=in_hash_map_order(controller.listeners, _listener_name),
        features=in_hash_map_order(controller.supported_features, _feature_name),
    )


def _listener_name(listener: BrokerEndpoint | ControllerEndpoint) -> str:
    return listener.name


def _feature_name(feature: BrokerFeature | ControllerFeature) -> str:
    return feature.name


def _entity_type(part: EntityData) -> str:
    return part.entity_type


def _entity_key(entity: QuotaEntity) -> tuple[tuple[str, bool, str], ...]:
    return tuple((part.entity_type, part.entity_name is not None, part.entity_name or "") for part in entity)
