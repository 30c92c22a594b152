"""`quorate topics set-replication-factor`: a topic's partitions get more replicas, or fewer."""

from __future__ import annotations

from typing import Annotated

import typer

from quorate.controller.client.client import ControllerClient
from quorate.metadata_log.limits import PARTITION_SLOTS_MAX
from quorate.scripts.cli.moves.plans import MovePlan
from quorate.scripts.cli.moves.running import MoveOptions, Purpose, end, move
from quorate.scripts.cli.topics.reassignment_steps import NotNow
from quorate.scripts.terminal.arguments import sendable
from quorate.scripts.terminal.completing.kinds import NameKind, completed_by


def _name(text: str) -> str:
    if not text or {"*", ","} & set(text):
        raise typer.BadParameter(f"{text[:80]!r} is no name of one topic")
    return sendable(text)


TopicName = Annotated[
    str,
    typer.Argument(
        metavar="TOPIC",
        help="Its name.",
        callback=_name,
        autocompletion=completed_by(NameKind.TOPICS),
        show_default=False,
    ),
]


def set_replication_factor(
    topic: TopicName,
    factor: Annotated[
        int,
        typer.Argument(metavar="N", min=1, max=PARTITION_SLOTS_MAX, help="Replicas each.", show_default=False),
    ],
    options: MoveOptions,
) -> None:
    """Give every partition of a topic so many replicas, more than it has or fewer. The plan is shown first.

    New replicas come to brokers that are up, in racks that have none yet, where there are fewest. Those go that are out
    of sync, then those on brokers that are down, then one of two in a rack, then where most are; the first replica,
    which is the preferred leader, only for the first two reasons. What is there already does not move.
    Ctrl-C ends the watching, and the same command goes on. Exit code 0: it is so; 1: something is left.

    Example: quorate topics set-replication-factor orders 3
    """

    async def plan(client: ControllerClient) -> MovePlan:
        from quorate.controller.planning.widths import plan_widths
        from quorate.scripts.cli.moves.layouts import MoveRules, read_layout
        from quorate.scripts.cli.moves.making import made_plan

        rules = MoveRules(excluded=options.excluded, include_fenced=options.include_fenced)
        named = await read_layout(client, [{"names": topic}], rules)
        if not named.names:
            raise NotNow(f"there is no topic {topic}")
        return made_plan(named, lambda layout: plan_widths(layout, factor, named.out_of_sync))

    purpose = Purpose(
        plan,
        order=f"give {topic} {factor} replicas",
        done=f"All partitions of {topic} have {factor} replica{'' if factor == 1 else 's'}.",
        command=f"quorate topics set-replication-factor {topic} {factor}",
    )
    end(move(purpose, options), purpose, options)
