"""`quorate apply`: makes the changes of a plan, if nothing that they go by has changed."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import typer
from pydantic import BaseModel, ConfigDict

from quorate.controller.api.answers.plan_models import ChangePlan, PlanStep
from quorate.controller.client.client import ControllerClient
from quorate.metadata_log.errors import ApiError, ErrorCode, OutcomeUnknown
from quorate.scripts.cli.plans.plan_files import read_plan
from quorate.scripts.cli.plans.plan_ids import run_id, step_id
from quorate.scripts.cli.plans.steps import StepStanding, moves_of, outcomes_of, send_step, standing, standings
from quorate.scripts.cli.plans.taking_back import places_before, take_back
from quorate.scripts.cli.plans.wording import SHOWN_MAX, more_line, plan_lines
from quorate.scripts.cli.topics.json_files import PlannedPartition, ReassignmentFile
from quorate.scripts.cli.topics.reassignment_steps import MovedPartitions, watch_moves
from quorate.scripts.terminal.arguments import AsJson, Yes, confirm
from quorate.scripts.terminal.asking import answered, ask
from quorate.scripts.terminal.bulk import ItemOutcome, exit_by
from quorate.scripts.terminal.connecting import Controllers, SecretFile
from quorate.scripts.terminal.harmless import shown_line
from quorate.scripts.terminal.output import counted, reader_may_leave
from quorate.scripts.terminal.programs.documents import as_document
from quorate.scripts.terminal.programs.failures import Failed

_ALL_BY: Final = "--all shows all"


class IfInterrupted(StrEnum):
    """The end of moves that are on their way when somebody says Ctrl-C."""

    LEAVE = "leave"
    CANCEL = "cancel"


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplyOptions:
    """The options of commands that make the changes of a plan."""

    wait: Annotated[bool, typer.Option("--wait", help="Until all moves are done, the last ones too.")] = False
    if_interrupted: Annotated[
        IfInterrupted, typer.Option("--if-interrupted", help="What Ctrl-C does to moves on their way.")
    ] = IfInterrupted.LEAVE
    show_all: Annotated[bool, typer.Option("--all", help="Show all changes, not only the first.")] = False
    yes: Yes = False
    as_json: AsJson = False
    controllers: Controllers = None
    secret_file: SecretFile = None


class AppliedStep(BaseModel):
    """A step of a plan, and what came of it."""

    model_config = ConfigDict(frozen=True)

    #: As `quorate history` calls it; null where it was not sent.
    request_id: str | None
    operation: str
    #: ``earlier``: its moves had been asked for before; ``unknown``: nobody knows whether it was done.
    outcome: Literal["done", "refused", "earlier", "unknown"]
    #: The controller's reply; null where there is none.
    reply: dict[str, Any] | None
    #: Where the partitions are; null where nobody waited for them.
    moved: MovedPartitions | None


class AppliedSteps(BaseModel):
    """The steps of a plan that were reached, in the output for programs."""

    model_config = ConfigDict(frozen=True)

    cluster_id: str
    undoes: str | None
    steps: list[AppliedStep]


def apply(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A plan, written by --plan; - is standard input.", show_default=False)
    ],
    options: ApplyOptions,
) -> None:
    """Make the changes of a plan, if nothing that they go by has changed.

    Commands that change something write a plan with --plan FILE. It is shown, and asked about; where what it was made
    on is no longer so, that is named, and nothing is done. Moves that were asked for already are not asked for again:
    a plan that was interrupted goes on. Exit code 1: something has changed, or was refused.

    Example: quorate topics delete 'test-*' --plan cleanup.json && quorate apply cleanup.json
    """
    plan = read_plan(file)
    found = ask(options.controllers, options.secret_file, lambda client: standings(client, plan))
    refuse_changed(found)
    say_plan(plan, options)
    if any(one.kind == "ready" for one in found):
        confirm(f"make {counted(len(plan.steps), 'change')}", yes=options.yes)
    PlanRun(plan, found, options).to_its_end()


def say_plan(plan: ChangePlan, options: ApplyOptions) -> None:
    """Show a plan before anybody is asked about it."""
    sys.stderr.writelines(f"{line}\n" for line in plan_lines(plan, None if options.show_all else _ALL_BY))


def refuse_changed(found: list[StepStanding], was_done: int = 0) -> None:
    """Name what is no longer so. ``was_done``: steps before these.

    Raises:
        Failed: something is not.
    """
    changes = [change for one in found for change in one.changes]
    if changes:
        done = (
            f"{counted(was_done, 'step')} of it had been done, and nothing more was" if was_done else "nothing was done"
        )
        named = [shown_line(change) for change in changes[:SHOWN_MAX]]
        if len(changes) > SHOWN_MAX:
            named.append(f"... and {counted(len(changes) - SHOWN_MAX, 'more change')}")
        raise Failed(*named, f"that has changed since the plan was made; {done}")


class PlanRun:
    """A plan on its way, step by step."""

    def __init__(self, plan: ChangePlan, found: list[StepStanding], options: ApplyOptions) -> None:
        """``found``: how its steps stand; none has changed."""
        self._plan = plan
        self._found = found
        self._options = options
        self._whom = options.controllers, options.secret_file
        self._request_id = run_id(plan)
        #: Outcomes that are still shown.
        self._lines_left = sys.maxsize if options.show_all else SHOWN_MAX
        self._applied: list[AppliedStep] = []
        #: Moves that were asked for, or may have been; without those that were seen to be done.
        self._on_their_way: list[PlannedPartition] = []

    def to_its_end(self) -> None:
        """Make all changes, in their order. Ends the command where one is refused.

        Raises:
            Failed: one was, or a move did not arrive. As ``ask``.
        """
        self._say_if_nothing_is_left()
        try:
            last = len(self._plan.steps) - 1
            for number, (step, stands) in enumerate(zip(self._plan.steps, self._found, strict=True)):
                moves = None if stands.kind == "done" else moves_of(step)
                if moves is not None:
                    self._on_their_way += moves.partitions
                self._make(number, step, stands)
                if moves is not None and (self._options.wait or (step.waits and number < last)):
                    self._wait(moves)
        except KeyboardInterrupt:
            reached = self._applied[-1].outcome if self._applied else "earlier"
            if reached == "unknown":
                self._say_how_it_is_known()
            if self._on_their_way:
                self._end_waiting(are_known=reached in ("done", "earlier"))
            raise
        finally:
            # Also when an outcome is unknown: what was reached is needed most then.
            if self._options.as_json:
                plan = self._plan
                steps = AppliedSteps(cluster_id=plan.cluster_id, undoes=plan.undoes, steps=self._applied)
                sys.stdout.write(as_document(steps) + "\n")

    def _say_if_nothing_is_left(self) -> None:
        kinds = {stands.kind for stands in self._found}
        if kinds == {"done"}:
            sys.stderr.write("quorate: all of it is so already; nothing was done\n")
        elif "ready" not in kinds:
            sys.stderr.write("quorate: all of it was asked for already; what is not over goes on\n")

    def _make(self, number: int, step: PlanStep, stands: StepStanding) -> None:
        if stands.kind != "ready":
            self._note(step, None, "earlier")
            return
        request_id = step_id(self._plan, self._request_id, number)
        self._note(step, request_id, "unknown")
        try:
            outcomes = ask(*self._whom, lambda client: answered(self._sent(client, step, request_id)))
        except OutcomeUnknown:
            self._say_how_it_is_known()
            raise
        except ApiError as error:
            if error.code is ErrorCode.INVALID_UPDATE_VERSION:
                refuse_changed([ask(*self._whom, lambda client: _standing_now(client, step))], was_done=number)
            raise
        exit_by(outcomes)

    async def _sent(self, client: ControllerClient, step: PlanStep, request_id: str) -> list[ItemOutcome]:
        """Notes and tells what came of it, too: also where Ctrl-C is what the command then ends by."""
        try:
            reply = await send_step(client, step, request_id)
        except OutcomeUnknown:
            raise
        except ApiError:
            self._know(outcome="refused")
            raise
        outcomes = outcomes_of(step, reply)
        is_done = all(outcome.is_done for outcome in outcomes)
        self._know(outcome="done" if is_done else "refused", reply=reply.model_dump(mode="json"))
        if not self._options.as_json:
            self._show(outcomes)
            if is_done:
                sys.stderr.write(f"quorate: this was request {request_id}: quorate undo {request_id}\n")
        return outcomes

    def _say_how_it_is_known(self) -> None:
        """Of the step that was reached last, of which nobody knows whether it was done."""
        request_id = self._applied[-1].request_id
        sys.stderr.write(f"quorate: this was request {request_id}: quorate history tells whether it was made\n")

    def _show(self, outcomes: list[ItemOutcome]) -> None:
        done = [outcome.done for outcome in outcomes if outcome.is_done]
        more = len(done) - self._lines_left
        with reader_may_leave():
            sys.stdout.writelines(f"{shown_line(line)}\n" for line in done[: self._lines_left])
            if more > 0:
                sys.stdout.write(f"{more_line(more, _ALL_BY)}\n")
        self._lines_left = max(0, self._lines_left - len(done))

    def _note(self, step: PlanStep, request_id: str | None, outcome: Literal["earlier", "unknown"]) -> None:
        noted = AppliedStep(request_id=request_id, operation=step.operation, outcome=outcome, reply=None, moved=None)
        self._applied.append(noted)

    def _know(self, **more: Any) -> None:
        """More of the step that was reached last."""
        self._applied[-1] = self._applied[-1].model_copy(update=more)

    def _wait(self, moves: ReassignmentFile) -> None:
        moved = ask(*self._whom, lambda client: watch_moves(client, moves), tells=True)
        self._know(moved=moved)
        missed = [one.sentence for one in moved.partitions if one.status != "complete"]
        if missed:
            raise Failed(*missed)
        done = {(one.topic, one.partition) for one in moves.partitions}
        self._on_their_way = [one for one in self._on_their_way if (one.topic, one.partition) not in done]

    def _end_waiting(self, *, are_known: bool) -> None:
        """``are_known``: all moves on their way have been begun, for all that is known."""
        if self._options.if_interrupted is IfInterrupted.LEAVE:
            which = "the moves" if are_known else "moves that were begun"
            sys.stderr.write(f"quorate: {which} go on; the same `quorate apply` goes on with the plan, too\n")
            return
        before = {name: replicas for step in self._plan.steps for name, replicas in places_before(step).items()}
        moves = [(one.topic, one.partition) for one in self._on_their_way]
        told = ask(*self._whom, lambda client: take_back(client, moves, before))
        if len(told) > SHOWN_MAX:
            told[SHOWN_MAX:] = [f"... and {counted(len(told) - SHOWN_MAX, 'more partition')}"]
        sys.stderr.writelines(f"quorate: {shown_line(sentence)}\n" for sentence in told)


async def _standing_now(client: ControllerClient, step: PlanStep) -> StepStanding:
    return standing(step, (await client.answers.facts(step.change)).facts)
