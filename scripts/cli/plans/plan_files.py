"""Files of plans: written by `--plan`, read by `quorate apply`. For their owner alone: configs may be secrets."""

from __future__ import annotations

import os
import shlex
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import typer
from pydantic import ValidationError

from quorate.controller.api.answers.plan_models import PLAN_FORMAT, PLAN_STEPS_MAX, ChangePlan, PlannedChange, PlanStep
from quorate.controller.client.client import ControllerClient
from quorate.controller.protocol.problems import problem_of
from quorate.metadata_log.errors import QuorateError
from quorate.metadata_log.new_files import open_new
from quorate.metadata_log.regular_files import reading
from quorate.scripts.terminal.asking import ask
from quorate.scripts.terminal.output import reader_may_leave

#: 10,000 partitions with 64 replicas each, before and after, fit five times.
PLAN_BYTES_MAX: Final = 64 * 1024 * 1024


class PlanTooLarge(QuorateError):
    """A plan that nobody could apply, as it would be refused where it is read."""


def write_plan(
    file: Path,
    made_by: str,
    changes: Sequence[PlannedChange],
    controllers: str | None,
    secret_file: Path | None,
    *,
    waits: bool = False,
    if_none: str = "",
    as_json: bool = False,
) -> None:
    """Write down changes instead of making them, with what they go by, and show them. None: say so, and no more.

    Args:
        made_by: the command, without its arguments.
        waits: each change begins when the moves of the one before it are done.
        if_none: a sentence on how it is, where there may be no changes.
        as_json: standard output is for a document, which the caller writes.

    Raises:
        typer.BadParameter: the file is there, or cannot be written. PlanTooLarge: the plan is. As ``ask``.
    """
    if not changes:
        sys.stderr.write(f"quorate: {if_none} There is nothing to plan, and {file} was not written.\n")
        return
    refuse_existing(file)
    if len(changes) > PLAN_STEPS_MAX:
        raise PlanTooLarge(
            f"the plan would have {len(changes):,} steps: {PLAN_STEPS_MAX:,} is the most; moves need fewer with more "
            "of them --at-once"
        )
    plan = ask(controllers, secret_file, lambda client: _planned(client, made_by, changes, waits=waits))
    save_plan(file, plan, as_json=as_json)


async def _planned(
    client: ControllerClient, made_by: str, changes: Sequence[PlannedChange], *, waits: bool
) -> ChangePlan:
    replies = [await client.answers.facts(change) for change in changes]
    steps = [
        PlanStep(change=change, facts=reply.facts, waits=waits) for change, reply in zip(changes, replies, strict=True)
    ]
    return ChangePlan(
        format=PLAN_FORMAT,
        version=1,
        cluster_id=replies[0].cluster_id,
        state_offset=replies[-1].state_offset,
        made_ms=int(time.time() * 1000),
        made_by=made_by,
        steps=steps,
    )


def refuse_existing(file: Path) -> None:
    """Refuse a file that is there already: what is in it may be wanted.

    Raises:
        typer.BadParameter: it is.
    """
    if os.path.lexists(file):
        raise typer.BadParameter(f"{file} is there already: a plan is written to a new file", param_hint="--plan")


def save_plan(file: Path, plan: ChangePlan, *, as_json: bool = False) -> None:
    """Write a plan, whole or not at all, and show it: ``as_json`` on standard error.

    Raises:
        typer.BadParameter: it cannot be written. PlanTooLarge: no command would read it.
    """
    from quorate.scripts.cli.plans.wording import plan_lines

    data = plan.model_dump_json(exclude_unset=True, indent=1).encode() + b"\n"
    if len(data) > PLAN_BYTES_MAX:
        raise PlanTooLarge(f"the plan would have {len(data):,} bytes: {PLAN_BYTES_MAX:,} is the most")
    beside = file.with_name(f".{file.name}.new")
    try:
        with open_new(beside) as written:
            written.write(data)
        os.link(beside, file)
    except OSError as error:
        problem = error.strerror or str(error)
        raise typer.BadParameter(f"{file} cannot be written: {problem}", param_hint="--plan") from None
    finally:
        beside.unlink(missing_ok=True)
    shown = sys.stderr if as_json else sys.stdout
    with reader_may_leave():
        shown.writelines(f"{line}\n" for line in plan_lines(plan, "the file has all"))
        shown.write(f"Nothing was changed. The plan is in {file}: quorate apply {shlex.quote(str(file))}\n")


def read_plan(path: Path) -> ChangePlan:
    """The plan in a file; in standard input where it is called `-`.

    Raises:
        typer.BadParameter: it cannot be read, is too large, or is no plan.
    """
    try:
        if str(path) == "-":
            data = sys.stdin.buffer.read(PLAN_BYTES_MAX + 1)
        else:
            with reading(str(path)) as file:
                data = file.read(PLAN_BYTES_MAX + 1)
    except OSError as error:
        raise typer.BadParameter(f"{path} cannot be read: {error.strerror or error}", param_hint="FILE") from None
    return parse_plan(path, data)


def parse_plan(path: Path, data: bytes) -> ChangePlan:
    """The plan that the bytes of a file hold; raises as ``read_plan``."""
    if len(data) > PLAN_BYTES_MAX:
        raise typer.BadParameter(f"{path} has over {PLAN_BYTES_MAX} bytes: that is the most", param_hint="FILE")
    try:
        return ChangePlan.model_validate_json(data)
    except ValidationError as error:
        problem = problem_of(error, shows_value=False)
    raise typer.BadParameter(f"{path} is no plan: {problem}", param_hint="FILE")
