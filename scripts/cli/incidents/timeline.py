"""`quorate timeline`: what happened, in the order of time."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from typing import Annotated

import typer

from quorate.scripts.cli.incidents.past import read_past
from quorate.scripts.cli.logs.history_options import NewestFirst, Places
from quorate.scripts.cli.logs.time_spans import Since, TimeSpan, Until
from quorate.scripts.terminal.connecting import Controllers, SecretFile
from quorate.scripts.terminal.output import reader_may_leave
from quorate.scripts.terminal.tables import columns
from quorate.snapshots.incidents.telling.timeline import TimelineEvent, timeline
from quorate.snapshots.incidents.thresholds import Thresholds

_HEADS = ("TIME", "OFFSET", "EVENT")


def show_timeline(
    path: Places = None,
    since: Since = None,
    until: Until = None,
    limit: Annotated[int, typer.Option("--limit", min=1, metavar="N", help="The last N events at most.")] = 200,
    newest_first: NewestFirst = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON value a line for each event.")] = False,
    controllers: Controllers = None,
    secret_file: SecretFile = None,
) -> None:
    """Tell what happened to controllers, brokers and partitions, in the order of time.

    Elections of controllers, brokers that register, are fenced, unfenced, shut down or are gone; partitions without a
    leader or below min.insync.replicas, from when to when; reassignments from begin to end; elections that may have
    lost data; mass changes. `quorate history` tells who asked for what, `quorate incidents` what to worry about.

    Example: quorate timeline --since 2h
    """
    thresholds = Thresholds()
    past = read_past(path, TimeSpan.of(since, until), thresholds, controllers, secret_file)
    events = [event for event in timeline(past.found, thresholds) if past.holds(event.offset, None)]
    shown = events[-limit:][:: -1 if newest_first else 1]
    with reader_may_leave():
        sys.stdout.writelines(f"{line}\n" for line in _told(shown, as_json=as_json))
    if len(events) > limit:
        sys.stderr.write(f"quorate: the last {limit} of {len(events)} events are shown; --limit shows more\n")
    if not events:
        sys.stderr.write("quorate: nothing happened\n")


def _told(events: list[TimelineEvent], *, as_json: bool) -> Iterable[str]:
    if as_json:
        return (_json(event) for event in events)
    rows = [(event.time.isoformat(timespec="milliseconds"), str(event.offset), event.text) for event in events]
    return columns([_HEADS, *rows]) if rows else ()


def _json(event: TimelineEvent) -> str:
    return json.dumps({**event._asdict(), "time": event.time.isoformat(timespec="milliseconds")}, ensure_ascii=False)
