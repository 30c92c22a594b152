"""``MetadataImage``: everything the log adds up to at one offset, as an immutable value.

Readers keep the image they have: nothing in it ever changes. ``snapshots.replay`` makes successors, which share every
part that did not change; so part identity tells cheaply what may differ.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from snapshots.cluster import ClusterImage
from snapshots.image_parts import (
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
from snapshots.partition_table import PartitionTable


@dataclass(frozen=True, slots=True)
class MetadataImage:
    """The whole state. Two images are equal if they say the same and cover the same."""

    provenance: Provenance = field(default_factory=Provenance)
    features: FeaturesImage = field(default_factory=FeaturesImage)
    kraft: KRaftImage = field(default_factory=KRaftImage)
    cluster: ClusterImage = field(default_factory=ClusterImage)
    topics: TopicsImage = field(default_factory=TopicsImage)
    #: Partitions of all topics, by topic id.
    partitions: PartitionTable = field(default_factory=PartitionTable)
    configs: ConfigsImage = field(default_factory=ConfigsImage)
    client_quotas: ClientQuotasImage = field(default_factory=ClientQuotasImage)
    producer_ids: ProducerIdsImage = field(default_factory=ProducerIdsImage)
    acls: AclsImage = field(default_factory=AclsImage)
    scram: ScramImage = field(default_factory=ScramImage)
    delegation_tokens: DelegationTokensImage = field(default_factory=DelegationTokensImage)


#: The state before the first record.
EMPTY_IMAGE = MetadataImage()
