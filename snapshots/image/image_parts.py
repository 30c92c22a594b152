"""The small parts of an image: immutable, and shared between images where nothing changed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, NamedTuple

from quorate.metadata_log.ids import Uuid
from quorate.metadata_log.records.records import (
    AccessControlEntryRecord,
    DelegationTokenRecord,
    EntityData,
    UserScramCredentialRecord,
    VotersRecord,
)
from quorate.snapshots.maps.persistent_map import PersistentMap

METADATA_VERSION: Final = "metadata.version"
ELR_VERSION: Final = "eligible.leader.replicas.version"

#: The only config that the state itself is counted by.
MIN_INSYNC_REPLICAS: Final = "min.insync.replicas"

# Types of config resources (Kafka's ``ConfigResource.Type``).
TOPIC_RESOURCE: Final = 2
BROKER_RESOURCE: Final = 4
BROKER_LOGGER_RESOURCE: Final = 8
CLIENT_METRICS_RESOURCE: Final = 16
GROUP_RESOURCE: Final = 32

_NOTHING: Final[MappingProxyType[str, str]] = MappingProxyType({})


class Provenance(NamedTuple):
    """The part of the log that an image covers."""

    #: -1 = nothing.
    last_contained_offset: int = -1
    #: Leader epoch of the last batch contained.
    epoch: int = 0
    #: Milliseconds since 1970 of the last batch contained.
    log_time_ms: int = 0

    @property
    def end_offset(self) -> int:
        """Exclusive: the image is the state *at* this offset."""
        return self.last_contained_offset + 1


@dataclass(frozen=True, slots=True)
class FeaturesImage:
    """Finalised features. ``kraft.version`` is not among them: it is ``KRaftImage.version``."""

    #: Level by name; a level of 0 is absent.
    levels: PersistentMap[str, int] = field(default_factory=PersistentMap)
    #: 0 = NONE; kept, never acted on.
    zk_migration_state: int = 0

    @property
    def metadata_version(self) -> int:
        """Level of ``metadata.version``, 7-30; 0 before the log has one."""
        return self.levels.get(METADATA_VERSION, 0) or 0

    @property
    def is_elr_enabled(self) -> bool:
        """Whether eligible leader replicas are kept."""
        return bool(self.levels.get(ELR_VERSION, 0))


@dataclass(frozen=True, slots=True)
class KRaftImage:
    """The content of control records about the quorum."""

    #: Level of ``kraft.version``: 0 = static voters, 1 = the voters are in the log.
    version: int = 0
    #: None with static voters.
    voters: VotersRecord | None = None


class Topic(NamedTuple):
    """A topic's name and id; its partitions are in the image's partition table, under the id."""

    name: str
    id: Uuid


@dataclass(frozen=True, slots=True)
class TopicsImage:
    """All topics, by id and by name."""

    by_id: PersistentMap[Uuid, Topic] = field(default_factory=PersistentMap)
    by_name: PersistentMap[str, Topic] = field(default_factory=PersistentMap)

    def __len__(self) -> int:
        return len(self.by_id)


@dataclass(frozen=True, slots=True)
class ConfigsImage:
    """Dynamic configs of all resources."""

    #: (resource type, resource name) -> its configs; a resource without any is absent.
    resources: PersistentMap[tuple[int, str], MappingProxyType[str, str]] = field(default_factory=PersistentMap)

    def of(self, resource_type: int, resource_name: str) -> MappingProxyType[str, str]:
        """The dynamic configs of one resource. The cluster-wide broker default has the name ""."""
        return self.resources.get((resource_type, resource_name), _NOTHING) or _NOTHING

    def topic_value(self, topic: str, name: str, node_id: int | None = None) -> str | None:
        """A topic config as resolved: the first of ``topic_values``.

        None where no dynamic config sets it: then static configuration or Kafka's default hold.
        """
        return next(self.topic_values(topic, name, node_id), None)

    def topic_values(self, topic: str, name: str, node_id: int | None = None) -> Iterator[str]:
        """The values that are set: the topic's, the node's as a broker if one is given, the cluster default's."""
        chain = [(TOPIC_RESOURCE, topic), (BROKER_RESOURCE, "")]
        if node_id is not None:
            chain.insert(1, (BROKER_RESOURCE, str(node_id)))
        for resource in chain:
            value = self.of(*resource).get(name)
            if value is not None:
                yield value


#: A quota entity: its parts by type. A part without a name is the default entity of its type.
QuotaEntity = tuple[EntityData, ...]


@dataclass(frozen=True, slots=True)
class ClientQuotasImage:
    """Quotas by entity (parts sorted by type), each with its values by key."""

    entities: PersistentMap[QuotaEntity, MappingProxyType[str, float]] = field(default_factory=PersistentMap)


@dataclass(frozen=True, slots=True)
class ProducerIdsImage:
    """Producer ids handed out so far."""

    #: First id not handed out yet; None = none ever was.
    next_producer_id: int | None = None


@dataclass(frozen=True, slots=True)
class AclsImage:
    """ACL entries by id."""

    entries: PersistentMap[Uuid, AccessControlEntryRecord] = field(default_factory=PersistentMap)


@dataclass(frozen=True, slots=True)
class ScramImage:
    """SCRAM credentials by (user, mechanism)."""

    credentials: PersistentMap[tuple[str, int], UserScramCredentialRecord] = field(default_factory=PersistentMap)


@dataclass(frozen=True, slots=True)
class DelegationTokensImage:
    """Delegation tokens by id."""

    tokens: PersistentMap[str, DelegationTokenRecord] = field(default_factory=PersistentMap)
