"""`quorate history`: what changed, when, at which offset, in which event, by whom."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Annotated, Any

import typer

from quorate.scripts.cli.logs.audit_sources import AllSources
from quorate.scripts.cli.logs.history_places import Log, places
from quorate.scripts.cli.logs.image_diff import SIGNS, fields_json, fields_text
from quorate.scripts.terminal import exit_codes
from quorate.scripts.terminal.connecting import Controllers, SecretFile
from quorate.scripts.terminal.output import format_time, reader_may_leave
from quorate.snapshots.difference.history import (
    HistoryStep,
    Subject,
    broker_subject,
    config_subject,
    history,
    label_subject,
    partition_subject,
    topic_subject,
)


def show_history(
    subject: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[KIND NAME]",
            help="topic NAME, partition TOPIC-NUMBER, broker ID, config topic/NAME (broker/ID, ...), or label "
            "RESOURCE (topic:NAME, ...); all if none.",
            show_default=False,
        ),
    ] = None,
    path: Annotated[
        list[str] | None,
        typer.Option(
            "--from",
            metavar="PATH",
            help="A metadata directory, or http://HOST:PORT of a controller, instead of --controllers. May be "
            "repeated: what directories of one cluster have between them is told, and who asked is taken from all.",
            show_default=False,
        ),
    ] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, metavar="N", help="The last N steps at most.")] = 100,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON value a line for each step.")] = False,
    controllers: Controllers = None,
    secret_file: SecretFile = None,
) -> None:
    """Show what changed in a log, of everything or of one thing: old and new value, when, where, why and by whom.

    Who asked is known to the controller that decided: all of a running quorum are asked; of a stopped one give the
    directories of all.

    It is told as far back as any of the controllers, or directories, reaches. Where the log begins later than the
    cluster, as retention cuts it (log.retention_ms, log.retention_bytes), that is said; exit code 1 where nothing else
    is.

    Example: quorate history topic orders --from var/controller-1 --from var/controller-2 --from var/controller-3
    """
    wanted = _subject(subject or [])
    from quorate.controller.configs.resources import is_sensitive

    with places(path, controllers, secret_file) as (log, audit):
        steps = list(history(log.start, log.batches, audit, is_sensitive, wanted))
    with reader_may_leave():
        for step in steps[-limit:]:
            why = audit.why_unknown(step)
            sys.stdout.writelines(f"{line}\n" for line in ([_json(step, why)] if as_json else _lines(step, why)))
    if len(steps) > limit:
        sys.stderr.write(f"quorate: the last {limit} of {len(steps)} steps are shown; --limit shows more\n")
    is_missing = _say_what_is_missing(log, audit)
    if not steps:
        _tell_nothing(" ".join(subject or ["anything"]), is_missing=is_missing)


def _tell_nothing(subject: str, *, is_missing: bool) -> None:
    """Nothing happened; or, where records are missing, nobody knows, which is no success."""
    if is_missing:
        sys.stderr.write(f"quorate: nothing is known of {subject} since then\n")
        raise typer.Exit(exit_codes.REFUSED)
    sys.stderr.write(f"quorate: the log tells of no change of {subject}\n")


def _say_what_is_missing(log: Log, audit: AllSources) -> bool:
    """Whether the log begins later than the cluster: then what is not told may have happened before."""
    for source in audit.sources:
        if source.silence:
            sys.stderr.write(f"quorate: controller {source.node_id} does not say who asked it: {source.silence}\n")
    start = log.start.stable.provenance
    if not start.end_offset:
        return False
    begin = f"offset {start.end_offset}, time {format_time(start.log_time_ms)}"
    sys.stderr.write(f"quorate: history begins at {begin}: earlier records were cut by retention, or never were here\n")
    for reason in log.missing:
        sys.stderr.write(f"quorate: a log that may begin earlier was not read: {reason}\n")
    return True


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
        if kind == "label":
            return label_subject(name)
        if kind == "broker" and name.isascii() and name.isdigit():
            return broker_subject(int(name))
    raise typer.BadParameter(
        f"{' '.join(words)[:100]!r} is none of: topic NAME, partition TOPIC-NUMBER, broker ID, config KIND/NAME, "
        "label RESOURCE",
        param_hint="KIND NAME",
    )


def _lines(step: HistoryStep, why_unknown: str | None) -> Iterator[str]:
    offsets = str(step.base_offset)
    if step.end_offset > step.base_offset + 1:
        offsets += f" to {step.end_offset - 1}"
    yield f"offset {offsets}  epoch {step.epoch}  {format_time(step.time_ms)}  {_cause(step, why_unknown)}"
    for part, entry in step.changes:
        yield f"  {SIGNS[entry.change]} {part} {entry.name}{fields_text(entry)}"


def _cause(step: HistoryStep, why_unknown: str | None) -> str:
    if step.line is None:
        return f"(not known by which event{'' if why_unknown is None else f': {why_unknown}'})"
    line = step.line
    if line.principal is None:
        return line.event
    through = "" if line.proxy is None else f" through {line.proxy}"
    return f"{line.event} by {line.principal}{through} ({line.address}, {line.request_id})"


def _json(step: HistoryStep, why_unknown: str | None) -> str:
    line = step.line
    document: dict[str, Any] = {
        "base_offset": step.base_offset,
        "end_offset": step.end_offset,
        "epoch": step.epoch,
        "time_ms": step.time_ms,
        "decided_by": step.decided_by,
        "event": None if line is None else line.event,
        "principal": None if line is None else line.principal,
        "address": None if line is None else line.address,
        "request_id": None if line is None else line.request_id,
        "proof": None if line is None else line.proof,
        "proxy": None if line is None else line.proxy,
        "allowed_by": None if line is None else line.allowed_by,
        "why_unknown": why_unknown,
        "changes": [
            {"part": part, "change": entry.change, "name": entry.name, "fields": fields_json(entry)}
            for part, entry in step.changes
        ],
    }
    return json.dumps(document, ensure_ascii=False)
