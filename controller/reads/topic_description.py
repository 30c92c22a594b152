"""Topics and partitions as an operator sees them. Reads only."""

from __future__ import annotations

from quorate.controller.protocol import DescribedPartition, DescribedTopic
from quorate.metadata_log.errors import ErrorCode
from quorate.metadata_log.ids import ZERO_UUID, Uuid
from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.table.pages import Rows
from quorate.snapshots.table.partition import Partition
from quorate.snapshots.views.derived_states import offline_replicas, partition_state, replica_states


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
    partitions = [
        describe_partition(image, number, partition) for number, partition in image.partitions.partitions_of(topic.id)
    ]
    return DescribedTopic(name=name, topic_id=topic.id, partitions=partitions)


def describe_rows(image: MetadataImage, rows: Rows) -> list[DescribedTopic]:
    """The partitions in some rows of the image's table, those of a topic next to each other."""
    table = image.partitions
    topics: dict[Uuid, list[DescribedPartition]] = {}
    for row in rows.tolist():
        described = describe_partition(image, table.partition_id(row), table.partition(row))
        topics.setdefault(table.topic_id(row), []).append(described)
    return [
        DescribedTopic(name=image.topics.by_id[id_].name, topic_id=id_, partitions=partitions)
        for id_, partitions in topics.items()
    ]


def describe_partition(image: MetadataImage, number: int, partition: Partition) -> DescribedPartition:
    """One partition: the row of every list of partitions."""
    states = replica_states(image, partition)
    return DescribedPartition(
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
