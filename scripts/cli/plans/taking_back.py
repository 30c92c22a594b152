"""Takes back moves that are on their way: each partition has the replicas that it had, in the order that it had."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping, Sequence

from quorate.controller.api.answers.plan_models import Fact, PlannedChange, PlanStep
from quorate.controller.client.client import ControllerClient
from quorate.controller.protocol import AlterPartitionReassignmentsResponse
from quorate.metadata_log.errors import ApiError, ErrorCode
from quorate.metadata_log.limits import RECORDS_PER_OPERATION_MAX
from quorate.scripts.cli.moves.plans import PartitionName
from quorate.scripts.cli.moves.waves import reassignment_request
from quorate.scripts.cli.plans.steps import send_step
from quorate.scripts.cli.topics.partition_rows import ids_text


def places_before(step: PlanStep) -> dict[PartitionName, list[int]]:
    """The replicas of the partitions that a step moves, as its plan found them."""
    request = step.change.alter_partition_reassignments
    facts = {fact.about: fact for fact in step.facts}
    found = {}
    for topic in () if request is None else request.topics:
        for one in topic.partitions:
            replicas = _replicas(facts, (topic.name, one.partition_index))
            if replicas is not None:
                found[topic.name, one.partition_index] = replicas
    return found


async def take_back(
    client: ControllerClient, moves: Sequence[PartitionName], before: Mapping[PartitionName, list[int]]
) -> list[str]:
    """Cancel those moves that are open, and say how many those were, and what is not as it was.

    A cancelled move leaves the replicas in the order of the move: the first, who is to lead, may be another. So
    they are put in order afterwards.
    """
    wanted = set(moves)
    listed = await client.list_partition_reassignments(is_linearizable=True)
    named = ((topic.name, one.partition_index) for topic in listed.topics for one in topic.partitions)
    taken: list[PartitionName] = []
    told: list[str] = []
    for some in _some([name for name in named if name in wanted]):
        reply = await client.alter_partition_reassignments(reassignment_request(dict.fromkeys(some)))
        refused = _refused(reply)
        taken += (name for name in some if name not in refused)
        told += (f"{topic}-{number} was not taken back: {why}" for (topic, number), why in refused.items())
    told.insert(0, f"moves that were not over, and were taken back: {len(taken)}")
    for ordered in _some([name for name in taken if name in before]):
        told += await _put_in_order(client, {name: before[name] for name in ordered})
    return told


def _some(names: Sequence[PartitionName]) -> Iterator[Sequence[PartitionName]]:
    """As many at a time as one request takes."""
    for first in range(0, len(names), RECORDS_PER_OPERATION_MAX):
        yield names[first : first + RECORDS_PER_OPERATION_MAX]


async def _put_in_order(client: ControllerClient, before: Mapping[PartitionName, list[int]]) -> list[str]:
    """Put replicas in the order that they had, where the order is all that differs; sentences on those that are not."""
    left = dict(before)
    while left:
        change = PlannedChange(alter_partition_reassignments=reassignment_request(left))
        facts = (await client.answers.facts(change)).facts
        by_name = {fact.about: fact for fact in facts}
        others = {name: replicas for name, replicas in left.items() if _differs_in_order(by_name, name, replicas)}
        if len(others) == len(left):
            return await _move(client, PlanStep(change=change, facts=facts), left)
        left = others
    return []


async def _move(client: ControllerClient, step: PlanStep, targets: Mapping[PartitionName, list[int]]) -> list[str]:
    try:
        reply = await send_step(client, step, f"plan:{secrets.token_hex(4)}")
    except ApiError as error:
        refused = dict.fromkeys(targets, f"{error.message} ({error.code.name})")
    else:
        if not isinstance(reply, AlterPartitionReassignmentsResponse):
            raise TypeError(f"the reply to a reassignment is a {type(reply).__name__}")
        refused = _refused(reply)
    return [
        f"{topic}-{number} has its replicas, but not in their order, {ids_text(targets[topic, number])}: {why}"
        for (topic, number), why in refused.items()
    ]


def _refused(reply: AlterPartitionReassignmentsResponse) -> dict[PartitionName, str]:
    """The reasons for refusals, by partition."""
    return {
        (topic.name, one.partition_index): f"{one.error_message or 'refused'} ({one.error_code.name})"
        for topic in reply.responses
        for one in topic.partitions
        if one.error_code is not ErrorCode.NONE
    }


def _differs_in_order(facts: Mapping[str, Fact], name: PartitionName, wanted: list[int]) -> bool:
    """Whether a partition that moves nowhere has these replicas in another order."""
    replicas = _replicas(facts, name)
    if replicas is None or replicas == wanted or sorted(replicas) != sorted(wanted):
        return False
    values = facts[_about(name)].values
    return not values["adding"] and not values["removing"]


def _replicas(facts: Mapping[str, Fact], name: PartitionName) -> list[int] | None:
    fact = facts.get(_about(name))
    replicas = None if fact is None else fact.values.get("replicas")
    return replicas if isinstance(replicas, list) else None


def _about(name: PartitionName) -> str:
    return f"partition {name[0]}-{name[1]}"
