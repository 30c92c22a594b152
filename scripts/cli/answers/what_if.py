"""`quorate what-if`: the status before and after events that do not happen."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import typer

from quorate.controller.api.answers.answer_models import WhatIfReply
from quorate.controller.api.answers.status_models import StatusReply
from quorate.scripts.cli.answers.step_grammar import parse_steps
from quorate.scripts.cli.status_screen import doubtful_elections
from quorate.scripts.terminal.arguments import AsJson
from quorate.scripts.terminal.asking import ask
from quorate.scripts.terminal.connecting import AtMoment, Controllers, FromPath, SecretFile
from quorate.scripts.terminal.output import show
from quorate.scripts.terminal.tables import columns


def what_if(
    steps: Annotated[
        list[str], typer.Argument(metavar="STEPS", help="Events, with commas between them.", show_default=False)
    ],
    as_json: AsJson = False,
    from_path: FromPath = None,
    at: AtMoment = None,
    controllers: Controllers = None,
    secret_file: SecretFile = None,
) -> None:
    """Show the status of a cluster before and after events that do not happen: nothing is changed.

    Events: stop broker 12 | crash broker 12 13 | start broker 11-13 | the same with rack NAME | lose directory ID |
    apply FILE | catch up. Brokers that are stopped leave in order, those that crash without a word. One that is
    started is not in sync before `catch up`, and a reassignment that is applied is not over before it. FILE is one of
    `reassign plan`, or a plan of moves that --plan has written, all of whose steps are begun at once.
    Exit code 0: it can happen, whatever comes of it; 1: an event is refused.

    Example: quorate what-if stop broker 12, crash rack b, start broker 12, catch up
    """
    wanted = parse_steps(steps)
    reply = ask(controllers, secret_file, lambda client: client.answers.what_if(wanted), path=from_path, at=at)
    show(reply, _lines(reply), as_json=as_json)


def _lines(reply: WhatIfReply) -> Iterator[str]:
    before, after = reply.before, reply.after
    for against in reply.quorum_reasons:
        yield f"Not now: {against.message}. With an active controller:"
    rows = [("", "BEFORE", "AFTER"), *_numbers(before, after), *_brokers(before, after)]
    yield from columns(rows)
    yield from doubtful_elections(after.elections)
    for reason in after.reasons:
        yield f"- {reason.message}"


def _numbers(before: StatusReply, after: StatusReply) -> Iterator[tuple[str, str, str]]:
    yield "verdict", before.verdict, after.verdict
    for name in ("offline", "under_min_isr", "under_replicated", "reassigning", "without_preferred_leader"):
        then, now = (str(getattr(status.partitions, name)) for status in (before, after))
        yield name.replace("_", "-"), then, now


def _brokers(before: StatusReply, after: StatusReply) -> Iterator[tuple[str, str, str]]:
    """Those that are not what they were."""
    were = {broker.id: broker.state for broker in before.brokers}
    for broker in after.brokers:
        if broker.state != were[broker.id]:
            yield f"broker {broker.id}", were[broker.id], broker.state
