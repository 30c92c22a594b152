"""`quorate pipeline`: jobs on Spark over the logs of one or many clusters. Each job is a module of `pipeline_jobs`."""

from __future__ import annotations

from typing import Final

import typer

from quorate.scripts.cli.pipeline_jobs.audit import audit, verify_certificate
from quorate.scripts.cli.pipeline_jobs.capacity import capacity
from quorate.scripts.cli.pipeline_jobs.check import check
from quorate.scripts.cli.pipeline_jobs.compare import compare
from quorate.scripts.cli.pipeline_jobs.drill_report import drill_report
from quorate.scripts.cli.pipeline_jobs.history import history
from quorate.scripts.cli.pipeline_jobs.incidents import incidents
from quorate.scripts.cli.pipeline_jobs.pack import pack
from quorate.scripts.cli.pipeline_jobs.replay import replay
from quorate.scripts.cli.pipeline_jobs.running import job_command
from quorate.scripts.cli.pipeline_jobs.stream import stream

app = typer.Typer(
    help="Question months of logs of many clusters, with Apache Spark: replay, audit, history.", no_args_is_help=True
)

#: In the order of the help text. A job's module imports what it needs of Spark and of `pipeline` inside its function.
JOBS: Final = (check, replay, history, audit, compare, incidents, capacity, stream, drill_report)


for _job in JOBS:
    app.command()(job_command(_job))
app.command()(pack)
app.command()(verify_certificate)
