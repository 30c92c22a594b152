"""``MetadataDelta``: what differs between an image and a later one. Each part is worked out when it is asked for.

Parts, map buckets, pages and columns that both images share are skipped, so the cost is that of what changed.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from quorate.metadata_log.ids import Uuid
from quorate.snapshots.difference.local_changes import LocalChanges
from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.image.image_parts import QuotaEntity
from quorate.snapshots.maps.persistent_map import PersistentMap
from quorate.snapshots.table.partition_columns import PartitionColumns
from quorate.snapshots.table.table_difference import TableDifference, table_difference, tables_equal

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class KeyChanges(Generic[K]):
    """Keys of one part whose entries differ."""

    #: New, or with another value.
    updated: frozenset[K]
    removed: frozenset[K]

    def __bool__(self) -> bool:
        return bool(self.updated or self.removed)


class MetadataDelta:
    """The difference between two images."""

    def __init__(self, old: MetadataImage, new: MetadataImage) -> None:
        self.old = old
        self.new = new

    def __bool__(self) -> bool:
        """Whether anything but the provenance differs."""
        return bool(
            self.features
            or self.is_zk_migration_state_changed
            or self.is_kraft_changed
            or self.brokers
            or self.controllers
            or self.topics
            or not tables_equal(self.old.partitions, self.new.partitions)
            or self.configs
            or self.labels
            or self.client_quotas
            or self.is_next_producer_id_changed
            or self.acls
            or self.scram
            or self.delegation_tokens
        )

    @cached_property
    def features(self) -> KeyChanges[str]:
        """Finalised features by name."""
        return _changes(self.old.features.levels, self.new.features.levels)

    @property
    def is_zk_migration_state_changed(self) -> bool:
        """Whether the state of a migration from ZooKeeper differs."""
        return self.old.features.zk_migration_state != self.new.features.zk_migration_state

    @property
    def is_kraft_changed(self) -> bool:
        """Whether ``kraft.version`` or the voters differ."""
        return self.old.kraft != self.new.kraft

    @cached_property
    def brokers(self) -> KeyChanges[int]:
        """Registrations by broker id."""
        return _changes(self.old.cluster.brokers, self.new.cluster.brokers)

    @cached_property
    def controllers(self) -> KeyChanges[int]:
        """Registrations by controller id."""
        return _changes(self.old.cluster.controllers, self.new.cluster.controllers)

    @cached_property
    def topics(self) -> KeyChanges[Uuid]:
        """Created and removed topics. A topic that was deleted and made again has another id."""
        return _changes(self.old.topics.by_id, self.new.topics.by_id)

    @cached_property
    def partitions(self) -> TableDifference:
        """Partitions by row: new, changed, gone."""
        return table_difference(self.old.partitions, self.new.partitions)

    @cached_property
    def configs(self) -> KeyChanges[tuple[int, str]]:
        """Configs by (resource type, resource name)."""
        return _changes(self.old.configs.resources, self.new.configs.resources)

    @cached_property
    def labels(self) -> KeyChanges[str]:
        """Labels by resource: `topic:orders`, say."""
        return _changes(self.old.labels.resources, self.new.labels.resources)

    @cached_property
    def client_quotas(self) -> KeyChanges[QuotaEntity]:
        """Quotas by entity."""
        return _changes(self.old.client_quotas.entities, self.new.client_quotas.entities)

    @property
    def is_next_producer_id_changed(self) -> bool:
        """Whether producer ids were handed out."""
        return self.old.producer_ids != self.new.producer_ids

    @cached_property
    def acls(self) -> KeyChanges[Uuid]:
        """ACL entries by id."""
        return _changes(self.old.acls.entries, self.new.acls.entries)

    @cached_property
    def scram(self) -> KeyChanges[tuple[str, int]]:
        """SCRAM credentials by (user, mechanism)."""
        return _changes(self.old.scram.credentials, self.new.scram.credentials)

    @cached_property
    def delegation_tokens(self) -> KeyChanges[str]:
        """Delegation tokens by id."""
        return _changes(self.old.delegation_tokens.tokens, self.new.delegation_tokens.tokens)

    @cached_property
    def _columns(self) -> tuple[PartitionColumns, PartitionColumns, PartitionColumns]:
        """Changed partitions as they are, those of them that were there as they were, and those that are gone."""
        difference = self.partitions
        return (
            self.new.partitions.gather(difference.rows),
            self.old.partitions.gather(difference.old_rows[difference.old_rows >= 0]),
            self.old.partitions.gather(difference.removed_rows),
        )

    def local_changes(self, broker: int) -> LocalChanges:
        """The changes for the replicas of one broker: those it leads, those it follows, those it is to stop hosting."""
        now, before, gone = self._columns
        was_there = self.partitions.old_rows >= 0
        is_replica = _has_replica(now, broker)
        leads = now.leaders == broker
        has_new_epoch = ~was_there
        has_new_epoch[was_there] = before.leader_epochs != now.leader_epochs[was_there]
        left = _has_replica(before, broker) & ~is_replica[was_there]
        return LocalChanges(
            old=self.old,
            new=self.new,
            leaders=now.rows[leads],
            elected_leaders=now.rows[leads & has_new_epoch],
            followers=now.rows[is_replica & ~leads],
            removed=np.concatenate([before.rows[left], gone.rows[_has_replica(gone, broker)]]),
        )


def _has_replica(columns: PartitionColumns, broker: int) -> NDArray[np.bool_]:
    is_replica: NDArray[np.bool_] = (columns.slots_in([broker]) & columns.replicas) != 0
    return is_replica


def _changes(old: PersistentMap[K, V], new: PersistentMap[K, V]) -> KeyChanges[K]:
    updated, removed = new.changes_since(old)
    return KeyChanges(frozenset(updated), frozenset(removed))
