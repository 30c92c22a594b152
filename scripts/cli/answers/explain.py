"""`quorate explain`: what is wrong, why, and what to do about it."""

from __future__ import annotations

from itertools import chain
from typing import Annotated, Any

import typer

from quorate.controller.api.answers.explain_models import ExplainReply
from quorate.controller.client.client import ControllerClient
from quorate.scripts.cli.answers.explanation_words import explanation_lines
from quorate.scripts.cli.topics.missing_topics import asked_about
from quorate.scripts.terminal import exit_codes
from quorate.scripts.terminal.arguments import AsJson, sendable, topic_partitions, whole_number
from quorate.scripts.terminal.asking import ask
from quorate.scripts.terminal.completing.kinds import NameKind, completed_by
from quorate.scripts.terminal.connecting import AtMoment, Controllers, FromPath, SecretFile
from quorate.scripts.terminal.output import show


def explain(
    subject: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="SUBJECT",
            help="broker ID, topic NAME, partition TOPIC-NUMBER, reassignment TOPIC-NUMBER or controller ID; "
            "without it: the whole cluster.",
            autocompletion=completed_by(NameKind.SUBJECTS),
            show_default=False,
        ),
    ] = None,
    as_json: AsJson = False,
    from_path: FromPath = None,
    at: AtMoment = None,
    controllers: Controllers = None,
    secret_file: SecretFile = None,
) -> None:
    """Tell what is wrong with partitions or a controller, what explains it, and what to do.

    What a remedy would bring is tried on a copy of the state: which partitions would be led again, and what is lost.
    Of a reassignment: who is in sync, whom it waits for and since when, and what holds it up. Of a controller, which
    only running ones can tell: how it is, and what its loss would mean for the quorum.
    Exit code 0: nothing is wrong; 1: something is. A reassignment that is open counts as something.

    Examples:

      quorate explain partition orders-17

      quorate explain controller 2
    """
    kind, wanted = _wanted(subject or [])

    topics = [wanted["topic"]] if "topic" in wanted else []

    async def question(client: ControllerClient) -> ExplainReply:
        return await asked_about(client, topics, lambda asked: asked.answers.explain(**wanted))

    reply = ask(controllers, secret_file, question, path=from_path, at=at)
    lines = explanation_lines(reply)
    if kind == "reassignment" and reply.reassignment is None:
        lines = chain([f"{wanted['topic']}-{wanted['partition']} is not being reassigned."], lines)
    show(reply, lines, as_json=as_json)
    raise typer.Exit(exit_codes.REFUSED if reply.symptoms else exit_codes.DONE)


def _wanted(subject: list[str]) -> tuple[str, dict[str, Any]]:
    """The kind of thing, and the client's parameters for it."""
    match subject:
        case []:
            return "cluster", {}
        case [("broker" | "controller") as kind, text]:
            if (id_ := whole_number(text)) is None:
                raise typer.BadParameter(f"{text[:80]!r} is no {kind} id: say one, as {kind} 2", param_hint="SUBJECT")
            return kind, {kind: id_}
        case ["topic", name] if name:
            return "topic", {"topic": sendable(name)}
        case [("partition" | "reassignment") as kind, text]:
            ((topic, number),) = topic_partitions([text])
            return kind, {"topic": sendable(topic), "partition": number}
    said = " ".join(subject)[:80]
    raise typer.BadParameter(
        f"{said!r} cannot be explained: say broker 13, topic orders, partition orders-3, reassignment orders-3 or "
        "controller 2"
    )
