"""The options of `quorate history`, and the one thing that it may be about."""

from __future__ import annotations

from typing import Annotated

import typer

from quorate.scripts.cli.logs.history_effects import PARTS
from quorate.scripts.terminal.arguments import whole_number
from quorate.scripts.terminal.completing.kinds import NameKind, completed_by
from quorate.snapshots.difference.history import (
    Subject,
    broker_subject,
    config_subject,
    label_subject,
    partition_subject,
    topic_subject,
)


def _parts(given: list[str] | None) -> list[str] | None:
    for part in given or ():
        if part not in PARTS:
            raise typer.BadParameter(f"{part[:80]!r} is none of: {', '.join(PARTS)}")
    return given


SubjectWords = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="KIND NAME",
        help="topic NAME, partition TOPIC-NUMBER, broker ID, config topic/NAME (broker/ID, ...), or label "
        "RESOURCE (topic:NAME, ...); all if none.",
        autocompletion=completed_by(NameKind.SUBJECTS),
        show_default=False,
    ),
]
Places = Annotated[
    list[str] | None,
    typer.Option(
        "--from",
        metavar="PATH",
        help="A metadata directory, or http://HOST:PORT of a controller, instead of --controllers. May be "
        "repeated: what directories of one cluster have between them is told, and who asked is taken from all.",
        show_default=False,
    ),
]
Principals = Annotated[
    list[str] | None,
    typer.Option(
        "--by",
        metavar="PRINCIPAL",
        help="Only what this principal asked for: User:ana, or ana. May be repeated.",
        show_default=False,
    ),
]
Parts = Annotated[
    list[str] | None,
    typer.Option(
        "--type",
        metavar="PART",
        help=f"Only changes of {', '.join(PARTS[:-1])} or {PARTS[-1]}. May be repeated.",
        callback=_parts,
        show_default=False,
    ),
]
Limit = Annotated[int, typer.Option("--limit", min=1, metavar="N", help="The last N at most: requests, or steps.")]
NewestFirst = Annotated[
    bool, typer.Option("--newest-first", help="The newest at the top; otherwise it stands at the end.")
]
Full = Annotated[
    bool, typer.Option("--full", help="Step by step, as the records are: with old and new values of all that differs.")
]
AsJson = Annotated[bool, typer.Option("--json", help="As --full, one JSON value a line for each step.")]


def subject_of(words: list[str]) -> Subject | None:
    """The one thing that a history is about; None: everything.

    Raises:
        typer.BadParameter: the words name no such thing.
    """
    if not words:
        return None
    if len(words) == 2:
        kind, name = words
        if kind == "topic":
            return topic_subject(name)
        if kind == "partition":
            return partition_subject(name)
        if kind == "config" and "/" in name:
            return config_subject(name)
        if kind == "label":
            return label_subject(name)
        if kind == "broker" and (number := whole_number(name)) is not None:
            return broker_subject(number)
    raise typer.BadParameter(
        f"{' '.join(words)[:100]!r} is none of: topic NAME, partition TOPIC-NUMBER, broker ID, config KIND/NAME, "
        "label RESOURCE",
        param_hint="KIND NAME",
    )
