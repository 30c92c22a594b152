"""Everything in the state but partitions, replayed in order: dictionaries of the records that a snapshot has."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any, Final

from quorate.metadata_log.ids import Uuid, uuid_text
from quorate.metadata_log.records import records as r
from quorate.pipeline.fold.errors import FoldRefused
from quorate.pipeline.fold.timeline import Located

_TOPIC_RESOURCE: Final = 2
_QuotaKey = tuple[tuple[tuple[str, str | None], ...], str]


class Catalogue:
    """A cluster's state without its partitions, at the offset up to which records have been applied."""

    def __init__(self) -> None:
        self.features: dict[str, r.FeatureLevelRecord] = {}
        self.zk_migration_state = 0
        self.kraft_version = 0
        self.voters: r.VotersRecord | None = None
        self.brokers: dict[int, r.RegisterBrokerRecord] = {}
        self.controllers: dict[int, r.RegisterControllerRecord] = {}
        self.topics: dict[Uuid, r.TopicRecord] = {}
        self.topic_ids: dict[str, Uuid] = {}
        #: By resource type, resource name and name.
        self.configs: dict[tuple[int, str], dict[str, r.ConfigRecord]] = {}
        self.quotas: dict[_QuotaKey, r.ClientQuotaRecord] = {}
        self.next_producer_id: int | None = None
        self.acls: dict[Uuid, r.AccessControlEntryRecord] = {}
        self.scram: dict[tuple[str, int], r.UserScramCredentialRecord] = {}
        self.tokens: dict[str, r.DelegationTokenRecord] = {}

    def apply_all(self, records: Iterable[Located]) -> None:
        """Apply records in order, of those that count: no transaction markers.

        Raises:
            FoldRefused: the first one that cannot be.
        """
        for offset, record in records:
            rule = _RULES.get(type(record))
            if rule is not None:
                try:
                    rule(self, record)
                except _Refused as error:
                    raise FoldRefused(f"{type(record).__name__}: {error}", offset) from None

    def entries(self) -> Iterator[r.DataRecord | r.ControlRecord]:
        """One record for each leaf of the digest that is no topic's."""
        yield from self.features.values()
        if self.zk_migration_state:
            yield r.ZkMigrationStateRecord(self.zk_migration_state)
        if self.kraft_version:
            yield r.KRaftVersionRecord(self.kraft_version)
        if self.voters is not None:
            yield self.voters
        yield from self.brokers.values()
        yield from self.controllers.values()
        for configs in self.configs.values():
            yield from configs.values()
        yield from self.quotas.values()
        if self.next_producer_id is not None:
            yield r.ProducerIdsRecord(-1, -1, self.next_producer_id)
        yield from self.acls.values()
        yield from self.scram.values()
        yield from self.tokens.values()


class _Refused(Exception):
    """The reason why a record cannot be; ``apply_all`` knows its offset."""


def _topic(state: Catalogue, record: r.TopicRecord) -> None:
    if record.name in state.topic_ids or record.topic_id in state.topics:
        raise _Refused(f"topic {record.name!r} or id {uuid_text(record.topic_id)} exists already")
    state.topics[record.topic_id] = record
    state.topic_ids[record.name] = record.topic_id


def _remove_topic(state: Catalogue, record: r.RemoveTopicRecord) -> None:
    topic = state.topics.pop(record.topic_id, None)
    if topic is None:
        raise _Refused(f"there is no topic {uuid_text(record.topic_id)}")
    del state.topic_ids[topic.name]
    state.configs.pop((_TOPIC_RESOURCE, topic.name), None)


def _clear_elr(state: Catalogue, record: r.ClearElrRecord) -> None:
    if record.topic_name and record.topic_name not in state.topic_ids:
        raise _Refused(f"there is no topic {record.topic_name!r}")


def _feature(state: Catalogue, record: r.FeatureLevelRecord) -> None:
    if record.feature_level:
        state.features[record.name] = record
    else:
        state.features.pop(record.name, None)


def _zk_migration(state: Catalogue, record: r.ZkMigrationStateRecord) -> None:
    state.zk_migration_state = record.zk_migration_state


def _kraft_version(state: Catalogue, record: r.KRaftVersionRecord) -> None:
    state.kraft_version = record.kraft_version


def _voters(state: Catalogue, record: r.VotersRecord) -> None:
    state.voters = record


def _register_broker(state: Catalogue, record: r.RegisterBrokerRecord) -> None:
    state.brokers[record.broker_id] = record


def _register_controller(state: Catalogue, record: r.RegisterControllerRecord) -> None:
    state.controllers[record.controller_id] = record


def _registered(state: Catalogue, broker_id: int, epoch: int) -> r.RegisterBrokerRecord:
    broker = state.brokers.get(broker_id)
    if broker is None:
        raise _Refused(f"broker {broker_id} is not registered")
    if broker.broker_epoch != epoch:
        raise _Refused(f"broker {broker_id} has epoch {broker.broker_epoch}, not {epoch}")
    return broker


