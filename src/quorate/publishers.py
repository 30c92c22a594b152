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
from quorate.snapshots.difference.delta import KeyChanges, MetadataDelta
from quorate.snapshots.difference.local_changes import LocalChanges, LocalReplica
from quorate.snapshots.image.image import EMPTY_IMAGE, MetadataImage
from quorate.snapshots.image.image_parts import Provenance, Topic
from quorate.snapshots.image.labels import LabelsImage
from quorate.snapshots.table.cluster import BrokerRegistration
from quorate.snapshots.table.partition import Partition
from quorate.snapshots.table.partition_table import PartitionTable

__all__ = [
    "EMPTY_IMAGE",
    "NO_LEADER",
    "BrokerRegistration",
    "ControllerEpoch",
    "DuplicatePublisher",
    "KeyChanges",
    "LabelsImage",
    "LocalChanges",
    "LocalReplica",
    "Manifest",
    "MetadataDelta",
    "MetadataImage",
    "MetadataPublisher",
    "Partition",
    "PartitionTable",
    "Provenance",
    "Topic",
    "Uuid",
    "uuid_from_text",
    "uuid_text",
]
