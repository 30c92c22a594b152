"""Levels of ``metadata.version``: what each allows, and the record versions it needs (Kafka's ``MetadataVersion``)."""

from __future__ import annotations

from typing import Final

METADATA_VERSION_FEATURE: Final = "metadata.version"
ELR_FEATURE: Final = "eligible.leader.replicas.version"

#: 3.3-IV3: the oldest level that this controller leads at.
LEVEL_MIN: Final = 7
#: 4.3-IV0: the newest production level.
LEVEL_MAX: Final = 30
#: 3.6-IV0: from here on a shrinking ISR alone does not raise the leader epoch.
NO_EPOCH_BUMP_ON_SHRINK_LEVEL: Final = 12
#: 3.5-IV2
SCRAM_LEVEL: Final = 11
#: 3.6-IV1
TRANSACTIONS_LEVEL: Final = 13
#: 3.6-IV2
DELEGATION_TOKENS_LEVEL: Final = 14
#: 3.7-IV0
CONTROLLER_REGISTRATION_LEVEL: Final = 15
#: 3.7-IV2
DIRECTORIES_LEVEL: Final = 17
#: 4.0-IV1
ELR_LEVEL: Final = 23
#: 4.3-IV0, KIP-1066
CORDONED_DIRECTORIES_LEVEL: Final = 30

#: Levels that changed what is in the log: metadata written at one of them may not fit into a lower one.
LEVELS_WITH_METADATA_CHANGE: Final = (7, 8, 11, 13, 14, 15, 17, 23, 30)

_BROKER_V2_LEVEL: Final = 8  # 3.4-IV0


def partition_version(level: int) -> int:
    """Version of PartitionRecord and PartitionChangeRecord."""
    if level >= ELR_LEVEL:
        return 2
    return 1 if level >= DIRECTORIES_LEVEL else 0


def register_broker_version(level: int) -> int:
    """Version of RegisterBrokerRecord."""
    if level >= CORDONED_DIRECTORIES_LEVEL:
        return 4
    if level >= DIRECTORIES_LEVEL:
        return 3
    return 2 if level >= _BROKER_V2_LEVEL else 1
