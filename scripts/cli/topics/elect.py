"""`quorate elect`: electing leaders now, as kafka-leader-election does it."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal

import typer

from quorate.controller.api.answers.plan_models import PlannedChange
from quorate.controller.client.client import ControllerClient
from quorate.controller.protocol import (
    ElectionPartitionResult,
    ElectionPartitions,
    ElectionTopicResult,
    ElectLeadersRequest,
    ElectLeadersResponse,
)
from quorate.metadata_log.errors import ApiError, ErrorCode
from quorate.metadata_log.limits import RECORDS_PER_OPERATION_MAX
from quorate.scripts.cli.plans.plan_files import write_plan
from quorate.scripts.cli.topics.json_files import ElectionFile, read_json
from quorate.scripts.cli.topics.missing_topics import asked_about
from quorate.scripts.cli.topics.reassignment_steps import NotNow
from quorate.scripts.terminal.arguments import AsJson, PlanTo, Yes, confirm, sendable
from quorate.scripts.terminal.asking import ask
from quorate.scripts.terminal.bulk import ItemOutcome, only, report
from quorate.scripts.terminal.completing.kinds import NameKind, completed_by
from quorate.scripts.terminal.connecting import Controllers, SecretFile
from quorate.scripts.terminal.output import counted
from quorate.scripts.terminal.paging import all_partitions


class ElectionType(StrEnum):
    """A kind of election, by which the leader is chosen."""

    PREFERRED = "preferred"
    UNCLEAN = "unclean"


def elect(
    election_type: Annotated[
        ElectionType,
        typer.Option(
            "--type",
            help="preferred: the first replica, if it is in the ISR. unclean: where there is no leader, any replica "
            "that lives; what it lacks is lost.",
        ),
    ],
    topic: Annotated[
        str | None,
        typer.Option("--topic", metavar="NAME", help="With --partition.", autocompletion=completed_by(NameKind.TOPICS)),
    ] = None,
    partition: Annotated[
        list[int] | None,
        typer.Option("--partition", min=0, max=2**31 - 1, metavar="N", help="Of --topic; may be repeated."),
    ] = None,
    path: Annotated[
        Path | None,
        typer.Option("--path", metavar="FILE", help='{"partitions":[{"topic":"orders","partition":0}]}; - is stdin.'),
    ] = None,
    all_: Annotated[bool, typer.Option("--all", help="All partitions that need one.")] = False,
    plan: PlanTo = None,
    yes: Yes = False,
    as_json: AsJson = False,
    controllers: Controllers = None,
    secret_file: SecretFile = None,
) -> None:
    """Elect the preferred leaders, or, where data may be lost, unclean ones. Unclean elections are asked about.

    Example: quorate elect --type preferred --topic orders --partition 0
    """
    wanted = _wanted(topic, partition, path, is_all=all_)
    kind: Literal["PREFERRED", "UNCLEAN"] = "UNCLEAN" if election_type is ElectionType.UNCLEAN else "PREFERRED"
    if plan is not None:
        named = ask(controllers, secret_file, lambda client: _needing(client, kind)) if wanted is None else wanted
        change = PlannedChange(elect_leaders=ElectLeadersRequest(election_type=kind, topic_partitions=named))
        if_none = "No partition needs an election."
        write_plan(plan, "elect", [change] if named else [], controllers, secret_file, if_none=if_none)
        return
    if election_type is ElectionType.UNCLEAN:
        what = "all partitions without a leader" if wanted is None else counted(_count(wanted), "partition")
        confirm(f"elect leaders that may lack records for {what}", yes=yes)
    request = ElectLeadersRequest(election_type=kind, topic_partitions=wanted)
    reply = ask(controllers, secret_file, lambda client: _elect(client, request), about=_only(wanted))
    results = reply.replica_election_results
    report(reply, [_outcome(one.topic, result) for one in results for result in one.partition_results], as_json=as_json)
    if not results and not as_json:
        sys.stdout.write("No partition needs an election.\n")


def _wanted(
    topic: str | None, partitions: list[int] | None, path: Path | None, *, is_all: bool
) -> list[ElectionPartitions] | None:
    """The partitions that were named; None = all."""
    if (topic is not None) + (path is not None) + is_all != 1 or (topic is None) != (not partitions):
        raise typer.BadParameter("say which partitions: --topic with --partition, or --path, or --all")
    if topic is not None:
        return [ElectionPartitions(topic=sendable(topic), partitions=list(dict.fromkeys(partitions or ())))]
    if path is None:
        return None
    by_topic: dict[str, list[int]] = {}
    for one in read_json(path, ElectionFile).partitions:
        by_topic.setdefault(one.topic, []).append(one.partition)
    return [ElectionPartitions(topic=name, partitions=numbers) for name, numbers in by_topic.items()]


async def _needing(client: ControllerClient, kind: Literal["PREFERRED", "UNCLEAN"]) -> list[ElectionPartitions]:
    """The partitions that need an election now: a plan names what it is about.

    Raises:
        NotNow: there are too many for one plan.
    """
    condition = "not-preferred" if kind == "PREFERRED" else "offline"
    found = await all_partitions(client, {"conditions": condition}, RECORDS_PER_OPERATION_MAX)
    if found.matching > RECORDS_PER_OPERATION_MAX:
        raise NotNow(
            f"{found.matching} partitions need an election: {RECORDS_PER_OPERATION_MAX} in one plan is the most"
        )
    return [
        ElectionPartitions(topic=topic.name, partitions=[one.partition_index for one in topic.partitions])
        for topic in found.topics
        if topic.name is not None
    ]


def _only(wanted: list[ElectionPartitions] | None) -> str | None:
    return only([f"{one.topic}-{number}" for one in wanted or () for number in one.partitions])


def _count(wanted: list[ElectionPartitions]) -> int:
    return sum(len(topic.partitions) for topic in wanted)


async def _elect(client: ControllerClient, request: ElectLeadersRequest) -> ElectLeadersResponse:
    """The outcomes. That a single partition needs no election is one too, and no refusal of the request."""
    try:
        topics = [one.topic for one in request.topic_partitions or ()]
        return await asked_about(client, topics, lambda asked: asked.elect_leaders(request))
    except ApiError as error:
        if error.code is not ErrorCode.ELECTION_NOT_NEEDED or not request.topic_partitions:
            raise
        (one,) = request.topic_partitions
        result = ElectionPartitionResult(
            partition_id=one.partitions[0], error_code=error.code, error_message=error.message
        )
        return ElectLeadersResponse(
            replica_election_results=[ElectionTopicResult(topic=one.topic, partition_results=[result])]
        )


def _outcome(topic: str, result: ElectionPartitionResult) -> ItemOutcome:
    name = f"{topic}-{result.partition_id}"
    if result.error_code is ErrorCode.ELECTION_NOT_NEEDED:
        return ItemOutcome(name, ErrorCode.NONE, None, f"{name}: no election is needed.")
    return ItemOutcome(name, result.error_code, result.error_message, f"{name}: a leader was elected.")
