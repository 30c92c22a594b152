"""``MetadataImage``: everything the log adds up to at one offset, as an immutable value.

Readers keep the image they have: nothing in it ever changes. ``snapshots.replay.replay`` makes successors, which share
every part that did not change; so part identity tells cheaply what may differ.
"""

from __future__ import annotations

from typing import NamedTuple

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
    TopicsImage,
)
from quorate.snapshots.image.labels import LabelsImage
from quorate.snapshots.table.cluster import ClusterImage
from quorate.snapshots.table.partition_table import PartitionTable, uncounted_table


class MetadataImage(NamedTuple):
    """The whole state. Two images are equal if they say the same and cover the same.

    A named tuple, because one is made for every write event: making a frozen dataclass takes many times as long.
    """

    provenance: Provenance
    features: FeaturesImage
    kraft: KRaftImage
    cluster: ClusterImage
    topics: TopicsImage
    #: Partitions of all topics, by topic id.
    partitions: PartitionTable
    configs: ConfigsImage
    labels: LabelsImage
    client_quotas: ClientQuotasImage
    producer_ids: ProducerIdsImage
    acls: AclsImage
    scram: ScramImage
    delegation_tokens: DelegationTokensImage


#: The state before the first record.
EMPTY_IMAGE = MetadataImage(
    Provenance(),
    FeaturesImage(),
    KRaftImage(),
    ClusterImage(),
    TopicsImage(),
    PartitionTable(),
    ConfigsImage(),
    LabelsImage(),
    ClientQuotasImage(),
    ProducerIdsImage(),
    AclsImage(),
    ScramImage(),
    DelegationTokensImage(),
)


def uncounted(image: MetadataImage) -> MetadataImage:
    """The same, for who asks for no counts of partitions: none are kept of what is replayed onto it."""
    return image._replace(partitions=uncounted_table(image.partitions))


#: ``EMPTY_IMAGE``, uncounted.
EMPTY_UNCOUNTED_IMAGE = uncounted(EMPTY_IMAGE)
