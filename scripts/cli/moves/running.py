"""A plan is shown, agreed to and carried out: the same for every purpose that partitions move for."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Final

import typer
from pydantic import BaseModel, ConfigDict

from quorate.controller.api.answers.plan_models import PlannedChange
from quorate.controller.client.client import ControllerClient
from quorate.metadata_log.limits import RECORDS_PER_OPERATION_MAX
from quorate.scripts.cli.moves.plans import MovePlan, PartitionName, plan_lines
from quorate.scripts.cli.moves.waves import AT_ONCE_DEFAULT, MoveRun, reassignment_request
from quorate.scripts.cli.plans.plan_files import write_plan
from quorate.scripts.terminal import exit_codes
from quorate.scripts.terminal.arguments import AsJson, DryRun, PlanTo, Yes, broker_ids, confirm
from quorate.scripts.terminal.asking import ask
from quorate.scripts.terminal.connecting import AtMoment, Controllers, FromPath, SecretFile
from quorate.scripts.terminal.harmless import shown_name
from quorate.scripts.terminal.output import counted, reader_may_leave, show

#: Plans that are carried out one after the other: what was placed meanwhile moves too, but not for ever.
_PLANS_MAX: Final = 3

AtOnce = Annotated[
    int,
    typer.Option(
        "--at-once",
        min=1,
        max=RECORDS_PER_OPERATION_MAX,
        metavar="N",
        help="Reassignments that may be open at once, those of others included.",
    ),
]
IncludeFenced = Annotated[
    bool,
    typer.Option("--include-fenced", help="Give replicas to brokers that are down, too: such moves wait."),
]
Exclude = Annotated[
    str | None, typer.Option("--exclude", metavar="ID,ID-ID,...", help="Give nothing to these brokers.")
]


@dataclass(frozen=True)
class Purpose:
    """The reason for which partitions move.

    Attributes:
        plan: makes the plan of the present state. order: it as an order, ``drain broker 12``. done: the sentence where
            nothing is left to do. command: by which it goes on after it was ended early.
    """

    plan: Callable[[ControllerClient], Awaitable[MovePlan]]
    order: str
    done: str
    command: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveOptions:
    """The options that all purposes share.

    Raises:
        typer.BadParameter: what is excluded is no list of ids.
    """

    at_once: AtOnce = AT_ONCE_DEFAULT
    include_fenced: IncludeFenced = False
    exclude: Exclude = None
    dry_run: DryRun = False
    #: Where the plan is written, instead of being carried out; None: it is.
    plan_to: PlanTo = None
    yes: Yes = False
    as_json: AsJson = False
    from_path: FromPath = None
    at: AtMoment = None
    controllers: Controllers = None
    secret_file: SecretFile = None
    #: The brokers of ``exclude``.
    excluded: frozenset[int] = field(init=False)

    def __post_init__(self) -> None:
        ids = () if self.exclude is None else broker_ids(self.exclude, "--exclude")
        object.__setattr__(self, "excluded", frozenset(ids))


class RefusedMove(BaseModel):
    """A move that the controller refused."""

    model_config = ConfigDict(frozen=True)

    #: As `topic-number`.
    partition: str
    message: str


class MoveReport(BaseModel):
    """A plan, and what came of it, in the output for programs."""

    model_config = ConfigDict(frozen=True)

    plan: MovePlan
    #: Whether nothing is left to do; null with --dry-run.
    is_done: bool | None = None
    refused: list[RefusedMove] = []
    #: Partitions that are not where they should be.
    left: int = 0

    @property
    def exit_code(self) -> int:
        """That of the command."""
        return exit_codes.REFUSED if self.is_done is False else exit_codes.DONE


def move(purpose: Purpose, options: MoveOptions) -> MoveReport:
    """Plan, show, ask, carry out, and look again until nothing is left; what is shown is all but the end.

    Raises:
        typer.BadParameter: a state that cannot be changed is named without --dry-run. Failed: the user says no.
        KeyboardInterrupt: the user has had enough; how to go on has been said.
    """
    if (options.from_path is not None or options.at is not None) and not options.dry_run:
        raise typer.BadParameter("what was, and what is in files, cannot be changed: say --dry-run")
    plan = ask(options.controllers, options.secret_file, purpose.plan, path=options.from_path, at=options.at)
    if not options.as_json and (plan.moves or plan.in_motion):
        with reader_may_leave():
            sys.stdout.writelines(f"{line}\n" for line in plan_lines(plan))
    if options.plan_to is not None:
        _write_down(options.plan_to, plan, purpose, options)
    if options.dry_run or options.plan_to is not None:
        return MoveReport(plan=plan)
    if plan.moves:
        confirm(f"{purpose.order}: {counted(len(plan.moves), 'partition')} to change", yes=options.yes)
    return _carried_out(plan, purpose, options)


def _write_down(file: Path, plan: MovePlan, purpose: Purpose, options: MoveOptions) -> None:
    """Write the moves as a plan in waves: `--at-once` of them each, one after the other."""
    going = f"{counted(len(plan.in_motion), 'partition')} on the way already, and no other has to move."
    waves = (plan.moves[first : first + options.at_once] for first in range(0, len(plan.moves), options.at_once))
    changes = [
        PlannedChange(alter_partition_reassignments=reassignment_request({move.name: move.after for move in wave}))
        for wave in waves
    ]
    made_by = " ".join(purpose.command.split()[1:3])
    if_none = going if plan.in_motion else purpose.done
    asked = options.controllers, options.secret_file
    write_plan(file, made_by, changes, *asked, waits=True, if_none=if_none, as_json=options.as_json)


def end(report: MoveReport, purpose: Purpose, options: MoveOptions) -> None:
    """Say what came of it, and end the command.

    Raises:
        typer.Exit: always.
    """
    if options.dry_run:
        lines = [] if report.plan.moves or report.plan.in_motion else [purpose.done]
    else:
        lines = [purpose.done] if report.is_done else []
    show(report, lines, as_json=options.as_json)
    tell_failures(report)
    raise typer.Exit(report.exit_code)


def tell_failures(report: MoveReport) -> None:
    """Name on standard error what was refused, and how much is left."""
    for one in report.refused:
        sys.stderr.write(f"quorate: {shown_name(f'{one.partition}: {one.message}')}\n")
    if report.left:
        sys.stderr.write(f"quorate: {counted(report.left, 'partition')} still to move\n")


def _carried_out(first: MovePlan, purpose: Purpose, options: MoveOptions) -> MoveReport:
    plan, refused = first, list[RefusedMove]()
    for _ in range(_PLANS_MAX):
        if not plan.moves and not plan.in_motion:
            break
        run = _run(plan, purpose, options)
        refused = [RefusedMove(partition=f"{name}-{at}", message=why) for (name, at), why in run.refused.items()]
        plan = ask(options.controllers, options.secret_file, purpose.plan)
        if _left(plan) <= set(run.refused):
            break
        more = counted(len(_left(plan)), "partition")
        sys.stderr.write(f"quorate: {more} more to change or to wait for by now\n")
    left = len(_left(plan))
    return MoveReport(plan=first, is_done=not left, refused=refused if left else [], left=left)


def _left(plan: MovePlan) -> set[PartitionName]:
    """The partitions that are to move, and those that are on their way: until these arrive they are where they were."""
    return {move.name for move in plan.moves} | _in_motion(plan)


def _in_motion(plan: MovePlan) -> set[PartitionName]:
    return {(topic, int(number)) for topic, _, number in (one.rpartition("-") for one in plan.in_motion)}


def _run(plan: MovePlan, purpose: Purpose, options: MoveOptions) -> MoveRun:
    moves = {move.name: move.after for move in plan.moves}
    run = MoveRun(moves, awaited=_in_motion(plan) - moves.keys(), at_once=options.at_once)
    try:
        ask(options.controllers, options.secret_file, run.carry_out, tells=True)
    except KeyboardInterrupt:
        sys.stderr.write(
            f"quorate: {run.left_words}; to go on: {purpose.command}; "
            "to take back what is open: quorate reassign cancel --all\n"
        )
        raise
    return run
