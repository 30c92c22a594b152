"""A deliberately naive model of an image: dictionaries, one record at a time. Tests hold replay against it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from quorate.metadata_log.ids import DIRECTORY_MIGRATING, Uuid
from quorate.metadata_log.records import records as r


class NaiveImage:
    """The state as records: whatever a snapshot would have, by key."""

    def __init__(self) -> None:
        self.features: dict[str, int] = {}
        self.zk_state = 0
        self.brokers: dict[int, r.RegisterBrokerRecord] = {}
        self.controllers: dict[int, r.RegisterControllerRecord] = {}
        self.topics: dict[Uuid, str] = {}
        self.partitions: dict[tuple[Uuid, int], r.PartitionRecord] = {}
        self.configs: dict[tuple[int, str, str], str] = {}
        self.quotas: dict[tuple[Any, str], float] = {}
        self.next_producer_id: int | None = None
        self.others: dict[Any, Any] = {}

    def apply(self, record: Any) -> None:
        """Fold one record."""
        getattr(self, f"_{type(record).__name__}")(record)

    def records(self) -> list[Any]:
        """What a snapshot holds, in any order."""
        return [
            *(r.FeatureLevelRecord(name, level) for name, level in self.features.items()),
            *([r.ZkMigrationStateRecord(self.zk_state)] if self.zk_state else []),
            *self.brokers.values(),
            *self.controllers.values(),
            *(r.TopicRecord(name, uuid) for uuid, name in self.topics.items()),
            *self.partitions.values(),
            *(r.ConfigRecord(*key, value) for key, value in self.configs.items()),
            *(r.ClientQuotaRecord(entity, key, value) for (entity, key), value in self.quotas.items()),
            *([] if self.next_producer_id is None else [r.ProducerIdsRecord(-1, -1, self.next_producer_id)]),
            *self.others.values(),
        ]

    def _NoOpRecord(self, record: Any) -> None:  # noqa: N802
        pass

    def _FeatureLevelRecord(self, record: r.FeatureLevelRecord) -> None:  # noqa: N802
        self.features[record.name] = record.feature_level
        if not record.feature_level:
            del self.features[record.name]

    def _ZkMigrationStateRecord(self, record: r.ZkMigrationStateRecord) -> None:  # noqa: N802
        self.zk_state = record.zk_migration_state

    def _RegisterBrokerRecord(self, record: r.RegisterBrokerRecord) -> None:  # noqa: N802
        self.brokers[record.broker_id] = replace(record, cordoned_log_dirs=record.cordoned_log_dirs or ())

    def _UnregisterBrokerRecord(self, record: r.UnregisterBrokerRecord) -> None:  # noqa: N802
        del self.brokers[record.broker_id]

    def _FenceBrokerRecord(self, record: r.FenceBrokerRecord) -> None:  # noqa: N802
        self.brokers[record.id] = replace(self.brokers[record.id], fenced=True)

    def _UnfenceBrokerRecord(self, record: r.UnfenceBrokerRecord) -> None:  # noqa: N802
        self.brokers[record.id] = replace(self.brokers[record.id], fenced=False)

    def _BrokerRegistrationChangeRecord(self, record: r.BrokerRegistrationChangeRecord) -> None:  # noqa: N802
        broker = self.brokers[record.broker_id]
        if record.fenced:
            broker = replace(broker, fenced=record.fenced == 1)
        if record.in_controlled_shutdown:
            broker = replace(broker, in_controlled_shutdown=True)
        if record.log_dirs:
            broker = replace(broker, log_dirs=record.log_dirs)
        if record.cordoned_log_dirs is not None:
            broker = replace(broker, cordoned_log_dirs=record.cordoned_log_dirs)
        self.brokers[record.broker_id] = broker

    def _RegisterControllerRecord(self, record: r.RegisterControllerRecord) -> None:  # noqa: N802
        self.controllers[record.controller_id] = record

    def _TopicRecord(self, record: r.TopicRecord) -> None:  # noqa: N802
        self.topics[record.topic_id] = record.name

    def _RemoveTopicRecord(self, record: r.RemoveTopicRecord) -> None:  # noqa: N802
        name = self.topics.pop(record.topic_id)
        for key in [key for key in self.partitions if key[0] == record.topic_id]:
            del self.partitions[key]
        for config in [config for config in self.configs if config[:2] == (2, name)]:
            del self.configs[config]

    def _PartitionRecord(self, record: r.PartitionRecord) -> None:  # noqa: N802
        self.partitions[record.topic_id, record.partition_id] = replace(
            record, directories=record.directories or (DIRECTORY_MIGRATING,) * len(record.replicas)
        )

    def _PartitionChangeRecord(self, record: r.PartitionChangeRecord) -> None:  # noqa: N802
        before = self.partitions[record.topic_id, record.partition_id]
        after = replace(before, partition_epoch=before.partition_epoch + 1)
        if record.leader != r.NO_LEADER_CHANGE:
            after = replace(after, leader=record.leader, leader_epoch=before.leader_epoch + 1)
        if record.leader_recovery_state != r.NO_RECOVERY_CHANGE:
            after = replace(after, leader_recovery_state=record.leader_recovery_state)
        if record.replicas is not None:
            known = dict(zip(before.replicas, before.directories, strict=True))
            kept = tuple(known.get(broker, DIRECTORY_MIGRATING) for broker in record.replicas)
            after = replace(after, replicas=record.replicas, directories=kept)
        if record.directories:
            after = replace(after, directories=record.directories)
        fields = ("isr", "adding_replicas", "removing_replicas", "eligible_leader_replicas", "last_known_elr")
        given = {name: getattr(record, name) for name in fields if getattr(record, name) is not None}
        self.partitions[record.topic_id, record.partition_id] = replace(after, **given)

    def _ClearElrRecord(self, record: r.ClearElrRecord) -> None:  # noqa: N802
        for key, partition in self.partitions.items():
            is_meant = record.topic_name in ("", self.topics[key[0]])
            if is_meant and (partition.eligible_leader_replicas or partition.last_known_elr):
                epoch = partition.partition_epoch + 1
                self.partitions[key] = replace(
                    partition, eligible_leader_replicas=None, last_known_elr=None, partition_epoch=epoch
                )

    def _ConfigRecord(self, record: r.ConfigRecord) -> None:  # noqa: N802
        key = (record.resource_type, record.resource_name, record.name)
        self.configs.pop(key, None)
        if record.value is not None:
            self.configs[key] = record.value

    def _ClientQuotaRecord(self, record: r.ClientQuotaRecord) -> None:  # noqa: N802
        key = (tuple(sorted(record.entity, key=lambda part: part.entity_type)), record.key)
        self.quotas.pop(key, None)
        if not record.remove:
            self.quotas[key] = record.value

    def _ProducerIdsRecord(self, record: r.ProducerIdsRecord) -> None:  # noqa: N802
        self.next_producer_id = record.next_producer_id

    def _AccessControlEntryRecord(self, record: r.AccessControlEntryRecord) -> None:  # noqa: N802
        self.others[record.id] = record

    def _RemoveAccessControlEntryRecord(self, record: r.RemoveAccessControlEntryRecord) -> None:  # noqa: N802
        del self.others[record.id]

    def _UserScramCredentialRecord(self, record: r.UserScramCredentialRecord) -> None:  # noqa: N802
        self.others[record.name, record.mechanism] = record

    def _RemoveUserScramCredentialRecord(self, record: r.RemoveUserScramCredentialRecord) -> None:  # noqa: N802
        del self.others[record.name, record.mechanism]

    def _DelegationTokenRecord(self, record: r.DelegationTokenRecord) -> None:  # noqa: N802
        self.others[record.token_id] = record

    def _RemoveDelegationTokenRecord(self, record: r.RemoveDelegationTokenRecord) -> None:  # noqa: N802
        self.others.pop(record.token_id, None)
