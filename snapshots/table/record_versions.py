"""The version of each record that Kafka writes into a snapshot, by the level of ``metadata.version``.

An image made by Kafka never holds what its level cannot write. Ours may (an imported state, a level lowered by hand):
then the record gets the lowest version that loses nothing. A checkpoint must never be lossy, and must not fail.
"""

from __future__ import annotations

from typing import Final

from quorate.metadata_log.ids import DIRECTORY_MIGRATING
from quorate.snapshots.table.cluster import BrokerRegistration
from quorate.snapshots.table.partition import Partition

# Levels of metadata.version (Kafka's ``MetadataVersion``) from which something can be written.
CONTROLLED_SHUTDOWN_LEVEL: Final = 7
ZK_MIGRATION_LEVEL: Final = 8
DIRECTORIES_LEVEL: Final = 17
ELR_LEVEL: Final = 23
CORDONED_LEVEL: Final = 30

#: What an image without a level of its own is written at: everything can be said.
NEWEST_LEVEL: Final = 30

REGISTER_BROKER_NEWEST: Final = 4
PARTITION_NEWEST: Final = 2


def register_broker_version(broker: BrokerRegistration, level: int) -> int:
    """Version of RegisterBrokerRecord."""
    return _version(
        level,
        (
            (CONTROLLED_SHUTDOWN_LEVEL, 1, broker.in_controlled_shutdown),
            (ZK_MIGRATION_LEVEL, 2, broker.is_migrating_zk_broker),
            (DIRECTORIES_LEVEL, 3, bool(broker.directories)),
            (CORDONED_LEVEL, 4, bool(broker.cordoned_directories)),
        ),
    )


def partition_version(partition: Partition, level: int) -> int:
    """Version of PartitionRecord."""
    has_directories = any(directory != DIRECTORY_MIGRATING for directory in partition.directories)
    return _version(
        level,
        (
            (DIRECTORIES_LEVEL, 1, has_directories),
            (ELR_LEVEL, 2, bool(partition.elr or partition.last_known_elr)),
        ),
    )


def _version(level: int, steps: tuple[tuple[int, int, bool], ...]) -> int:
    """The highest version whose level is reached or whose field is needed; steps are (level, version, is needed)."""
    return max((version for from_level, version, is_needed in steps if is_needed or level >= from_level), default=0)
