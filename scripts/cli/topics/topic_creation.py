"""`quorate topics create`: new topics, now or by a plan."""

from __future__ import annotations

from typing import Annotated

import typer

from quorate.controller.api.answers.plan_models import PlannedChange
from quorate.controller.client.client import ControllerClient
from quorate.controller.protocol import (
    CreatableTopic,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
    ReplicaAssignment,
    TopicConfig,
)
from quorate.metadata_log.errors import ApiError, ErrorCode
from quorate.scripts.cli.plans.plan_files import write_plan
from quorate.scripts.cli.topics.config_names import point_out_slips
from quorate.scripts.terminal.arguments import AsJson, Assignment, DryRun, PlanTo, Topics, key_values, replica_lists
from quorate.scripts.terminal.asking import ask
from quorate.scripts.terminal.bulk import ItemOutcome, exit_by, only, report
from quorate.scripts.terminal.connecting import Controllers, SecretFile


def create(
    topics: Topics,
    partitions: Annotated[
        int | None,
        typer.Option("--partitions", min=1, max=2**31 - 1, metavar="N", help="Default: the cluster's num.partitions."),
    ] = None,
    replication_factor: Annotated[
        int | None,
        typer.Option("--replication-factor", min=1, max=2**15 - 1, metavar="N", help="Default: the cluster's."),
    ] = None,
    replica_assignment: Assignment = None,
    config: Annotated[list[str] | None, typer.Option("--config", metavar="NAME=VALUE", help="May be repeated.")] = None,
    dry_run: DryRun = False,
    if_not_exists: Annotated[bool, typer.Option("--if-not-exists", help="Do nothing where it exists already.")] = False,
    plan: PlanTo = None,
    as_json: AsJson = False,
    controllers: Controllers = None,
    secret_file: SecretFile = None,
) -> None:
    """Create topics, all alike; each for itself.

    Example: quorate topics create orders --partitions 6 --replication-factor 3 --config retention.ms=86400000
    """
    if replica_assignment is not None and (partitions is not None or replication_factor is not None):
        raise typer.BadParameter("--replica-assignment says how many partitions and replicas there are")
    lists = [] if replica_assignment is None else replica_lists(replica_assignment)
    assignments = [ReplicaAssignment(partition_index=at, broker_ids=ids) for at, ids in enumerate(lists)]
    configs = [TopicConfig(name=name, value=value) for name, value in key_values(config)]
    point_out_slips("TOPIC", [one.name for one in configs])
    wanted = [
        CreatableTopic(
            name=name,
            num_partitions=-1 if partitions is None else partitions,
            replication_factor=-1 if replication_factor is None else replication_factor,
            assignments=assignments,
            configs=configs,
        )
        for name in dict.fromkeys(topics)
    ]
    request = CreateTopicsRequest(topics=wanted, validate_only=dry_run or plan is not None)
    reply = ask(controllers, secret_file, lambda client: _create(client, request), about=only(topics))
    outcomes = [_created(one, is_dry_run=request.validate_only, if_not_exists=if_not_exists) for one in reply.topics]
    if plan is None:
        report(reply, outcomes, as_json=as_json)
        return
    exit_by(outcomes)
    settled = _settled(wanted, reply)
    changes = [PlannedChange(create_topics=CreateTopicsRequest(topics=settled))] if settled else []
    exist = "All of these topics exist already."
    write_plan(plan, "topics create", changes, controllers, secret_file, if_none=exist)


def _settled(wanted: list[CreatableTopic], reply: CreateTopicsResponse) -> list[CreatableTopic]:
    """Those that can be created, with the defaults that hold now written down."""
    return [
        topic
        if topic.assignments
        else topic.model_copy(
            update={"num_partitions": result.num_partitions, "replication_factor": result.replication_factor}
        )
        for topic, result in zip(wanted, reply.topics, strict=True)
        if result.error_code is ErrorCode.NONE
    ]


async def _create(client: ControllerClient, request: CreateTopicsRequest) -> CreateTopicsResponse:
    """The outcomes. A single topic that is there already is one too, and no refusal of the request."""
    try:
        return await client.create_topics(request)
    except ApiError as error:
        if error.code is not ErrorCode.TOPIC_ALREADY_EXISTS:
            raise
        result = CreatableTopicResult(name=request.topics[0].name, error_code=error.code, error_message=error.message)
        return CreateTopicsResponse(topics=[result])


def _created(result: CreatableTopicResult, *, is_dry_run: bool, if_not_exists: bool) -> ItemOutcome:
    if if_not_exists and result.error_code is ErrorCode.TOPIC_ALREADY_EXISTS:
        return ItemOutcome(result.name, ErrorCode.NONE, None, f"Topic {result.name} exists already.")
    verb = "can be created" if is_dry_run else "was created"
    return ItemOutcome(
        result.name, result.error_code, result.error_message, f"Topic {result.name} {verb}{_size(result)}."
    )


def _size(result: CreatableTopicResult) -> str:
    """Partitions and replicas of a new topic. Who may not see its configs is not told, as by Kafka's controllers."""
    if result.topic_config_error_code is not ErrorCode.NONE:
        return " (its size is told to those who have DESCRIBE_CONFIGS on it)"
    return f": partitions {result.num_partitions}, replication factor {result.replication_factor}"
