"""`quorate brokers drain` and `decommission`: brokers are emptied, and taken away."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Collection
from dataclasses import replace
from typing import Final

import typer
from pydantic import BaseModel, ConfigDict

from quorate.controller.client.client import ControllerClient
from quorate.scripts.cli.moves.plans import MovePlan
from quorate.scripts.cli.moves.running import (
    AtOnce,
    Exclude,
    IncludeFenced,
    MoveOptions,
    MoveReport,
    Purpose,
    end,
    move,
    tell_failures,
)
from quorate.scripts.cli.moves.waves import AT_ONCE_DEFAULT
from quorate.scripts.terminal import exit_codes
from quorate.scripts.terminal.arguments import AsJson, BrokerIds, DryRun, Yes, confirm
from quorate.scripts.terminal.asking import ask
from quorate.scripts.terminal.connecting import Controllers, SecretFile
from quorate.scripts.terminal.output import show
from quorate.scripts.terminal.progress.amounts import duration
from quorate.scripts.terminal.progress.line import telling

#: Seconds between two looks at whether a broker has stopped.
_LOOK_S: Final = 0.5


def drain(
    ids: BrokerIds,
    options: MoveOptions,
) -> None:
    """Move all replicas off brokers. They stay registered; one that is not registered any more can be drained too.

    Only replicas on these brokers move, to where there are fewest, and partitions stay in as many racks as they can.
    Brokers that are fenced, shut down or are cordoned get nothing. The plan is shown first. A few partitions move at
    once; Ctrl-C ends the watching, and the same command goes on. New topics may still be placed on a drained broker
    that runs. Exit code 0: they hold nothing; 1: something is left.

    Example: quorate brokers drain 13 --dry-run
    """
    purpose = _purpose("drain", ids, options)
    end(move(purpose, options), purpose, options)


def _purpose(verb: str, brokers: Collection[int], options: MoveOptions) -> Purpose:
    ids = sorted(set(brokers))
    named = _named(ids)

    async def plan(client: ControllerClient) -> MovePlan:
        from quorate.controller.planning.draining import plan_drain
        from quorate.scripts.cli.moves.layouts import MoveRules, on_brokers, read_layout
        from quorate.scripts.cli.moves.making import made_plan

        rules = MoveRules(frozenset(ids), options.excluded, options.include_fenced)
        return made_plan(await read_layout(client, on_brokers(rules.drained), rules), plan_drain)

    return Purpose(
        plan,
        order=f"{verb} {named}",
        done=f"{named.capitalize()} {'holds' if len(ids) == 1 else 'hold'} no replica.",
        command=f"quorate brokers {verb} {' '.join(map(str, ids))}",
    )


def _named(ids: list[int]) -> str:
    return f"broker{'s' if len(ids) > 1 else ''} {', '.join(map(str, ids))}"


class Decommissioned(BaseModel):
    """The end of brokers, in the output for programs."""

    model_config = ConfigDict(frozen=True)

    drained: MoveReport
    #: Brokers that are no longer registered.
    unregistered: list[int]


def decommission(
    ids: BrokerIds,
    at_once: AtOnce = AT_ONCE_DEFAULT,
    include_fenced: IncludeFenced = False,
    exclude: Exclude = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    as_json: AsJson = False,
    controllers: Controllers = None,
    secret_file: SecretFile = None,
) -> None:
    """Take brokers away for good: drain them, wait until they are stopped, unregister them.

    Stopping a broker's process is up to you: when it holds nothing more the command says so, and waits until the broker
    is fenced. Ctrl-C ends the waiting; the same command goes on wherever it was. See also: quorate brokers drain.

    Example: quorate brokers decommission 13
    """
    options = MoveOptions(
        at_once=at_once,
        include_fenced=include_fenced,
        exclude=exclude,
        dry_run=dry_run,
        yes=yes,
        as_json=as_json,
        controllers=controllers,
        secret_file=secret_file,
    )
    purpose = _purpose("decommission", ids, options)
    report = move(purpose, options)
    if dry_run or not report.is_done:
        end(report, purpose, options)
    if not report.plan.moves:
        confirm(purpose.order, yes=yes)
    _wait_until_stopped(sorted(set(ids)), purpose, options)
    # What was placed on them until they stopped.
    late = move(purpose, replace(options, yes=True, as_json=True))
    if not late.is_done:
        tell_failures(late)
        raise typer.Exit(exit_codes.REFUSED)
    gone = _unregister(sorted(set(ids)), options)
    lines = [f"Broker {id_} is no longer registered." for id_ in gone] or ["None of them is registered."]
    show(Decommissioned(drained=report, unregistered=gone), lines, as_json=as_json)


async def _states(client: ControllerClient) -> dict[int, str]:
    return {broker.id: broker.state for broker in (await client.describe_brokers()).brokers}


async def _running(client: ControllerClient, ids: list[int]) -> list[int]:
    return [id_ for id_, state in (await _states(client)).items() if id_ in ids and state != "fenced"]


def _wait_until_stopped(ids: list[int], purpose: Purpose, options: MoveOptions) -> None:
    async def wait(client: ControllerClient) -> None:
        running, told = list(ids), list[int]()
        with telling(lambda seconds: f"waiting for {_named(running)} to be stopped, for {duration(seconds)}") as line:
            while running := await _running(client, ids):
                if running != told:
                    told = running
                    line.say(f"{_named(running)}: nothing is on it, stop it now; waiting until it is fenced")
                await asyncio.sleep(_LOOK_S)

    try:
        ask(options.controllers, options.secret_file, wait, tells=True)
    except KeyboardInterrupt:
        sys.stderr.write(f"quorate: nothing was unregistered; to go on: {purpose.command}\n")
        raise


def _unregister(ids: list[int], options: MoveOptions) -> list[int]:
    """The ids of those that were registered, and are not any more."""

    async def unregister(client: ControllerClient) -> list[int]:
        there = [id_ for id_ in ids if id_ in await _states(client)]
        for id_ in there:
            await client.unregister_broker(id_)
        return there

    return ask(options.controllers, options.secret_file, unregister)
