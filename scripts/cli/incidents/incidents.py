"""`quorate incidents`: outages, with when, how long and why, of a running cluster or of files."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from quorate.pipeline.incidents.telling.report import document, report
from quorate.scripts.cli.incidents.options import IncidentOptions
from quorate.scripts.cli.incidents.past import read_past
from quorate.scripts.cli.logs.history_options import Places
from quorate.scripts.cli.logs.time_spans import Since, TimeSpan, Until
from quorate.scripts.terminal.connecting import Controllers, SecretFile
from quorate.scripts.terminal.output import reader_may_leave
from quorate.scripts.terminal.programs.documents import as_document, note_answer, note_files
from quorate.snapshots.incidents.telling.story import incidents


def show_incidents(
    options: IncidentOptions,
    path: Places = None,
    since: Since = None,
    until: Until = None,
    as_json: Annotated[bool, typer.Option("--json", help="Everything that was found, as one JSON value.")] = False,
    controllers: Controllers = None,
    secret_file: SecretFile = None,
) -> None:
    """Tell what went wrong: when, for how long, how bad it was, and why.

    Partitions without a leader or below min.insync.replicas, brokers that crashed or shut down, lost log directories,
    controllers that took over, elections that may have lost data, slow reassignments, flapping ISRs, mass changes. As
    `quorate pipeline incidents`, which reads months of many clusters, and needs Spark.

    With --since the log is read from the checkpoint before it, and what ended before it is left out; totals are of
    all that was read. With --until it is told as if the log ended there.

    Example: quorate incidents --since 2h
    """
    thresholds = options.thresholds
    past = read_past(path, TimeSpan.of(since, until), thresholds, controllers, secret_file)
    findings = past.found.findings
    told = [
        one
        for one in incidents(findings, thresholds)
        if past.holds(one.from_offset, one.to_offset, is_open=one.is_open)
    ]
    lines = report(
        findings, told, options.limit, "--limit shows more", "There was no partition: there is nothing to tell."
    )
    if as_json:
        (note_files if path else note_answer)(past.end_offset)
        lines = [as_document(document(findings, told))]
    with reader_may_leave():
        sys.stdout.writelines(f"{line}\n" for line in lines)
