"""The record types of Apache Kafka 4.3.1, named as Kafka names them.

Uuids are 16 bytes, arrays are tuples, null is None. A default is the schema's: a field that a version does not
carry has it after reading. Which version carries what is said by ``schemas.json``, which the codec reads;
a test holds these classes and that table together.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, NamedTuple

from quorate.metadata_log.ids import ZERO_UUID, Uuid

#: ``PartitionChangeRecord.leader``: the leader is unchanged (Kafka's ``LeaderConstants.NO_LEADER_CHANGE``).
NO_LEADER_CHANGE: Final = -2
#: ``PartitionChangeRecord.leader_recovery_state``: unchanged (Kafka's ``LeaderRecoveryState.NO_CHANGE``).
NO_RECOVERY_CHANGE: Final = -1


@dataclass(frozen=True, slots=True)
class BrokerEndpoint:
    """One listener of a broker."""

    name: str = ""
    host: str = ""
    port: int = 0
    security_protocol: int = 0


@dataclass(frozen=True, slots=True)
class BrokerFeature:
    """Range of levels of one feature that a broker supports."""

    name: str = ""
    min_supported_version: int = 0
    max_supported_version: int = 0


@dataclass(frozen=True, slots=True)
class RegisterBrokerRecord:
    """A broker's registration: replaces whatever was known of that broker id."""

    broker_id: int = 0
    is_migrating_zk_broker: bool = False
    incarnation_id: Uuid = ZERO_UUID
    #: Offset at which the registration's operation began.
    broker_epoch: int = 0
    end_points: tuple[BrokerEndpoint, ...] = ()
    features: tuple[BrokerFeature, ...] = ()
    rack: str | None = None
    fenced: bool = True
    in_controlled_shutdown: bool = False
    log_dirs: tuple[Uuid, ...] = ()
    cordoned_log_dirs: tuple[Uuid, ...] | None = None


@dataclass(frozen=True, slots=True)
class UnregisterBrokerRecord:
    """The registration is removed (the broker's configs are not)."""

    broker_id: int = 0
    broker_epoch: int = 0


@dataclass(frozen=True, slots=True)
class TopicRecord:
    """A topic exists from here on, under this id."""

    name: str = ""
    topic_id: Uuid = ZERO_UUID


@dataclass(frozen=True, slots=True)
class PartitionRecord:
    """One partition, whole: at its creation and in checkpoints."""

    partition_id: int = -1
    topic_id: Uuid = ZERO_UUID
    #: Ordered: the first is the preferred leader.
    replicas: tuple[int, ...] = ()
    isr: tuple[int, ...] = ()
    removing_replicas: tuple[int, ...] = ()
    adding_replicas: tuple[int, ...] = ()
    #: -1 = none.
    leader: int = -1
    #: 0 = recovered, 1 = recovering.
    leader_recovery_state: int = 0
    leader_epoch: int = -1
    partition_epoch: int = -1
    #: One id per replica, in replica order.
    directories: tuple[Uuid, ...] = ()
    eligible_leader_replicas: tuple[int, ...] | None = None
    last_known_elr: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class ConfigRecord:
    """One config of one resource; a null value removes it."""

    resource_type: int = 0
    resource_name: str = ""
    name: str = ""
    value: str | None = None


@dataclass(frozen=True, slots=True)
class PartitionChangeRecord:
    """The changes in one partition. Every such record adds 1 to its partition epoch."""

    partition_id: int = -1
    topic_id: Uuid = ZERO_UUID
    #: None = unchanged; () = now empty. Order is significant.
    isr: tuple[int, ...] | None = None
    #: -2 = unchanged, -1 = none. Any other value, also the same leader again, starts a new leader epoch.
    leader: int = -2
    replicas: tuple[int, ...] | None = None
    removing_replicas: tuple[int, ...] | None = None
    adding_replicas: tuple[int, ...] | None = None
    #: -1 = unchanged, 0 = recovered, 1 = recovering.
    leader_recovery_state: int = -1
    #: One id per replica, in replica order.
    directories: tuple[Uuid, ...] | None = None
    eligible_leader_replicas: tuple[int, ...] | None = None
    last_known_elr: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class FenceBrokerRecord:
    """Fences a broker (older form of BrokerRegistrationChangeRecord; still replayed)."""

    id: int = 0
    epoch: int = 0


