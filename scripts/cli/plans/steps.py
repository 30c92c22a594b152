"""The steps of a plan: how each stands, and how it is sent."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple

from pydantic import BaseModel

from quorate.controller.api.answers.plan_models import ChangePlan, Fact, PlanStep, digest_of_facts
from quorate.controller.client.attempts import ConditionalSender
from quorate.controller.client.client import ControllerClient
from quorate.controller.plans.differences import differences
from quorate.controller.protocol import AlterPartitionReassignmentsRequest
from quorate.controller.protocol.types import ItemResult
from quorate.metadata_log.errors import ErrorCode, QuorateError
from quorate.scripts.cli.plans.wording import step_lines
from quorate.scripts.cli.topics.json_files import PlannedPartition, ReassignmentFile
from quorate.scripts.terminal.bulk import ItemOutcome


class OtherClusterPlan(QuorateError):
    """A plan is of another cluster than the one that it is to be applied to."""


class StepStanding(NamedTuple):
    """The standing of a step."""

    #: ``ready``: all is as it was; ``going``, ``done``: its moves are on their way, or over; ``changed``: it cannot be.
    kind: Literal["ready", "going", "done", "changed"]
    #: What is no longer so.
    changes: list[str]


async def standings(client: ControllerClient, plan: ChangePlan) -> list[StepStanding]:
    """The standing of each step of a plan now.

    Raises:
        OtherClusterPlan: it is of another cluster.
    """
    found = []
    for step in plan.steps:
        reply = await client.answers.facts(step.change)
        if reply.cluster_id != plan.cluster_id:
            raise OtherClusterPlan(f"the plan is of cluster {plan.cluster_id}, and this is {reply.cluster_id}")
        found.append(standing(step, reply.facts))
    return found


def standing(step: PlanStep, now: Sequence[Fact]) -> StepStanding:
    """The standing of a step by the facts that are now.

    Moves that were asked for already are not asked for again: a plan that was interrupted goes on where it was.
    """
    changes = differences(step.facts, now)
    if not changes:
        return StepStanding("ready", [])
    request = step.change.alter_partition_reassignments
    progress = None if request is None else _progress(request, {fact.about: fact for fact in now})
    return StepStanding("changed", changes) if progress is None else StepStanding(progress, [])


def _progress(
    request: AlterPartitionReassignmentsRequest, facts: Mapping[str, Fact]
) -> Literal["going", "done"] | None:
    """Whether the moves have begun or are done, all of them; None: some have not, or go elsewhere."""
    is_open = False
    for topic in request.topics:
        for one in topic.partitions:
            values = facts[f"partition {topic.name}-{one.partition_index}"].values
            replicas, adding, removing = (values.get(key) for key in ("replicas", "adding", "removing"))
            if not isinstance(replicas, list) or not isinstance(adding, list) or not isinstance(removing, list):
                return None
            if one.replicas is None or [broker for broker in replicas if broker not in removing] != one.replicas:
                return None
            is_open = is_open or bool(adding or removing)
    return "going" if is_open else "done"


def moves_of(step: PlanStep) -> ReassignmentFile | None:
    """The places that a step's partitions go to; None: it moves none."""
    request = step.change.alter_partition_reassignments
    partitions = [
        PlannedPartition.of(topic.name, one.partition_index, one.replicas)
        for topic in (() if request is None else request.topics)
        for one in topic.partitions
        if one.replicas is not None
    ]
    return ReassignmentFile(partitions=partitions) if partitions else None


_SENT: Final[Mapping[str, Callable[[ControllerClient, Any], Awaitable[BaseModel]]]] = {
    "create_topics": lambda client, request: client.create_topics(request),
    "create_partitions": lambda client, request: client.create_partitions(request),
    "delete_topics": lambda client, request: client.delete_topics(request),
    "alter_partition_reassignments": lambda client, request: client.alter_partition_reassignments(request),
    "elect_leaders": lambda client, request: client.elect_leaders(request),
    "incremental_alter_configs": lambda client, request: client.incremental_alter_configs(request),
    "alter_configs": lambda client, request: client.alter_configs(request),
    "unregister_broker": lambda client, request: client.unregister_broker(request.broker_id),
    "alter_labels": lambda client, request: client.labels.alter(request),
    "update_features": lambda client, request: client.update_features(request),
    "create_acls": lambda client, request: client.access.create_acls(request),
    "delete_acls": lambda client, request: client.access.delete_acls(request),
    "alter_client_quotas": lambda client, request: client.access.alter_client_quotas(request),
    "alter_user_scram_credentials": lambda client, request: client.access.alter_user_scram_credentials(request),
}


async def send_step(client: ControllerClient, step: PlanStep, request_id: str) -> BaseModel:
    """Make a step's change, if all that it goes by is as it was.

    Raises:
        ApiError: INVALID_UPDATE_VERSION, it is not, and nothing was changed; any other refusal.
    """
    ((operation, request),) = step.change.requests.items()
    sender = ConditionalSender(client.sender, digest_of_facts(step.facts), request_id)
    async with ControllerClient((), sender=sender) as conditional:
        return await _SENT[operation](conditional, request)


def outcomes_of(step: PlanStep, reply: BaseModel) -> list[ItemOutcome]:
    """The outcome of each thing that a step is about."""
    lines = step_lines(step)
    done = [f"{word}: {line}." for word, line in zip(_words(step, len(lines)), lines, strict=True)]
    results = list(_results(reply))
    if len(results) != len(lines):  # all of it, or none: a refusal was an error
        return [ItemOutcome(line, ErrorCode.NONE, None, told) for line, told in zip(lines, done, strict=True)]
    return [
        ItemOutcome(line, result.error_code, result.error_message, told)
        for line, result, told in zip(lines, results, done, strict=True)
    ]


def _words(step: PlanStep, count: int) -> list[str]:
    """The word for each thing that was not refused: a move has only begun, and ends when its data are there."""
    request = step.change.alter_partition_reassignments
    if request is None:
        return ["Done"] * count
    asked = (one for topic in request.topics for one in topic.partitions)
    return ["Done" if one.replicas is None else "Begun" for one in asked]


def _results(part: BaseModel) -> Iterator[ItemResult]:
    if isinstance(part, ItemResult):
        yield part
        return
    for name in type(part).model_fields:
        value = getattr(part, name)
        for one in value if isinstance(value, list) else ():
            if isinstance(one, BaseModel):
                yield from _results(one)
