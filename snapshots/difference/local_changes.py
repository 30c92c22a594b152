"""The meaning of a delta for one broker (Kafka's ``LocalReplicaChanges``): as rows of tables, and replica by replica.

Rows are for those with many partitions; ``led``, ``elected``, ``followed`` and ``stopped`` make an object for each.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from quorate.metadata_log.ids import Uuid
from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.table.pages import Rows
from quorate.snapshots.table.partition import Partition


class LocalReplica(NamedTuple):
    """One partition of which the broker has, or had, a replica."""

    topic: str
    topic_id: Uuid
    partition_id: int
    #: As it is now; of a replica that went, as it was.
    state: Partition


@dataclass(frozen=True, slots=True, eq=False)
class LocalChanges:
    """The changes for one broker's replicas. Each of the four is in the order of its rows."""

    old: MetadataImage
    new: MetadataImage
    #: int64[n], rows in the new table: the broker leads, and the partition changed.
    leaders: Rows
    #: Those of them that have a new leader epoch.
    elected_leaders: Rows
    #: int64[n], rows in the new table: the broker is a replica, does not lead, and the partition changed.
    followers: Rows
    #: int64[n], rows in the old table: the broker was a replica and is none any more.
    removed: Rows

    def __bool__(self) -> bool:
        """Whether anything changed for this broker."""
        return bool(len(self.leaders) or len(self.followers) or len(self.removed))

    def led(self) -> list[LocalReplica]:
        """Changed partitions that the broker leads."""
        return _replicas(self.new, self.leaders)

    def elected(self) -> list[LocalReplica]:
        """Those of them that it leads in a new leader epoch: it was elected, perhaps once more."""
        return _replicas(self.new, self.elected_leaders)

    def followed(self) -> list[LocalReplica]:
        """Changed partitions that the broker has a replica of and does not lead."""
        return _replicas(self.new, self.followers)

    def stopped(self) -> list[LocalReplica]:
        """Partitions that the broker is to stop hosting: moved away, or deleted with their topic."""
        return _replicas(self.old, self.removed)


def _replicas(image: MetadataImage, rows: Rows) -> list[LocalReplica]:
    table, topics = image.partitions, image.topics.by_id
    found = []
    for row in rows.tolist():
        topic_id = table.topic_id(row)
        found.append(LocalReplica(topics[topic_id].name, topic_id, table.partition_id(row), table.partition(row)))
    return found
