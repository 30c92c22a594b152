"""The facts about topics, partitions and brokers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

import numpy as np

from quorate.controller.api.answers.plan_models import Fact, FactValue
from quorate.controller.protocol import (
    AlterPartitionReassignmentsRequest,
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    ElectLeadersRequest,
    UnregisterBrokerRequest,
)
from quorate.metadata_log.errors import ApiError, ErrorCode
from quorate.metadata_log.ids import Uuid, uuid_text
from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.table.pages import NO_PARTITION
from quorate.snapshots.table.partition import Partition


def partition_count(image: MetadataImage, topic_id: Uuid) -> int:
    """The number of a topic's partitions."""
    rows = image.partitions.rows_of(topic_id)
    return int(
        np.count_nonzero(image.partitions.gather_partition_ids(np.arange(rows.start, rows.stop)) != NO_PARTITION)
    )


def find_partition(image: MetadataImage, topic: str, number: int) -> Partition | None:
    """A partition by the name of its topic; None: there is none."""
    found = image.topics.by_name.get(topic)
    row = None if found is None else image.partitions.row(found.id, number)
    return None if row is None else image.partitions.partition(row)


def topic_fact(image: MetadataImage, name: str) -> Fact:
    """Whether there is a topic of this name, which one, and how large it is."""
    topic = image.topics.by_name.get(name)
    if topic is None:
        return Fact(about=f"topic {name}", values={"id": None})
    return Fact(
        about=f"topic {name}", values={"id": uuid_text(topic.id), "partitions": partition_count(image, topic.id)}
    )


def identity_fact(image: MetadataImage, name: str) -> Fact:
    """Whether there is a topic of this name, and which one."""
    topic = image.topics.by_name.get(name)
    return Fact(about=f"topic {name}", values={"id": None if topic is None else uuid_text(topic.id)})


def broker_state(image: MetadataImage, broker_id: int) -> str:
    """The state of a broker: `active`, `fenced`, `in controlled shutdown`, `not registered`."""
    broker = image.cluster.brokers.get(broker_id)
    if broker is None:
        return "not registered"
    if broker.is_fenced:
        return "fenced"
    return "in controlled shutdown" if broker.in_controlled_shutdown else "active"


def _broker_facts(image: MetadataImage, lists: Iterable[Iterable[int]]) -> Iterator[Fact]:
    """Of each broker that is named, once."""
    for broker_id in sorted(set(chain.from_iterable(lists))):
        yield Fact(about=f"broker {broker_id}", values={"state": broker_state(image, broker_id)})


def of_creation(image: MetadataImage, request: CreateTopicsRequest) -> Iterator[Fact]:
    """The facts that the creation of topics goes by."""
    yield from (topic_fact(image, topic.name) for topic in request.topics)
    yield from _broker_facts(image, (one.broker_ids for topic in request.topics for one in topic.assignments))


def of_growth(image: MetadataImage, request: CreatePartitionsRequest) -> Iterator[Fact]:
    """The facts that more partitions go by."""
    yield from (topic_fact(image, topic.name) for topic in request.topics)
    yield from _broker_facts(image, (ids for topic in request.topics for ids in topic.assignments or ()))


def of_deletion(image: MetadataImage, request: DeleteTopicsRequest) -> Iterator[Fact]:
    """The facts that the deletion of topics goes by."""
    for topic_id in request.topic_ids:
        topic = image.topics.by_id.get(topic_id)
        if topic is None:
            yield Fact(about=f"topic id {uuid_text(topic_id)}", values={"name": None})
        else:
            values: dict[str, FactValue] = {"name": topic.name, "partitions": partition_count(image, topic_id)}
            yield Fact(about=f"topic id {uuid_text(topic_id)}", values=values)


def of_moves(image: MetadataImage, request: AlterPartitionReassignmentsRequest) -> Iterator[Fact]:
    """The facts that reassignments go by: where the partitions are, and whether who gets them runs."""
    for topic in request.topics:
        yield identity_fact(image, topic.name)
        numbers = [one.partition_index for one in topic.partitions]
        for number, values in zip(numbers, _places(image, topic.name, numbers), strict=True):
            yield Fact(about=f"partition {topic.name}-{number}", values=values)
    yield from _broker_facts(image, (one.replicas or () for topic in request.topics for one in topic.partitions))


def _places(image: MetadataImage, topic: str, numbers: Sequence[int]) -> Iterator[dict[str, FactValue]]:
    """The places of partitions of a topic. Read together, in a turn of the loop: one by one costs more."""
    found = image.topics.by_name.get(topic)
    rows = [None if found is None else image.partitions.row(found.id, number) for number in numbers]
    columns = image.partitions.gather([row for row in rows if row is not None])
    read = zip(
        columns.slots.tolist(),
        columns.replica_counts.tolist(),
        columns.adding.tolist(),
        columns.removing.tolist(),
        strict=True,
    )
    for row in rows:
        if row is None:
            yield {"replicas": None}
        else:
            slots, count, adding, removing = next(read)
            yield {
                "replicas": slots[:count],
                "adding": _in_slots(slots, adding),
                "removing": _in_slots(slots, removing),
            }


def _in_slots(slots: Sequence[int], mask: int) -> list[int]:
    return sorted(broker for slot, broker in enumerate(slots) if mask >> slot & 1) if mask else []


def of_elections(image: MetadataImage, request: ElectLeadersRequest) -> Iterator[Fact]:
    """The facts that elections go by: who leads, who could, and whether they run.

    Raises:
        ApiError: INVALID_REQUEST, no partition is named: which ones need it changes all the time.
    """
    if request.topic_partitions is None:
        raise ApiError(
            ErrorCode.INVALID_REQUEST, "An election of all partitions goes by no facts: name the partitions."
        )
    named = [(one.topic, number) for one in request.topic_partitions for number in one.partitions]
    found = {place: find_partition(image, *place) for place in named}
    yield from (identity_fact(image, one.topic) for one in request.topic_partitions)
    for (topic, number), partition in found.items():
        values: dict[str, FactValue] = {"replicas": None} if partition is None else _leadership(partition)
        yield Fact(about=f"partition {topic}-{number}", values=values)
    yield from _broker_facts(image, (one.replicas for one in found.values() if one is not None))


def _leadership(partition: Partition) -> dict[str, FactValue]:
    return {
        "replicas": list(partition.replicas),
        "leader": partition.leader if partition.has_leader else None,
        "ISR": list(partition.isr),
        "ELR": list(partition.elr),
        "last known ELR": list(partition.last_known_elr),
    }


def of_unregistration(image: MetadataImage, request: UnregisterBrokerRequest) -> Iterator[Fact]:
    """The facts that the end of a registration goes by."""
    broker = image.cluster.brokers.get(request.broker_id)
    values: dict[str, FactValue] = {"state": broker_state(image, request.broker_id)}
    if broker is not None:
        values["incarnation"] = uuid_text(broker.incarnation_id)
        values["replicas"] = len(image.partitions.rows_with_replica(request.broker_id))
    yield Fact(about=f"broker {request.broker_id}", values=values)
