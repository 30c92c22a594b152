"""What follows a cluster's metadata: subclass ``MetadataPublisher``, and give it to a broker or to a watcher.

What a publisher is handed, and the values in it. See docs/publishers.md.
"""

from quorate.broker.publisher import (
    ControllerEpoch,
    DuplicatePublisher,
    Manifest,
    MetadataPublisher,
)
from quorate.metadata_log.ids import NO_LEADER, Uuid, uuid_from_text, uuid_text
from quorate.metadata_log.records.records import (
    AccessControlEntryRecord,
    BrokerEndpoint,
    BrokerFeature,
    ControllerEndpoint,
    ControllerFeature,
    DelegationTokenRecord,
    EntityData,
    KRaftVersionFeature,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    UserScramCredentialRecord,
    VoterEndpoint,
    VotersRecord,
    VotersVoter,
)
from quorate.snapshots.difference.delta import KeyChanges, MetadataDelta
from quorate.snapshots.difference.local_changes import LocalChanges, LocalReplica
from quorate.snapshots.image.image import EMPTY_IMAGE, MetadataImage
from quorate.snapshots.image.image_parts import (
    AclsImage,
    ClientQuotasImage,
    ConfigsImage,
    DelegationTokensImage,
    FeaturesImage,
    KRaftImage,
    ProducerIdsImage,
    Provenance,
    ScramImage,
    Topic,
    TopicsImage,
)
from quorate.snapshots.image.labels import LabelsImage
from quorate.snapshots.maps.persistent_map import PersistentMap
from quorate.snapshots.table.cluster import BrokerRegistration, ClusterImage, ControllerRegistration
from quorate.snapshots.table.pages import Page
from quorate.snapshots.table.partition import Partition
from quorate.snapshots.table.partition_columns import PartitionColumns
from quorate.snapshots.table.partition_table import PartitionTable
from quorate.snapshots.table.reassignment import Assignment, ReassignmentState
from quorate.snapshots.table.table_difference import TableDifference

__all__ = [
    "EMPTY_IMAGE",
    "NO_LEADER",
    "AccessControlEntryRecord",
    "AclsImage",
    "Assignment",
    "BrokerEndpoint",
    "BrokerFeature",
    "BrokerRegistration",
    "ClientQuotasImage",
    "ClusterImage",
    "ConfigsImage",
    "ControllerEndpoint",
    "ControllerEpoch",
    "ControllerFeature",
    "ControllerRegistration",
    "DelegationTokenRecord",
    "DelegationTokensImage",
    "DuplicatePublisher",
    "EntityData",
    "FeaturesImage",
    "KRaftImage",
    "KRaftVersionFeature",
    "KeyChanges",
    "LabelsImage",
    "LocalChanges",
    "LocalReplica",
    "Manifest",
    "MetadataDelta",
    "MetadataImage",
    "MetadataPublisher",
    "Page",
    "Partition",
    "PartitionChangeRecord",
    "PartitionColumns",
    "PartitionRecord",
    "PartitionTable",
    "PersistentMap",
    "ProducerIdsImage",
    "Provenance",
    "ReassignmentState",
    "RegisterBrokerRecord",
    "RegisterControllerRecord",
    "ScramImage",
    "TableDifference",
    "Topic",
    "TopicsImage",
    "UserScramCredentialRecord",
    "Uuid",
    "VoterEndpoint",
    "VotersRecord",
    "VotersVoter",
    "uuid_from_text",
    "uuid_text",
]
