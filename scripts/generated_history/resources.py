"""Everything that hangs on names: configs, quotas, credentials, ACLs, tokens, producer ids, features, controllers."""

from __future__ import annotations

from collections.abc import Callable

from quorate.metadata_log.records.records import (
    AccessControlEntryRecord,
    ClientQuotaRecord,
    ConfigRecord,
    ControllerEndpoint,
    ControllerFeature,
    DelegationTokenRecord,
    EntityData,
    FeatureLevelRecord,
    ProducerIdsRecord,
    RegisterControllerRecord,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveUserScramCredentialRecord,
    UserScramCredentialRecord,
)
from quorate.scripts.generated_history.operations import BROKER_RESOURCE, MIN_ISR, TOPIC_RESOURCE, GeneratedCluster

_TOPIC_CONFIGS = ("retention.ms", "segment.bytes", "cleanup.policy", "max.message.bytes", "compression.type")
_BROKER_CONFIGS = ("log.cleaner.threads", "num.io.threads", "leader.replication.throttled.rate")
_USERS = 40
_PRODUCER_IDS = 1000
_FEATURES = ("group.version", "transaction.version", "share.version")
#: Levels of metadata.version that the cluster goes through: Kafka 3.9, 4.0 and 4.3.
_LEVELS = (21, 25, 30)


