"""The registered brokers and controllers."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from quorate.metadata_log.ids import DIRECTORY_LOST, DIRECTORY_MIGRATING, DIRECTORY_UNASSIGNED, Uuid
from quorate.metadata_log.records.records import (
    BrokerEndpoint,
    BrokerFeature,
    ControllerEndpoint,
    ControllerFeature,
    RegisterBrokerRecord,
    RegisterControllerRecord,
)
from quorate.snapshots.maps.persistent_map import PersistentMap


def directory_order(uuid: Uuid) -> tuple[int, int]:
    """The order in which Kafka keeps directories: two signed 64-bit halves (Java's ``Uuid.compareTo``)."""
    return int.from_bytes(uuid[:8], "big", signed=True), int.from_bytes(uuid[8:], "big", signed=True)


@dataclass(frozen=True, slots=True)
class BrokerRegistration:
    """The registration of a broker, with all that became of it since."""

    id: int
    #: Offset at which the registration's operation began.
    epoch: int
    incarnation_id: Uuid
    #: Order has no meaning (Kafka keeps a hash map of them); equality ignores it. As in the record.
    listeners: tuple[BrokerEndpoint, ...]
    #: As the listeners.
    supported_features: tuple[BrokerFeature, ...]
    rack: str | None
    is_fenced: bool
    in_controlled_shutdown: bool
    is_migrating_zk_broker: bool
    #: Online log directories in Kafka's order; empty for a broker from before directories.
    directories: tuple[Uuid, ...]
    #: Directories that take no new partitions, in Kafka's order.
    cordoned_directories: tuple[Uuid, ...]

    @property
    def is_active(self) -> bool:
        """Whether it may lead and may enter an ISR."""
        return not self.is_fenced and not self.in_controlled_shutdown

    def has_online(self, directory: Uuid) -> bool:
        """Whether a replica in this directory is online (Kafka's ``DirectoryId.isOnline``)."""
        if directory in (DIRECTORY_UNASSIGNED, DIRECTORY_MIGRATING):
            return True
        if directory == DIRECTORY_LOST:
            return False
        return not self.directories or directory in self.directories

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, BrokerRegistration):
            return NotImplemented
        return _unordered(self) == _unordered(other)

    def __hash__(self) -> int:
        return hash((self.id, self.epoch))

    @classmethod
    def from_record(cls, record: RegisterBrokerRecord) -> BrokerRegistration:
        """The registration that a record declares."""
        return cls(
            id=record.broker_id,
            epoch=record.broker_epoch,
            incarnation_id=record.incarnation_id,
            listeners=record.end_points,
            supported_features=record.features,
            rack=record.rack,
            is_fenced=record.fenced,
            in_controlled_shutdown=record.in_controlled_shutdown,
            is_migrating_zk_broker=record.is_migrating_zk_broker,
            directories=tuple(sorted(record.log_dirs, key=directory_order)),
            cordoned_directories=tuple(sorted(record.cordoned_log_dirs or (), key=directory_order)),
        )

    def with_fenced(self, is_fenced: bool) -> BrokerRegistration:
        """The same, fenced or unfenced."""
        return replace(self, is_fenced=is_fenced)


def _unordered(registration: BrokerRegistration) -> tuple[object, ...]:
    r = registration
    return (
        (r.id, r.epoch, r.incarnation_id, r.rack, r.is_fenced, r.in_controlled_shutdown, r.is_migrating_zk_broker),
        sorted(r.listeners, key=lambda listener: listener.name),
        sorted(r.supported_features, key=lambda feature: feature.name),
        r.directories,
        r.cordoned_directories,
    )


@dataclass(frozen=True, slots=True)
class ControllerRegistration:
    """The registration of a controller."""

    id: int
    incarnation_id: Uuid
    zk_migration_ready: bool
    #: Order has no meaning. As in the record.
    listeners: tuple[ControllerEndpoint, ...]
    supported_features: tuple[ControllerFeature, ...]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ControllerRegistration):
            return NotImplemented
        return (
            (self.id, self.incarnation_id, self.zk_migration_ready)
            == (other.id, other.incarnation_id, other.zk_migration_ready)
            and set(self.listeners) == set(other.listeners)
            and set(self.supported_features) == set(other.supported_features)
        )

    def __hash__(self) -> int:
        return hash((self.id, self.incarnation_id))

    @classmethod
    def from_record(cls, record: RegisterControllerRecord) -> ControllerRegistration:
        """The registration that a record declares."""
        return cls(
            id=record.controller_id,
            incarnation_id=record.incarnation_id,
            zk_migration_ready=record.zk_migration_ready,
            listeners=record.end_points,
            supported_features=record.features,
        )


@dataclass(frozen=True, slots=True)
class ClusterImage:
    """All registrations, by node id."""

    brokers: PersistentMap[int, BrokerRegistration] = field(default_factory=PersistentMap)
    controllers: PersistentMap[int, ControllerRegistration] = field(default_factory=PersistentMap)

    def active_brokers(self) -> list[int]:
        """Brokers that may lead, by id."""
        return sorted(id_ for id_, broker in self.brokers.items() if broker.is_active)
