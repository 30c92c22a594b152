"""`quorate explain`: what is wrong, why, and what to do about it."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from quorate.scripts.cli.answers.explanation_words import explanation_lines
from quorate.scripts.terminal import exit_codes
from quorate.scripts.terminal.arguments import AsJson, broker_ids, sendable, topic_partitions
from quorate.scripts.terminal.asking import ask
from quorate.scripts.terminal.connecting import AtMoment, Controllers, FromPath, SecretFile
from quorate.scripts.terminal.output import show


def explain(
    subject: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[broker ID | topic NAME | partition TOPIC-NUMBER]",
            help="Without it: the whole cluster.",
            show_default=False,
        ),
    ] = None,
    as_json: AsJson = False,
    from_path: FromPath = None,
    at: AtMoment = None,
    controllers: Controllers = None,
    secret_file: SecretFile = None,
) -> None:
    """Tell what is wrong with partitions, which brokers explain it, and what to do.

    What a remedy would bring is tried on a copy of the state: which partitions would be led again, and what is lost.
    Exit code 0: nothing is wrong; 1: something is.

    Example: quorate explain partition orders-17
    """
    wanted = _wanted(subject or [])
    reply = ask(controllers, secret_file, lambda client: client.answers.explain(**wanted), path=from_path, at=at)
    show(reply, explanation_lines(reply), as_json=as_json)
    raise typer.Exit(exit_codes.REFUSED if reply.symptoms else exit_codes.DONE)


def _wanted(subject: list[str]) -> dict[str, Any]:
    match subject:
        case []:
            return {}
        case ["broker", text] if len(ids := broker_ids(text, "SUBJECT")) == 1:
            return {"broker": ids[0]}
        case ["topic", name]:
            return {"topic": sendable(name)}
        case ["partition", text]:
            ((topic, number),) = topic_partitions([text])
            return {"topic": sendable(topic), "partition": number}
    said = " ".join(subject)[:80]
    raise typer.BadParameter(f"{said!r} cannot be explained: say broker 13, topic orders, or partition orders-3")