@dataclass(frozen=True, slots=True)
class UnfenceBrokerRecord:
    """Unfences a broker (older form of BrokerRegistrationChangeRecord; still replayed)."""

    id: int = 0
    epoch: int = 0


@dataclass(frozen=True, slots=True)
class RemoveTopicRecord:
    """The topic, its partitions and its configs are gone."""

    topic_id: Uuid = ZERO_UUID


@dataclass(frozen=True, slots=True)
class DelegationTokenRecord:
    """A delegation token, without its HMAC."""

    owner: str = ""
    requester: str = ""
    renewers: tuple[str, ...] = ()
    issue_timestamp: int = 0
    max_timestamp: int = 0
    expiration_timestamp: int = 0
    token_id: str = ""


@dataclass(frozen=True, slots=True)
class UserScramCredentialRecord:
    """A SCRAM credential of one user and mechanism (1 SHA-256, 2 SHA-512). What is secret is not shown with it."""

    name: str = ""
    mechanism: int = 0
    salt: bytes = field(default=b"", repr=False)
    stored_key: bytes = field(default=b"", repr=False)
    server_key: bytes = field(default=b"", repr=False)
    iterations: int = 0


@dataclass(frozen=True, slots=True)
class FeatureLevelRecord:
    """A finalised feature level; 0 removes the feature."""

    name: str = ""
    feature_level: int = 0


@dataclass(frozen=True, slots=True)
class EntityData:
    """One part of a quota entity; a null name is the default entity."""

    entity_type: str = ""
    entity_name: str | None = None


@dataclass(frozen=True, slots=True)
class ClientQuotaRecord:
    """One quota value of one entity."""

    entity: tuple[EntityData, ...] = ()
    key: str = ""
    #: Meaningless when remove is set.
    value: float = 0.0
    remove: bool = False


@dataclass(frozen=True, slots=True)
class ProducerIdsRecord:
    """The first producer id not handed out yet."""

    broker_id: int = 0
    broker_epoch: int = -1
    next_producer_id: int = 0


@dataclass(frozen=True, slots=True)
class BrokerRegistrationChangeRecord:
    """The changes in a registration that stays."""

    broker_id: int = 0
    broker_epoch: int = 0
    #: -1 = unfence, 0 = unchanged, 1 = fence.
    fenced: int = 0
    #: 0 = unchanged, 1 = in controlled shutdown.
    in_controlled_shutdown: int = 0
    #: () = unchanged.
    log_dirs: tuple[Uuid, ...] = ()
    #: None = unchanged.
    cordoned_log_dirs: tuple[Uuid, ...] | None = None


@dataclass(frozen=True, slots=True)
class AccessControlEntryRecord:
    """One ACL entry."""

    id: Uuid = ZERO_UUID
    resource_type: int = 0
    resource_name: str = ""
    pattern_type: int = 0
    principal: str = ""
    host: str = ""
    operation: int = 0
    permission_type: int = 0


@dataclass(frozen=True, slots=True)
class RemoveAccessControlEntryRecord:
    """The ACL entry of this id is gone."""

    id: Uuid = ZERO_UUID


@dataclass(frozen=True, slots=True)
class NoOpRecord:
    """Nothing: keeps the log moving when the cluster is idle."""


@dataclass(frozen=True, slots=True)
class ZkMigrationStateRecord:
    """State of a migration from ZooKeeper; kept, never acted on."""

    zk_migration_state: int = 0


@dataclass(frozen=True, slots=True)
class RemoveUserScramCredentialRecord:
    """The credential of this user and mechanism is gone."""

    name: str = ""
    mechanism: int = 0


@dataclass(frozen=True, slots=True)
class BeginTransactionRecord:
    """The begin of a transaction: the records that follow have no effect until it ends."""

    name: str | None = None


@dataclass(frozen=True, slots=True)
class EndTransactionRecord:
    """Everything since BeginTransaction takes effect."""


@dataclass(frozen=True, slots=True)
class AbortTransactionRecord:
    """Everything since BeginTransaction never was."""

    reason: str | None = None


@dataclass(frozen=True, slots=True)
class RemoveDelegationTokenRecord:
    """The token of this id is gone."""

    token_id: str = ""


