"""`quorate pipeline capacity`: growth, balance, and a plan that evens the cluster out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from quorate.pipeline.files.storage import checked
from quorate.pipeline.files.uris import local
from quorate.scripts.cli.pipeline_jobs.running import Html, Inputs, JobRun
from quorate.scripts.terminal.arguments import broker_ids

Tables = Annotated[
    str | None,
    typer.Option(
        "--tables",
        metavar="DIR",
        parser=checked,
        help="What `quorate pipeline history` made of them: tells of growth, too.",
    ),
]
Cluster = Annotated[
    str | None,
    typer.Option(
        "--cluster", metavar="ID", help="Its id where no meta.properties tells it; of the tables' clusters, this one."
    ),
]
At = Annotated[
    int | None, typer.Option("--at", min=0, metavar="OFFSET", help="Plan for the state below it; else the last.")
]
Drain = Annotated[
    str | None, typer.Option("--drain", metavar="ID,ID-ID,...", help="These brokers are to hold nothing.")
]
Exclude = Annotated[
    str | None,
    typer.Option("--exclude", metavar="ID,ID-ID,...", help="These get nothing and keep theirs, as fenced ones do."),
]
Sizes = Annotated[
    Path | None,
    typer.Option(
        "--sizes", metavar="FILE", parser=local, help="Lines of topic,partition,bytes; else every replica counts one."
    ),
]
PlanDirectory = Annotated[
    Path | None,
    typer.Option("--plan", metavar="DIR", parser=local, help="Write the plan there, for `quorate reassign apply`."),
]


def capacity(
    run: JobRun,
    paths: Inputs,
    tables: Tables = None,
    cluster: Cluster = None,
    at: At = None,
    drain: Drain = None,
    exclude: Exclude = None,
    sizes: Sizes = None,
    plan: PlanDirectory = None,
    html: Html = None,
) -> None:
    """Show how a cluster has grown and how even it is, and plan how to even it out with few replica moves.

    Brokers that are registered and empty get their share; fenced ones keep what they have.

    Example: quorate pipeline capacity var/up/controller-1 --drain 14 --plan plan --html capacity.html
    """
    from quorate.pipeline.capacity.page import capacity_page
    from quorate.pipeline.capacity.report import file_lines, plan_lines
    from quorate.pipeline.jobs.capacity import Wishes
    from quorate.pipeline.jobs.capacity import capacity as capacity_of
    from quorate.pipeline.planning.files import write_plan
    from quorate.pipeline.planning.tables import read_sizes

    wishes = Wishes(
        at=at,
        drained=[] if drain is None else broker_ids(drain, "--drain"),
        excluded=[] if exclude is None else broker_ids(exclude, "--exclude"),
        sizes=None if sizes is None else read_sizes(sizes),
    )
    with run.session("capacity") as spark:
        found = capacity_of(spark, paths, wishes, tables=tables, cluster_id=cluster)
    files = [] if plan is None else write_plan(found.named, found.plan, plan)
    if html is not None:
        capacity_page(found.cluster_id, found.summary, found.trend, found.records, found.racks).write(html)
    lines = [f"Cluster {found.cluster_id}", *plan_lines(found.summary), *file_lines(files)]
    run.show(lines, {**found.as_json(), "files": [str(file) for file in files]})
