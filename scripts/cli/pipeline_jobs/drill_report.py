"""`quorate pipeline drill-report`: what drills measured, run after run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from quorate.pipeline.files.uris import local
from quorate.scripts.cli.pipeline_jobs.running import Html, JobRun

Reports = Annotated[
    list[Path],
    typer.Argument(
        metavar="DIR...", parser=local, help="Directories given to `quorate drill run --report`.", show_default=False
    ),
]


def drill_report(run: JobRun, reports: Reports, html: Html = None) -> None:
    """Compare the runs of drills over time: the last one with what is usual, and with what is expected.

    Example: quorate pipeline drill-report drills --html drills.html
    """
    from quorate.pipeline.drills.report import lines, page
    from quorate.pipeline.jobs.drill_report import gather

    with run.session("drill-report") as spark:
        found = gather(spark, reports)
    if html is not None:
        page(found).write(html)
    run.show(lines(found), {"measurements": [one.as_json() for one in found]})