@dataclass(frozen=True, slots=True)
class ControllerEndpoint:
    """One listener of a controller."""

    name: str = ""
    host: str = ""
    port: int = 0
    security_protocol: int = 0


@dataclass(frozen=True, slots=True)
class ControllerFeature:
    """Range of levels of one feature that a controller supports."""

    name: str = ""
    min_supported_version: int = 0
    max_supported_version: int = 0


@dataclass(frozen=True, slots=True)
class RegisterControllerRecord:
    """A controller's registration: endpoints and feature ranges."""

    controller_id: int = 0
    incarnation_id: Uuid = ZERO_UUID
    zk_migration_ready: bool = False
    end_points: tuple[ControllerEndpoint, ...] = ()
    features: tuple[ControllerFeature, ...] = ()


@dataclass(frozen=True, slots=True)
class ClearElrRecord:
    """Empties ELR and last-known ELR of one topic, or of all for the empty name."""

    #: "" = every topic.
    topic_name: str = ""


@dataclass(frozen=True, slots=True)
class KRaftVersionRecord:
    """Control record: the finalised kraft.version."""

    kraft_version: int = 0


@dataclass(frozen=True, slots=True)
class Voter:
    """A voter, as a new leader names it."""

    voter_id: int = 0
    voter_directory_id: Uuid = ZERO_UUID


@dataclass(frozen=True, slots=True)
class LeaderChangeMessage:
    """Control record: first record of an epoch, says who leads it and who voted for it."""

    leader_id: int = 0
    voters: tuple[Voter, ...] = ()
    granting_voters: tuple[Voter, ...] = ()


@dataclass(frozen=True, slots=True)
class SnapshotFooterRecord:
    """Control record: end of a checkpoint."""


@dataclass(frozen=True, slots=True)
class SnapshotHeaderRecord:
    """Control record: start of a checkpoint; log time (ms) of the newest record it contains."""

    last_contained_log_timestamp: int = 0


@dataclass(frozen=True, slots=True)
class VoterEndpoint:
    """One endpoint of a voter."""

    name: str = ""
    host: str = ""
    port: int = 0


@dataclass(frozen=True, slots=True)
class KRaftVersionFeature:
    """Range of kraft.version that a voter supports."""

    min_supported_version: int = 0
    max_supported_version: int = 0


@dataclass(frozen=True, slots=True)
class VotersVoter:
    """A voter with its directory and endpoints."""

    voter_id: int = 0
    voter_directory_id: Uuid = ZERO_UUID
    endpoints: tuple[VoterEndpoint, ...] = ()
    kraft_version_feature: KRaftVersionFeature = KRaftVersionFeature()


@dataclass(frozen=True, slots=True)
class VotersRecord:
    """Control record: the voter set."""

    voters: tuple[VotersVoter, ...] = ()


DataRecord = (
    RegisterBrokerRecord
    | UnregisterBrokerRecord
    | TopicRecord
    | PartitionRecord
    | ConfigRecord
    | PartitionChangeRecord
    | FenceBrokerRecord
    | UnfenceBrokerRecord
    | RemoveTopicRecord
    | DelegationTokenRecord
    | UserScramCredentialRecord
    | FeatureLevelRecord
    | ClientQuotaRecord
    | ProducerIdsRecord
    | BrokerRegistrationChangeRecord
    | AccessControlEntryRecord
    | RemoveAccessControlEntryRecord
    | NoOpRecord
    | ZkMigrationStateRecord
    | RemoveUserScramCredentialRecord
    | BeginTransactionRecord
    | EndTransactionRecord
    | AbortTransactionRecord
    | RemoveDelegationTokenRecord
    | RegisterControllerRecord
    | ClearElrRecord
)
"""What changes the image."""

ControlRecord = KRaftVersionRecord | LeaderChangeMessage | SnapshotFooterRecord | SnapshotHeaderRecord | VotersRecord
"""What concerns the quorum; it stands in control batches only."""

Record = DataRecord | ControlRecord


class VersionedRecord(NamedTuple):
    """A record with the schema version it is, or was, written in."""

    record: Record
    version: int


class LoggedRecord(NamedTuple):
    """A record where it lies in a log or checkpoint."""

    offset: int
    #: Milliseconds since 1970.
    timestamp: int
    #: Bytes; -1 = null.
    key_size: int
    #: Bytes.
    value_size: int
    record: Record
    version: int
