"""`quorate history`: what changed, when, at which offset, in which event, by whom."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from metadata_log.audit_lines import audit_files, decode_audit_lines
from metadata_log.errors import NotController
from scripts.cli import exit_codes
from scripts.cli.connecting import SecretFile
from scripts.cli.image_diff import SIGNS, fields_json, fields_text
from scripts.cli.image_sources import SCHEME
from scripts.cli.output import format_time, reader_may_leave
from scripts.cli.passed_over import say_passed_over
from snapshots.history import (
    Audit,
    HistoryStep,
    Subject,
    broker_subject,
    config_subject,
    history,
    partition_subject,
    topic_subject,
)
from snapshots.loading import batches_from_start
from snapshots.replay_state import ReplayState
from snapshots.whole_checkpoints import PassedOver


def show_history(
    subject: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[KIND NAME]",
            help="topic NAME, partition TOPIC-NUMBER, broker ID, or config topic/NAME (broker/ID, ...); all if none.",
            show_default=False,
        ),
    ] = None,
    path: Annotated[
        list[str] | None,
        typer.Option(
            "--from",
            metavar="PATH",
            help="A metadata directory, or http://HOST:PORT of a controller. May be repeated: the log of the first is "
            "told, who asked is taken from all directories.",
            show_default=False,
        ),
    ] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, metavar="N", help="The last N steps at most.")] = 100,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON value a line for each step.")] = False,
    secret_file: SecretFile = None,
) -> None:
    """Show what changed in a log, of everything or of one thing: old and new value, when, where, why and by whom.

    Who asked is written by the controller that decided, in its own directory: give the directories of all of them.

    Example: quorate history topic orders --from var/controller-1 --from var/controller-2 --from var/controller-3
    """
    if not path:
        raise typer.BadParameter("which log? Say --from DIRECTORY", param_hint="--from")
    wanted = _subject(subject or [])
    from controller.config_resources import is_sensitive

    audit = Audit(
        line
        for directory in path
        if not directory.startswith(SCHEME)
        for file in audit_files(Path(directory))
        for line in decode_audit_lines(file.read_bytes())
    )
    steps = list(history(*_log(path[0], secret_file), audit, is_sensitive, wanted))
    with reader_may_leave():
        for step in steps[-limit:]:
            sys.stdout.writelines(f"{line}\n" for line in ([_json(step)] if as_json else _lines(step)))
    if len(steps) > limit:
        sys.stderr.write(f"quorate: the last {limit} of {len(steps)} steps are shown; --limit shows more\n")


def _log(place: str, secret_file: Path | None) -> tuple[ReplayState, Iterable[bytes]]:
    if not place.startswith(SCHEME):
        found: list[PassedOver] = []
        start, batches = batches_from_start(Path(place), found.append)
        say_passed_over(found)
        return start, (batch.data for batch in batches)
    # Asking a controller takes libraries that looking into a file must not wait for.
    from scripts.cli.live_image import live_batches

    try:
        return live_batches(place, secret_file)
    except NotController as error:
        sys.stderr.write(f"quorate: {error}\n")
        raise typer.Exit(exit_codes.UNREACHABLE) from None


def _subject(words: list[str]) -> Subject | None:
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
        if kind == "broker" and name.isascii() and name.isdigit():
            return broker_subject(int(name))
    raise typer.BadParameter(
        f"{' '.join(words)[:100]!r} is none of: topic NAME, partition TOPIC-NUMBER, broker ID, config KIND/NAME",
        param_hint="KIND NAME",
    )


def _lines(step: HistoryStep) -> Iterator[str]:
    offsets = str(step.base_offset)
    if step.end_offset > step.base_offset + 1:
        offsets += f" to {step.end_offset - 1}"
    yield f"offset {offsets}  epoch {step.epoch}  {format_time(step.time_ms)}  {_cause(step)}"
    for part, entry in step.changes:
        yield f"  {SIGNS[entry.change]} {part} {entry.name}{fields_text(entry)}"


def _cause(step: HistoryStep) -> str:
    if step.line is None:
        return "(not known by which event)"
    line = step.line
    if line.principal is None:
        return line.event
    return f"{line.event} by {line.principal} ({line.address}, {line.request_id})"


def _json(step: HistoryStep) -> str:
    line = step.line
    document: dict[str, Any] = {
        "base_offset": step.base_offset,
        "end_offset": step.end_offset,
        "epoch": step.epoch,
        "time_ms": step.time_ms,
        "event": None if line is None else line.event,
        "principal": None if line is None else line.principal,
        "address": None if line is None else line.address,
        "request_id": None if line is None else line.request_id,
        "changes": [
            {"part": part, "change": entry.change, "name": entry.name, "fields": fields_json(entry)}
            for part, entry in step.changes
        ],
    }
    return json.dumps(document, ensure_ascii=False)
