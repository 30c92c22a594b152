"""The rules that every state obeys at the end of a batch, whoever wrote the log.

The pipeline has rules of its own (``pipeline.fold.invariants``), and shares nothing with these on purpose: a mistake
in one does not hide in the other.
"""

from __future__ import annotations

from collections.abc import Iterator

from quorate.metadata_log.ids import NO_LEADER, uuid_text
from quorate.snapshots.counts.tally import own_min_isr_code
from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.image.image_parts import MIN_INSYNC_REPLICAS, TOPIC_RESOURCE
from quorate.snapshots.table.kept_counts import counted_anew, tally_of
from quorate.snapshots.table.partition import Partition


def broken_rules(image: MetadataImage) -> Iterator[str]:
    """A sentence for each rule that is broken, with the topic or partition that breaks it."""
    yield from _broken_by_names(image)
    count = 0
    for topic_id, topic in image.topics.by_id.items():
        numbers = []
        for number, partition in image.partitions.partitions_of(topic_id):
            numbers.append(number)
            for rule in rules_broken_by(image, partition):
                yield f"{topic.name}-{number}: {rule}: {partition}"
        if numbers != list(range(len(numbers))):
            yield f"topic {topic.name}: its partitions are not numbered from 0 on: {numbers}"
        if bool(numbers) != (topic_id in image.partitions.extents):
            yield f"topic {topic.name}: the index of partitions is wrong about whether it has any"
        count += len(numbers)
    for topic_id in image.partitions.extents:
        if topic_id not in image.topics.by_id:
            yield f"there are partitions of the topic {uuid_text(topic_id)}, which is not there"
    if count != len(image.partitions):
        yield f"{len(image.partitions)} partitions are held, and {count} are of topics that are there"
    yield from _broken_by_counts(image)


def _broken_by_names(image: MetadataImage) -> Iterator[str]:
    topics = image.topics
    for topic_id, topic in topics.by_id.items():
        if topic.id != topic_id:
            yield f"topic {topic.name}: it has the id {uuid_text(topic.id)}, and is found under {uuid_text(topic_id)}"
        if topics.by_name.get(topic.name) != topic:
            yield f"topic {topic.name}: its name does not lead to its id {uuid_text(topic_id)}"
    if len(topics.by_name) != len(topics.by_id):
        yield f"{len(topics.by_name)} names of topics lead to {len(topics.by_id)} topics"


def _broken_by_counts(image: MetadataImage) -> Iterator[str]:
    table = image.partitions
    own = {
        topic.id: code
        for topic in image.topics.by_id.values()
        if (code := own_min_isr_code(image.configs.of(TOPIC_RESOURCE, topic.name).get(MIN_INSYNC_REPLICAS)))
    }
    if dict(table.own_min_isrs) != own:
        counted = len(table.own_min_isrs)
        yield f"{counted} topics are counted by a {MIN_INSYNC_REPLICAS} of their own, and {len(own)} have one"
    kept, found = tally_of(table), counted_anew(table.pages, table.own_min_isrs)
    if kept != found:
        yield f"the counts that are kept are {kept}, and what is counted is {found}"


def rules_broken_by(image: MetadataImage, partition: Partition) -> Iterator[str]:
    """The rules that a partition breaks among these brokers."""
    replicas = set(partition.replicas)
    if not replicas:
        yield "it has no replica"
    if len(replicas) != len(partition.replicas):
        yield "a broker is its replica twice"
    if len(partition.directories) != len(partition.replicas):
        yield "there is not one directory for each replica"
    if partition.leader != NO_LEADER and partition.leader not in partition.isr:
        yield "its leader is not in the ISR"
    if not set(partition.isr) <= replicas:
        yield "the ISR has a broker that is no replica"
    if set(partition.elr) & set(partition.isr):
        yield "a broker is in the ISR and in the ELR"
    if not {*partition.adding_replicas, *partition.removing_replicas} <= replicas:
        yield "a broker that is added or removed is no replica"
    if partition.has_leader:
        leader = image.cluster.brokers.get(partition.leader)
        if leader is None:
            yield "its leader is not registered"
        elif leader.is_fenced:
            yield "its leader is fenced"
