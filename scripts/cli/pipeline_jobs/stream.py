"""`quorate pipeline stream`: logs as they grow, into a table."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from quorate.pipeline.files.uris import local
from quorate.scripts.cli.pipeline_jobs.running import Inputs, JobRun
from quorate.scripts.terminal.output import reader_may_leave

if TYPE_CHECKING:
    from quorate.pipeline.jobs.stream import StreamStep


def stream(
    run: JobRun,
    paths: Inputs,
    out: Annotated[Path, typer.Option("--out", metavar="DIR", parser=local, help="The table, made or continued.")],
    now: Annotated[bool, typer.Option("--now", help="Read what is there now and end, instead of following.")] = False,
    every: Annotated[float, typer.Option("--every", metavar="SECONDS", help="From one look to the next.")] = 1.0,
    max_records: Annotated[
        int, typer.Option("--max-records", metavar="N", min=1, help="Records of one step, about.")
    ] = 1_000_000,
    mixed: Annotated[bool, typer.Option("--mixed", help="The logs may be of several clusters.")] = False,
    uncommitted: Annotated[
        bool, typer.Option("--uncommitted", help="Read logs that do not tell what is committed, as Kafka's.")
    ] = False,
) -> None:
    """Put the records of growing logs into a Parquet table, each exactly once; go on where it ends.

    Stop it and start it again as you like, also by kill -9. Of a live Quorate node only committed records are read.

    Example: quorate pipeline stream var/up/controller-1 --out history --every 5
    """
    from quorate.pipeline.jobs.stream import follow

    options = {"maxRecords": str(max_records), "mixed": str(mixed), "uncommitted": str(uncommitted)}
    with run.session("stream") as spark:
        table = follow(
            spark,
            paths,
            out,
            every_s=None if now else every,
            options=options,
            tell=(lambda step: None) if run.as_json else _tell,
        )
    chunks = table.chunks()
    ends = dict(chunks[-1].ends) if chunks else {}
    records = sum(chunk.records for chunk in chunks)
    where = ", ".join(f"{cluster} up to offset {end}" for cluster, end in sorted(ends.items())) or "nothing"
    run.show(
        [f"{out} holds {records} records in {len(chunks)} steps: {where} (exclusive)."],
        {"table": str(out), "records": records, "steps": len(chunks), "ends": ends},
    )


def _tell(step: StreamStep) -> None:
    took = f"{step.records} records in {step.seconds:.1f} s"
    with reader_may_leave():
        sys.stdout.write(f"step {step.number}: {took}, lag {step.lag} records\n")
        sys.stdout.flush()
