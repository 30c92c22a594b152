"""The names of what a partition or replica is, for whoever shows them; what they are derived from stays away."""

from __future__ import annotations

from typing import Final, Literal

#: What a partition is, by Kafka's names.
PartitionState = Literal["NewPartition", "OnlinePartition", "OfflinePartition", "NonExistentPartition"]
#: Has replicas and never had a leader. The log says so only where another wrote it: a partition is created with its
#: leader, in one record.
NEW_PARTITION: Final = "NewPartition"
#: Has a leader.
ONLINE_PARTITION: Final = "OnlinePartition"
#: Had a leader, and has none.
OFFLINE_PARTITION: Final = "OfflinePartition"
#: Was never created, or has been deleted.
NON_EXISTENT_PARTITION: Final = "NonExistentPartition"

#: What a replica is, by Kafka's names.
ReplicaState = Literal[
    "NewReplica",
    "OnlineReplica",
    "OfflineReplica",
    "ReplicaDeletionStarted",
    "ReplicaDeletionSuccessful",
    "ReplicaDeletionIneligible",
    "NonExistentReplica",
]
#: Is being added by a reassignment that has not ended, on a broker that lives. In sync or not does not matter.
NEW_REPLICA: Final = "NewReplica"
#: On a registered, unfenced broker, in a directory that is online. In sync or not does not matter.
ONLINE_REPLICA: Final = "OnlineReplica"
#: On a broker that is fenced or unknown, or in a directory that failed.
OFFLINE_REPLICA: Final = "OfflineReplica"
#: No replica any more, and its broker has not said yet that the data are gone.
DELETION_STARTED: Final = "ReplicaDeletionStarted"
#: Its broker has said that the data are gone.
DELETION_SUCCESSFUL: Final = "ReplicaDeletionSuccessful"
#: Its broker cannot delete it now: it is dead, or the directory failed.
DELETION_INELIGIBLE: Final = "ReplicaDeletionIneligible"
#: Not among the partition's replicas, or of a partition that does not exist.
NON_EXISTENT_REPLICA: Final = "NonExistentReplica"
