"""`quorate reassign`: moving partitions to other brokers, as kafka-reassign-partitions does it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer
from pydantic import BaseModel, ConfigDict

from quorate.controller.api.answers.plan_models import PlannedChange
from quorate.controller.client.client import ControllerClient
from quorate.controller.protocol import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    ReassignableTopicResult,
)
from quorate.scripts.cli.moves.waves import reassignment_request
from quorate.scripts.cli.plans.plan_files import write_plan
from quorate.scripts.cli.topics.json_files import ReassignmentFile, TopicsFile, read_json
from quorate.scripts.cli.topics.partition_rows import ids_text
from quorate.scripts.cli.topics.reassignment_steps import (
    MovedPartitions,
    check_none_is_open,
    current_assignment,
    propose,
    verify_moves,
    watch_moves,
)
from quorate.scripts.terminal import exit_codes
from quorate.scripts.terminal.arguments import AsJson, Patterns, PlanTo, Yes, broker_ids, confirm, patterns_text
from quorate.scripts.terminal.asking import ask
from quorate.scripts.terminal.bulk import ItemOutcome, exit_by, only, report
from quorate.scripts.terminal.connecting import AtMoment, Controllers, FromPath, SecretFile
from quorate.scripts.terminal.output import counted, reader_may_leave
from quorate.scripts.terminal.programs.documents import as_document
from quorate.scripts.terminal.tables import columns

app = typer.Typer(help="Move partitions to other brokers: plan, apply, watch, verify, cancel.", no_args_is_help=True)

PlanFile = Annotated[
    Path,
    typer.Argument(
        metavar="FILE",
        help='{"version":1,"partitions":[{"topic":"orders","partition":0,"replicas":[11,12]}]}; - is standard input.',
        show_default=False,
    ),
]


Wait = Annotated[bool, typer.Option("--wait", help="Until all of them are done; Ctrl-C ends the waiting only.")]


class ReassignmentProposal(BaseModel):
    """A proposal in the output for programs: ``proposed`` is what `apply` takes."""

    model_config = ConfigDict(frozen=True)

    current: ReassignmentFile
    proposed: ReassignmentFile


@app.command()
def plan(
    brokers: Annotated[
        str, typer.Option("--brokers", metavar="ID,ID-ID,...", help="Onto these brokers.", show_default=False)
    ],
    topics: Patterns = None,
    topics_file: Annotated[
        Path | None,
        typer.Option("--topics-file", metavar="FILE", help='{"version":1,"topics":[{"topic":"orders"}]}'),
    ] = None,
    ignore_racks: Annotated[bool, typer.Option("--ignore-racks", help="Spread as if there were no racks.")] = False,
    out: Annotated[Path | None, typer.Option("--out", metavar="FILE", help="Write the proposal there.")] = None,
    as_json: AsJson = False,
    controllers: Controllers = None,
    secret_file: SecretFile = None,
) -> None:
    """Propose how topics are spread over brokers, rack by rack. Nothing is changed; the same state gives the same plan.

    Example: quorate reassign plan 'orders*' --brokers 11-14 --out plan.json && quorate reassign apply plan.json --wait
    """
    if (topics is None) == (topics_file is None):
        raise typer.BadParameter("say which topics: names, or --topics-file")
    if topics_file is not None:
        topics = [one.topic for one in read_json(topics_file, TopicsFile).topics]
    onto = broker_ids(brokers)
    names = patterns_text(topics)
    current, proposed = ask(
        controllers, secret_file, lambda client: propose(client, names, onto, ignore_racks=ignore_racks)
    )
    text = proposed.model_dump_json()
    if out is not None:
        try:
            out.write_text(text + "\n", encoding="utf-8")
        except OSError as error:
            raise typer.BadParameter(f"{out} cannot be written: {error.strerror or error}") from None
    with reader_may_leave():
        if as_json:
            sys.stdout.write(as_document(ReassignmentProposal(current=current, proposed=proposed)) + "\n")
        else:
            sys.stdout.write(f"Current partition replica assignment\n{current.model_dump_json()}\n\n")
            sys.stdout.write(f"Proposed partition reassignment configuration\n{text}\n")


class Applied(BaseModel):
    """The moves that were asked for and the way back, in the output for programs."""

    model_config = ConfigDict(frozen=True)

    #: As `apply` takes it.
    rollback: ReassignmentFile
    #: Null where it is not known whether it was done.
    responses: list[ReassignableTopicResult] | None
    #: What came of it; null without --wait, and where the waiting was ended.
    moved: MovedPartitions | None


@app.command()
def apply(
    file: PlanFile,
    additional: Annotated[bool, typer.Option("--additional", help="Also while other reassignments are open.")] = False,
    wait: Wait = False,
    plan_to: PlanTo = None,
    as_json: AsJson = False,
    controllers: Controllers = None,
    secret_file: SecretFile = None,
) -> None:
    """Start the moves of a plan. What is needed to go back is shown first.

    Example: quorate reassign apply plan.json --wait
    """
    wanted = read_json(file, ReassignmentFile)

    async def look(client: ControllerClient) -> ReassignmentFile:
        if not additional:
            await check_none_is_open(client)
        return await current_assignment(client, wanted)

    request = reassignment_request({(one.topic, one.partition): one.replicas for one in wanted.partitions})
    if plan_to is not None:
        ask(controllers, secret_file, look)
        change = PlannedChange(alter_partition_reassignments=request)
        write_plan(plan_to, "reassign apply", [change], controllers, secret_file)
        return
    rollback = ask(controllers, secret_file, look)
    if not as_json:
        sys.stdout.write(f"Current partition replica assignment\n{rollback.model_dump_json()}\n")
        sys.stdout.write("Save this: `quorate reassign apply` of it goes back.\n")
        sys.stdout.flush()
    applied = Applied(rollback=rollback, responses=None, moved=None)
    try:
        reply = ask(controllers, secret_file, lambda c: c.alter_partition_reassignments(request), about=_only(request))
        applied = applied.model_copy(update={"responses": reply.responses})
        outcomes = _outcomes(reply.responses, wanted)
        if not as_json:
            report(reply, outcomes, as_json=False)
        if wait and all(outcome.is_done for outcome in outcomes):
            moved = _watched(file, wanted, controllers, secret_file)
            applied = applied.model_copy(update={"moved": moved})
    finally:
        # Also when the outcome is unknown: the way back is needed most then.
        if as_json:
            sys.stdout.write(as_document(applied) + "\n")
    exit_by(outcomes)
    if applied.moved is not None:
        _end(applied.moved, is_silent=as_json)


def _watched(
    file: Path, wanted: ReassignmentFile, controllers: str | None, secret_file: Path | None
) -> MovedPartitions:
    try:
        return ask(controllers, secret_file, lambda client: watch_moves(client, wanted), tells=True)
    except KeyboardInterrupt:
        sys.stderr.write(
            f"quorate: the moves go on by themselves; to see how far they are: quorate reassign verify {file}; "
            f"to take back what is open: quorate reassign cancel {file}\n"
        )
        raise


def _only(request: AlterPartitionReassignmentsRequest) -> str | None:
    return only([f"{topic.name}-{one.partition_index}" for topic in request.topics for one in topic.partitions])


def _outcomes(responses: list[ReassignableTopicResult], wanted: ReassignmentFile | None) -> list[ItemOutcome]:
    targets = {} if wanted is None else {(one.topic, one.partition): one.replicas for one in wanted.partitions}
    outcomes = []
    for topic in responses:
        for one in topic.partitions:
            subject = f"{topic.name}-{one.partition_index}"
            target = targets.get((topic.name, one.partition_index))
            done = f"{subject}: cancelled." if target is None else f"{subject}: moves to {ids_text(target)}."
            outcomes.append(ItemOutcome(subject, one.error_code, one.error_message, done))
    return outcomes


@app.command("list")
def list_(
    as_json: AsJson = False,
    from_path: FromPath = None,
    at: AtMoment = None,
    controllers: Controllers = None,
    secret_file: SecretFile = None,
) -> None:
    """List the reassignments that are open.

    Example: quorate reassign list
    """
    reply = ask(
        controllers, secret_file, lambda c: c.list_partition_reassignments(is_linearizable=True), path=from_path, at=at
    )
    with reader_may_leave():
        if as_json:
            sys.stdout.write(as_document(reply) + "\n")
        elif not reply.topics:
            sys.stdout.write("No reassignment is open.\n")
        else:
            rows = [("TOPIC", "PARTITION", "REPLICAS", "ADDING", "REMOVING")]
            rows += (
                (topic.name, str(one.partition_index), ids_text(one.replicas), *_moving(one))
                for topic in reply.topics
                for one in topic.partitions
            )
            sys.stdout.writelines(f"{line}\n" for line in columns(rows))


def _moving(one: OngoingPartitionReassignment) -> tuple[str, str]:
    return ids_text(one.adding_replicas), ids_text(one.removing_replicas)


@app.command()
def verify(
    file: PlanFile, as_json: AsJson = False, controllers: Controllers = None, secret_file: SecretFile = None
) -> None:
    """Say of every partition of a plan whether it is where it should be. Exit code 0: all of them are; 1: not all.

    Example: quorate reassign verify plan.json
    """
    wanted = read_json(file, ReassignmentFile)
    moved = ask(controllers, secret_file, lambda client: verify_moves(client, wanted))
    if as_json:
        sys.stdout.write(as_document(moved) + "\n")
    _end(moved, is_silent=as_json)


def _end(moved: MovedPartitions, *, is_silent: bool) -> None:
    with reader_may_leave():
        if not is_silent:
            sys.stdout.writelines(f"{one.sentence}\n" for one in moved.partitions)
    if not moved.are_complete:
        raise typer.Exit(exit_codes.REFUSED)


@app.command()
def cancel(
    file: Annotated[Path | None, typer.Argument(metavar="FILE", help="Those of a plan.", show_default=False)] = None,
    all_: Annotated[bool, typer.Option("--all", help="All that are open.")] = False,
    plan_to: PlanTo = None,
    yes: Yes = False,
    as_json: AsJson = False,
    controllers: Controllers = None,
    secret_file: SecretFile = None,
) -> None:
    """Cancel open reassignments: what was being added is taken away again, and what was copied with it.

    Example: quorate reassign cancel plan.json
    """
    if (file is None) != all_:
        raise typer.BadParameter("say which reassignments: a FILE, or --all")
    named = None
    if file is not None:
        named = {(one.topic, one.partition) for one in read_json(file, ReassignmentFile).partitions}
    listed = ask(controllers, secret_file, lambda c: c.list_partition_reassignments(is_linearizable=True))
    targets = _open(listed, named)
    if not targets:
        empty = AlterPartitionReassignmentsResponse(responses=[])
        sys.stdout.write(f"{as_document(empty) if as_json else 'None of these reassignments is open.'}\n")
        return
    request = reassignment_request(dict.fromkeys(targets))
    if plan_to is not None:
        change = PlannedChange(alter_partition_reassignments=request)
        write_plan(plan_to, "reassign cancel", [change], controllers, secret_file)
        return
    confirm(f"cancel {counted(len(targets), 'reassignment')}", yes=yes)
    reply = ask(controllers, secret_file, lambda c: c.alter_partition_reassignments(request), about=_only(request))
    report(reply, _outcomes(reply.responses, None), as_json=as_json)


def _open(listed: ListPartitionReassignmentsResponse, named: set[tuple[str, int]] | None) -> list[tuple[str, int]]:
    found = [(topic.name, one.partition_index) for topic in listed.topics for one in topic.partitions]
    return [one for one in found if named is None or one in named]