class Resources:
    """Requests about them, one or a few records each."""

    def __init__(self, operations: GeneratedCluster) -> None:
        self._do = operations
        self._random = operations.random
        self._acls: list[bytes] = []
        self._tokens: list[str] = []
        self._scram: list[tuple[str, int]] = []
        self._next_producer_id = 0
        self._upgrades = list(_LEVELS[1:])

    def any(self) -> None:
        """One of them, configs more often than the others."""
        choices: tuple[Callable[[], None], ...] = (
            self._topic_configs,
            self._topic_configs,
            self._broker_config,
            self._quota,
            self._credential,
            self._acl,
            self._token,
            self._producer_ids,
        )
        choices[int(self._random.integers(len(choices)))]()

    def _chance(self, probability: float) -> bool:
        return bool(self._random.random() < probability)

    def _number(self, low: int, high: int) -> int:
        return int(self._random.integers(low, high))

    # --- configs -------------------------------------------------------------------------------------

    def _topic_configs(self) -> None:
        topics = self._do.topics
        if not topics.present:
            return
        number = topics.any()
        if self._chance(0.1):
            self._do.set_min_isr(number, self._number(1, 3))
            return
        records = []
        for _ in range(self._number(1, 4)):
            key = _TOPIC_CONFIGS[self._number(0, len(_TOPIC_CONFIGS))]
            value = None if self._chance(0.3) else str(self._number(1, 10**9))
            records.append((ConfigRecord(TOPIC_RESOURCE, topics.names[number], key, value), 0))
        self._do.log.write_records(*records)

    def _broker_config(self) -> None:
        broker = "" if self._chance(0.2) else str(self._do.brokers.ids[self._number(0, len(self._do.brokers.ids))])
        key = _BROKER_CONFIGS[self._number(0, len(_BROKER_CONFIGS))]
        value = None if self._chance(0.3) else str(self._number(1, 64))
        self._do.log.write_records((ConfigRecord(BROKER_RESOURCE, broker, key, value), 0))

    def clear_all_elrs(self) -> None:
        """The cluster's default of ``min.insync.replicas`` is set again."""
        value = str(self._number(1, 3))
        self._do.clear_all_elrs((ConfigRecord(BROKER_RESOURCE, "", MIN_ISR, value), 0))

    # --- identities ----------------------------------------------------------------------------------

    def _user(self) -> str:
        return f"user-{self._number(0, _USERS):02d}"

    def _quota(self) -> None:
        entity = [EntityData("user", self._user() if self._chance(0.9) else None)]
        if self._chance(0.4):
            entity.append(EntityData("client-id", f"app-{self._number(0, 8)}"))
        key = ("producer_byte_rate", "consumer_byte_rate", "request_percentage")[self._number(0, 3)]
        is_removed = self._chance(0.25)
        value = 0.0 if is_removed else float(self._number(1, 1000) * 1024)
        self._do.log.write_records((ClientQuotaRecord(tuple(entity), key, value, is_removed), 0))

    def _credential(self) -> None:
        if self._scram and not self._do.is_dry and self._chance(0.3):
            name, mechanism = self._scram[self._number(0, len(self._scram))]
            self._scram.remove((name, mechanism))
            self._do.log.write_records((RemoveUserScramCredentialRecord(name, mechanism), 0))
            return
        key = (self._user(), self._number(1, 3))
        size = 32 if key[1] == 1 else 64
        record = UserScramCredentialRecord(
            *key, self._random.bytes(20), self._random.bytes(size), self._random.bytes(size), 8192
        )
        if key not in self._scram and not self._do.is_dry:
            self._scram.append(key)
        self._do.log.write_records((record, 0))

    def _acl(self) -> None:
        if self._acls and not self._do.is_dry and self._chance(0.35):
            acl = self._acls[self._number(0, len(self._acls))]
            self._acls.remove(acl)
            self._do.log.write_records((RemoveAccessControlEntryRecord(acl), 0))
            return
        acl = self._random.bytes(16)
        record = AccessControlEntryRecord(
            acl, 2, f"orders-{self._number(0, 30)}", 3, f"User:{self._user()}", "*", self._number(3, 6), 3
        )
        if not self._do.is_dry:
            self._acls.append(acl)
        self._do.log.write_records((record, 0))

    def _token(self) -> None:
        if self._tokens and not self._do.is_dry and self._chance(0.45):
            token = self._tokens[self._number(0, len(self._tokens))]
            self._tokens.remove(token)
            self._do.log.write_records((RemoveDelegationTokenRecord(token), 0))
            return
        token, now = self._random.bytes(12).hex(), self._do.log.clock_ms
        user = f"User:{self._user()}"
        record = DelegationTokenRecord(
            user, user, ("User:renewer",), now, now + 7 * 86_400_000, now + 86_400_000, token
        )
        if not self._do.is_dry:
            self._tokens.append(token)
        self._do.log.write_records((record, 0))

    def _producer_ids(self) -> None:
        if self._do.is_dry:
            return
        self._next_producer_id += _PRODUCER_IDS
        broker = self._do.brokers.ids[self._number(0, len(self._do.brokers.ids))]
        self._do.log.write_records((ProducerIdsRecord(broker, 0, self._next_producer_id), 0))

    # --- the cluster ---------------------------------------------------------------------------------

    def found(self) -> None:
        """The first records of the log: features in a transaction, then the controllers."""
        log = self._do.log
        log.begin("Bootstrap records")
        log.write_records(
            (FeatureLevelRecord("metadata.version", self._do.level), 0),
            *((FeatureLevelRecord(feature, 1), 0) for feature in _FEATURES[:2]),
        )
        log.commit()
        for controller in (1, 2, 3):
            record = RegisterControllerRecord(
                controller_id=controller,
                incarnation_id=self._random.bytes(16),
                end_points=(ControllerEndpoint("CONTROLLER", f"controller-{controller}.example.com", 9093, 0),),
                features=(ControllerFeature("metadata.version", 7, _LEVELS[-1]),),
            )
            log.write_records((record, 0))
            log.wait(250)

    def upgrade(self) -> None:
        """The next level of metadata.version; the first one brings the ELR."""
        if not self._upgrades:
            return
        level = self._upgrades.pop(0)
        self._do.log.write_records((FeatureLevelRecord("metadata.version", level), 0))
        self._do.level = level
        if not self._do.is_elr_enabled:
            self._do.log.wait(60_000)
            self._do.log.write_records(
                (ConfigRecord(BROKER_RESOURCE, "", MIN_ISR, "1"), 0),
                (FeatureLevelRecord("eligible.leader.replicas.version", 1), 0),
            )
            self._do.is_elr_enabled = True

    def switch_feature(self) -> None:
        """A feature goes on or off."""
        feature = _FEATURES[self._number(0, len(_FEATURES))]
        self._do.log.write_records((FeatureLevelRecord(feature, self._number(0, 2)), 0))
