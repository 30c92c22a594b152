"""Topics and partitions as an operator sees them. Reads only."""

from __future__ import annotations

from collections.abc import Iterator

from controller.protocol import DescribedPartition, DescribedTopic
from metadata_log.errors import ErrorCode
from metadata_log.ids import ZERO_UUID, Uuid
from snapshots.derived_states import offline_replicas, partition_state, replica_states
from snapshots.image import MetadataImage


def describe_topic(image: MetadataImage, name: str) -> DescribedTopic:
    """One topic by name; an unknown one is a result with UNKNOWN_TOPIC_OR_PARTITION."""
    topic = image.topics.by_name.get(name)
    if topic is None:
        return DescribedTopic(
            name=name,
            topic_id=ZERO_UUID,
            error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            error_message=f"There is no topic {name}.",
        )
    return DescribedTopic(name=name, topic_id=topic.id, partitions=list(_partitions(image, topic.id)))


def _partitions(image: MetadataImage, topic_id: Uuid) -> Iterator[DescribedPartition]:
    for number, partition in image.partitions.partitions_of(topic_id):
        states = replica_states(image, partition)
        yield DescribedPartition(
            partition_index=number,
            state=partition_state(partition),
            leader_id=partition.leader,
            leader_epoch=partition.leader_epoch,
            partition_epoch=partition.partition_epoch,
            leader_recovery_state=partition.leader_recovery_state,
            replica_nodes=list(partition.replicas),
            replica_states=states,
            isr_nodes=list(partition.isr),
            eligible_leader_replicas=list(partition.elr),
            last_known_elr=list(partition.last_known_elr),
            adding_replicas=list(partition.adding_replicas),
            removing_replicas=list(partition.removing_replicas),
            offline_replicas=offline_replicas(partition, states),
            directories=list(partition.directories),
        )
