"""The steps of a reassignment, as questions to the controllers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import BaseModel, ConfigDict

from quorate.controller.client.client import ControllerClient
from quorate.controller.protocol import DescribedPartition, DescribedTopic
from quorate.metadata_log.errors import QuorateError
from quorate.metadata_log.limits import RECORDS_PER_OPERATION_MAX
from quorate.scripts.cli.moves.waves import MoveRun
from quorate.scripts.cli.topics.json_files import PlannedPartition, ReassignmentFile
from quorate.scripts.cli.topics.partition_rows import ids_text
from quorate.scripts.cli.topics.round_robin import RoundRobin
from quorate.scripts.terminal.paging import all_topics, topics_described
from quorate.snapshots.table.reassignment import Assignment


class NotNow(QuorateError):
    """The state of the cluster is not what the request takes it for. Nothing was changed."""


def assignment_of(partition: DescribedPartition) -> Assignment:
    """Its replicas, and which of them come and go."""
    adding, removing = partition.adding_replicas, partition.removing_replicas
    return Assignment(tuple(partition.replica_nodes), tuple(adding), tuple(removing))


def settled_replicas(partition: DescribedPartition) -> list[int]:
    """The replicas without those that are only being added: what a rollback goes back to."""
    return list(assignment_of(partition).original_replicas)


async def propose(
    client: ControllerClient, names: str, onto: list[int], *, ignore_racks: bool
) -> tuple[ReassignmentFile, ReassignmentFile]:
    """The places of the partitions of some topics, and those that they would go to.

    Raises:
        NotNow: there is no such topic or broker, or too many partitions. CannotSpread.
    """
    registered = {broker.id: broker.rack for broker in (await client.describe_brokers()).brokers}
    unknown = [broker for broker in onto if broker not in registered]
    if unknown:
        raise NotNow(f"broker {ids_text(unknown)} is not registered")
    summaries = (await all_topics(client, {"names": names}, RECORDS_PER_OPERATION_MAX)).topics
    if not summaries:
        raise NotNow("no topic matches")
    count = sum(topic.partitions for topic in summaries)
    if count > RECORDS_PER_OPERATION_MAX:
        raise NotNow(f"the topics have {count} partitions: {RECORDS_PER_OPERATION_MAX} at once is the most")
    described = await topics_described(client, [topic.name for topic in summaries])
    spreading = RoundRobin({broker: None if ignore_racks else registered[broker] for broker in onto})
    current, proposed = [], []
    for name in sorted(described):
        partitions = described[name].partitions
        placed = spreading.spread(len(partitions), len(settled_replicas(partitions[0])))
        for partition, replicas in zip(partitions, placed, strict=True):
            index = partition.partition_index
            current.append(PlannedPartition.of(name, index, settled_replicas(partition)))
            proposed.append(PlannedPartition.of(name, index, replicas))
    return ReassignmentFile(partitions=current), ReassignmentFile(partitions=proposed)


async def check_none_is_open(client: ControllerClient) -> None:
    """Refuse while other reassignments are open.

    Raises:
        NotNow: they are.
    """
    listed = await client.list_partition_reassignments(is_linearizable=True)
    count = sum(len(topic.partitions) for topic in listed.topics)
    if count:
        raise NotNow(f"{count} reassignments are open: cancel them, wait for them, or say --additional")


async def current_assignment(client: ControllerClient, wanted: ReassignmentFile) -> ReassignmentFile:
    """The present places of the partitions of a plan.

    Raises:
        NotNow: one of them does not exist.
    """
    found = by_name(await topics_described(client, [one.topic for one in wanted.partitions]))
    missing = [f"{one.topic}-{one.partition}" for one in wanted.partitions if (one.topic, one.partition) not in found]
    if missing:
        raise NotNow(f"there is no partition {', '.join(missing[:20])}{' and others' if len(missing) > 20 else ''}")
    partitions = [
        PlannedPartition.of(one.topic, one.partition, settled_replicas(found[one.topic, one.partition]))
        for one in wanted.partitions
    ]
    return ReassignmentFile(partitions=partitions)


def by_name(topics: Mapping[str, DescribedTopic]) -> dict[tuple[str, int], DescribedPartition]:
    """Partitions by topic and number."""
    return {(name, one.partition_index): one for name, topic in topics.items() for one in topic.partitions}


class MovedPartition(BaseModel):
    """A partition of a plan, and how far it is."""

    model_config = ConfigDict(frozen=True)

    topic: str
    partition: int
    status: Literal["complete", "in-progress", "different", "missing"]
    #: What it has; null where it does not exist.
    replicas: list[int] | None
    target: list[int]

    @property
    def sentence(self) -> str:
        """The same for people, in the words of Kafka's tool."""
        name = f"{self.topic}-{self.partition}"
        if self.status == "complete":
            return f"Reassignment of partition {name} is completed."
        if self.status == "in-progress":
            return f"Reassignment of partition {name} is still in progress."
        if self.replicas is None:
            return f"There is no partition {name}."
        return (
            f"There is no active reassignment of partition {name}, but replica set is {ids_text(self.replicas)} "
            f"rather than {ids_text(self.target)}."
        )


class MovedPartitions(BaseModel):
    """All of a plan, in its order."""

    model_config = ConfigDict(frozen=True)

    partitions: list[MovedPartition]

    @property
    def are_complete(self) -> bool:
        """Whether nothing is left to do."""
        return all(one.status == "complete" for one in self.partitions)


async def verify_moves(client: ControllerClient, wanted: ReassignmentFile) -> MovedPartitions:
    """The progress of the partitions of a plan."""
    found = by_name(await topics_described(client, [one.topic for one in wanted.partitions]))
    return MovedPartitions(partitions=[_moved(one, found.get((one.topic, one.partition))) for one in wanted.partitions])


def _moved(wanted: PlannedPartition, found: DescribedPartition | None) -> MovedPartition:
    status: Literal["complete", "in-progress", "different", "missing"] = "different"
    if found is None:
        status = "missing"
    elif list(assignment_of(found).target_replicas) == wanted.replicas:
        status = "in-progress" if assignment_of(found).is_open else "complete"
    return MovedPartition(
        topic=wanted.topic,
        partition=wanted.partition,
        status=status,
        replicas=None if found is None else found.replica_nodes,
        target=wanted.replicas,
    )


async def watch_moves(client: ControllerClient, wanted: ReassignmentFile) -> MovedPartitions:
    """Watch until none of a plan's reassignments is open any more, with words on standard error."""
    await MoveRun({}, awaited={(one.topic, one.partition) for one in wanted.partitions}).carry_out(client)
    return await verify_moves(client, wanted)
