"""`quorate pipeline incidents`: outages reconstructed, with causes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from quorate.pipeline.files.storage import checked
from quorate.scripts.cli.incidents.options import IncidentOptions
from quorate.scripts.cli.pipeline_jobs.running import Html, Inputs, JobRun, Mixed, Out, workers_line
from quorate.scripts.terminal import exit_codes

if TYPE_CHECKING:
    from quorate.pipeline.jobs.incidents import IncidentsFound

Tables = Annotated[
    str,
    typer.Option(
        "--tables", metavar="DIR", parser=checked, help="The tables that `quorate pipeline history` made of the paths."
    ),
]
Cluster = Annotated[
    str | None,
    typer.Option("--cluster", metavar="ID", help="Of the tables' clusters this one, of which the paths are."),
]


def incidents(
    run: JobRun,
    options: IncidentOptions,
    paths: Inputs,
    tables: Tables,
    cluster: Cluster = None,
    mixed: Mixed = False,
    out: Out = None,
    html: Html = None,
) -> None:
    """Reconstruct outages: what went wrong, when, for how long, and why.

    Partitions without a leader or short of replicas, brokers that crashed or shut down, lost log directories,
    controllers that took over, elections that may have lost data, slow reassignments, flapping ISRs, mass changes.
    Of several clusters one whose log cannot be read is left out and named, and the exit code is 1.

    Example: quorate pipeline incidents var/metadata --tables tables --slow-minutes 5
    """
    from quorate.pipeline.incidents.telling.page import incidents_page
    from quorate.pipeline.jobs.incidents import find_incidents, write_tables

    with (
        run.session("incidents", hands_on=True) as spark,
        find_incidents(spark, tables, paths, options.thresholds, cluster_id=cluster, mixed=mixed) as found,
    ):
        if out is not None:
            write_tables(found, out)
        if html is not None:
            series = found.search.series()
            incidents_page(found.search.findings, found.incidents, series, found.failed).write(html)
        run.show(_lines(found, options.limit), _document(found))
    if found.failed:
        raise typer.Exit(exit_codes.REFUSED)


def _lines(found: IncidentsFound, limit: int) -> list[str]:
    from quorate.pipeline.incidents.telling.report import report

    return [
        *report(found.search.findings, found.incidents, limit),
        f"{found.seconds:.1f} s.",
        workers_line(*found.spent()),
        *(f"Not in the report: {name}: {error}" for name, error in found.failed.items()),
    ]


def _document(found: IncidentsFound) -> dict[str, Any]:
    from quorate.pipeline.incidents.telling.report import document

    seconds, largest = found.spent()
    return {
        **document(found.search.findings, found.incidents),
        "seconds": found.seconds,
        "processor_seconds": seconds,
        "worker_mb_max": largest,
        "failed": found.failed,
    }
