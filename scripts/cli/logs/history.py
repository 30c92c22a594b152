"""`quorate history`: what changed, when, at which offset, in which event, by whom, and what came of it."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from quorate.scripts.cli.logs.audit_sources import AllSources
from quorate.scripts.cli.logs.history_effects import effect
from quorate.scripts.cli.logs.history_options import (
    AsJson,
    Full,
    Limit,
    NewestFirst,
    Parts,
    Places,
    Principals,
    SubjectWords,
    subject_of,
)
from quorate.scripts.cli.logs.history_places import Log, places, telling_of_reading
from quorate.scripts.cli.logs.history_requests import Wanted, newest
from quorate.scripts.cli.logs.image_diff import SIGNS, fields_json, fields_text
from quorate.scripts.cli.logs.time_spans import Since, TimeSpan, Until, say_where_it_ends
from quorate.scripts.terminal.connecting import Controllers, SecretFile
from quorate.scripts.terminal.output import counted, format_time, reader_may_leave
from quorate.scripts.terminal.programs.failures import Failed
from quorate.scripts.terminal.tables import columns
from quorate.snapshots.difference.history import HistoryStep
from quorate.snapshots.replay.replay_state import ReplayState


def show_history(
    subject: SubjectWords = None,
    path: Places = None,
    since: Since = None,
    until: Until = None,
    by: Principals = None,
    type_: Parts = None,
    limit: Limit = 100,
    newest_first: NewestFirst = False,
    full: Full = False,
    as_json: AsJson = False,
    controllers: Controllers = None,
    secret_file: SecretFile = None,
) -> None:
    """Show what changed in a log, of everything or of one thing: one line a request, with who asked and its effect.

    Who asked is known to the controller that decided: all of a running quorum are asked; of a stopped one give the
    directories of all. "-": nobody knows; --full says why.

    It goes back from the end, from one checkpoint to the one before, as far as --limit and --since ask for and any of
    the controllers, or directories, reaches. Where the log begins later than that, as retention cuts it
    (log.retention_ms, log.retention_bytes), that is said; exit code 1 where nothing else is.

    Example: quorate history topic orders --since 2h
    """
    wanted = Wanted(
        subject_of(subject or []),
        TimeSpan.of(since, until),
        frozenset(by or ()),
        frozenset(type_ or ()),
        by_record=full or as_json,
    )
    with telling_of_reading(path), places(path, controllers, secret_file) as (log, audit):
        found = newest(log, audit, wanted, limit)
    shown = found.requests[::-1] if newest_first else found.requests
    with reader_may_leave():
        sys.stdout.writelines(f"{line}\n" for line in _told(shown, wanted, audit, as_json=as_json))
    if found.has_more:
        sys.stderr.write(f"quorate: the last {limit} are shown; --limit shows more\n")
    if found.end is not None:
        say_where_it_ends(wanted.span, found.end)
    is_missing = _say_what_is_missing(log, audit, found.begin)
    untold = sum(map(audit.is_untold, found.unknown))
    if untold:
        _say_what_is_untold(untold)
    if not shown and untold and not is_missing:
        raise Failed(f"nothing is known to be asked for by {' or '.join(sorted(wanted.principals))}")
    if not shown:
        _tell_nothing(" ".join(subject or ["anything"]), is_asked_for=wanted.is_narrow, is_missing=is_missing)


def _say_what_is_untold(count: int) -> None:
    which = counted(count, "change")
    sys.stderr.write(
        f"quorate: left out: {which} by controllers that do not say who asked; history --full names them\n"
    )


def _told(
    requests: Sequence[Sequence[HistoryStep]], wanted: Wanted, audit: AllSources, *, as_json: bool
) -> Iterable[str]:
    if not wanted.by_record:
        return columns([_HEADS, *map(_row, requests)]) if requests else ()
    tell = _json if as_json else _lines
    return (line for steps in requests for step in steps for line in tell(step, audit.why_unknown(step)))


def _tell_nothing(subject: str, *, is_asked_for: bool, is_missing: bool) -> None:
    """Nothing happened; or, where records are missing, nobody knows, which is no success."""
    subject += " that was asked for" if is_asked_for else ""
    if is_missing:
        raise Failed(f"nothing is known of {subject} since then")
    sys.stderr.write(f"quorate: the log tells of no change of {subject}\n")


def _say_what_is_missing(log: Log, audit: AllSources, begin: ReplayState | None) -> bool:
    """Whether the log begins later than the cluster: then what is not told may have happened before."""
    for source in audit.sources:
        if source.silence:
            sys.stderr.write(f"quorate: controller {source.node_id} does not say who asked it: {source.silence}\n")
    if begin is None or not begin.end_offset:
        return False
    start = begin.stable.provenance
    at = f"offset {start.end_offset}, time {format_time(start.log_time_ms)}"
    sys.stderr.write(f"quorate: history begins at {at}: earlier records were cut by retention, or never were here\n")
    for reason in log.missing:
        sys.stderr.write(f"quorate: a log that may begin earlier was not read: {reason}\n")
    return True


_HEADS: Final = ("TIME", "OFFSET", "WHO", "WHAT", "REQUEST", "EFFECT")


def _row(steps: Sequence[HistoryStep]) -> tuple[str, ...]:
    """A request in one line. A controller that acted by itself is ``controller``."""
    first = steps[0]
    who, what, request_id = "-", "-", None
    if first.line is not None:
        who = first.line.principal or "controller"
        who += "" if first.line.proxy is None else f" through {first.line.proxy}"
        what, request_id = first.line.event, first.line.request_id
    changes = [change for step in steps for change in step.changes]
    return format_time(first.time_ms), str(first.base_offset), who, what, request_id or "-", effect(changes)


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


def _json(step: HistoryStep, why_unknown: str | None) -> Iterator[str]:
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
    yield json.dumps(document, ensure_ascii=False)