def _unregister_broker(state: Catalogue, record: r.UnregisterBrokerRecord) -> None:
    _registered(state, record.broker_id, record.broker_epoch)
    del state.brokers[record.broker_id]


def _fence(state: Catalogue, record: r.FenceBrokerRecord | r.UnfenceBrokerRecord) -> None:
    broker = _registered(state, record.id, record.epoch)
    state.brokers[record.id] = replace(broker, fenced=isinstance(record, r.FenceBrokerRecord))


def _change_broker(state: Catalogue, record: r.BrokerRegistrationChangeRecord) -> None:
    broker = _registered(state, record.broker_id, record.broker_epoch)
    if record.fenced not in (-1, 0, 1) or record.in_controlled_shutdown not in (0, 1):
        raise _Refused(f"fenced {record.fenced}, in_controlled_shutdown {record.in_controlled_shutdown}: no such value")
    changes: dict[str, Any] = {}
    if record.fenced:
        changes["fenced"] = record.fenced == 1
    if record.in_controlled_shutdown:
        changes["in_controlled_shutdown"] = True
    if record.log_dirs:
        changes["log_dirs"] = record.log_dirs
    if record.cordoned_log_dirs is not None:
        changes["cordoned_log_dirs"] = record.cordoned_log_dirs
    state.brokers[record.broker_id] = replace(broker, **changes)


def _config(state: Catalogue, record: r.ConfigRecord) -> None:
    resource = (record.resource_type, record.resource_name)
    if record.value is not None:
        state.configs.setdefault(resource, {})[record.name] = record
    elif resource in state.configs:
        state.configs[resource].pop(record.name, None)
        if not state.configs[resource]:
            del state.configs[resource]


def _quota(state: Catalogue, record: r.ClientQuotaRecord) -> None:
    entity = sorted(((part.entity_type, part.entity_name) for part in record.entity), key=lambda part: part[0])
    key = (tuple(entity), record.key)
    state.quotas.pop(key, None)
    if not record.remove:
        state.quotas[key] = record


def _producer_ids(state: Catalogue, record: r.ProducerIdsRecord) -> None:
    before = state.next_producer_id
    if before is not None and record.next_producer_id <= before:
        raise _Refused(f"next id {record.next_producer_id} is not above {before}")
    state.next_producer_id = record.next_producer_id


def _acl(state: Catalogue, record: r.AccessControlEntryRecord) -> None:
    state.acls[record.id] = record


def _remove_acl(state: Catalogue, record: r.RemoveAccessControlEntryRecord) -> None:
    if state.acls.pop(record.id, None) is None:
        raise _Refused(f"there is no entry {uuid_text(record.id)}")


def _scram(state: Catalogue, record: r.UserScramCredentialRecord) -> None:
    state.scram[record.name, record.mechanism] = record


def _remove_scram(state: Catalogue, record: r.RemoveUserScramCredentialRecord) -> None:
    if state.scram.pop((record.name, record.mechanism), None) is None:
        raise _Refused(f"user {record.name!r} has no credential of mechanism {record.mechanism}")


def _token(state: Catalogue, record: r.DelegationTokenRecord) -> None:
    state.tokens[record.token_id] = record


def _remove_token(state: Catalogue, record: r.RemoveDelegationTokenRecord) -> None:
    state.tokens.pop(record.token_id, None)  # Kafka does not mind one that is not there


_RULES: Final[dict[type, Callable[[Catalogue, Any], None]]] = {
    r.TopicRecord: _topic,
    r.RemoveTopicRecord: _remove_topic,
    r.ClearElrRecord: _clear_elr,
    r.FeatureLevelRecord: _feature,
    r.ZkMigrationStateRecord: _zk_migration,
    r.KRaftVersionRecord: _kraft_version,
    r.VotersRecord: _voters,
    r.RegisterBrokerRecord: _register_broker,
    r.RegisterControllerRecord: _register_controller,
    r.UnregisterBrokerRecord: _unregister_broker,
    r.FenceBrokerRecord: _fence,
    r.UnfenceBrokerRecord: _fence,
    r.BrokerRegistrationChangeRecord: _change_broker,
    r.ConfigRecord: _config,
    r.ClientQuotaRecord: _quota,
    r.ProducerIdsRecord: _producer_ids,
    r.AccessControlEntryRecord: _acl,
    r.RemoveAccessControlEntryRecord: _remove_acl,
    r.UserScramCredentialRecord: _scram,
    r.RemoveUserScramCredentialRecord: _remove_scram,
    r.DelegationTokenRecord: _token,
    r.RemoveDelegationTokenRecord: _remove_token,
}
