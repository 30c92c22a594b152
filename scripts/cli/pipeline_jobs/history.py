"""`quorate pipeline history`: every version of everything, as tables."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from quorate.pipeline.errors import BadSetting
from quorate.pipeline.files.storage import checked
from quorate.pipeline.tables.table_format import TableFormat
from quorate.scripts.cli.pipeline_jobs.running import Html, Inputs, JobRun, Mixed, WrittenAs, workers_line
from quorate.scripts.terminal import exit_codes
from quorate.scripts.terminal.secrets_shown import ShowSecrets, secrets_rule

if TYPE_CHECKING:
    from quorate.pipeline.history.report import HistoryReport


Target = Annotated[
    str,
    typer.Option(
        "--out",
        metavar="DIR",
        parser=checked,
        help="Where the tables go, a directory or s3://BUCKET/KEY: empty, or not there.",
        show_default=False,
    ),
]

Append = Annotated[
    bool, typer.Option("--append", help="Go on with the Delta tables in DIR: read only what is new. Else begin them.")
]

BucketMb = Annotated[
    int,
    typer.Option("--bucket-mb", min=1, metavar="MB", help="Log in one bucket; a worker takes about ten times that."),
]


ClusterId = Annotated[
    str | None, typer.Option("--cluster-id", metavar="ID", help="Of files that do not tell whose they are.")
]


def history(
    run: JobRun,
    paths: Inputs,
    out: Target,
    at: Annotated[
        int | None, typer.Option("--at", min=1, metavar="OFFSET", help="Only records below it; default: all.")
    ] = None,
    cluster_id: ClusterId = None,
    mixed: Mixed = False,
    bucket_mb: BucketMb = 64,
    table_format: WrittenAs = TableFormat.PARQUET,
    append: Append = False,
    show_secrets: ShowSecrets = False,
    html: Html = None,
) -> None:
    """Write every version of every partition, broker, topic and config, with when it began and ended, as Parquet.

    The tables are partitioned by day; with --mixed they hold several clusters. What was aborted, or never committed,
    is no history. Nothing of the tables is to be seen before all of it is written. Of several clusters one that fails
    is left out and named, and the exit code is 1. Configs that may be secrets have their versions without their values.

    With --append the same command, run every day, leaves the tables that one run over everything would have made. It
    reads the log from where the tables end, of each cluster; a gap, or another log than theirs, is an error.

    Example: quorate pipeline history /var/kafka/metadata --out /tmp/history --master local[2]
    """
    from quorate.pipeline.history.page import history_page
    from quorate.pipeline.history.plan import HistoryOptions
    from quorate.pipeline.history.series import history_series
    from quorate.pipeline.jobs.history import make_history

    if append:
        _require_appendable(table_format, html)
    table_format.require_writer(out)
    options = HistoryOptions(
        end_offset=at,
        cluster_id=cluster_id,
        mixed=mixed,
        table_format=table_format,
        append=append,
        bucket_bytes=bucket_mb * 2**20,
        is_secret=secrets_rule(show_secrets=show_secrets),
    )
    with run.session("history", hands_on=True) as spark:
        report = make_history(spark, paths, out, options)
    if html is not None:
        history_page(report, {name: history_series(counts) for name, counts in report.counts.items()}).write(html)
    run.show(_lines(report, out), report.as_json())
    if report.failed:
        raise typer.Exit(exit_codes.REFUSED)


def _require_appendable(table_format: TableFormat, html: Path | None) -> None:
    if table_format is not TableFormat.DELTA:
        raise BadSetting("--append goes on with Delta tables: give --table-format delta, too")
    if html is not None:
        raise BadSetting("--html is made of all that is read, and --append reads only what is new: leave one out")


def _lines(report: HistoryReport, out: str) -> list[str]:
    rate = report.records / report.seconds if report.seconds else 0
    return [
        *(
            f"Cluster {one.cluster_id}: {one.records:,} records, offsets {one.first_offset} to {one.end_offset - 1}."
            if one.records
            else f"Cluster {one.cluster_id}: nothing new after offset {one.end_offset - 1}."
            for one in report.clusters
        ),
        f"{report.seconds:.1f} s: {rate:,.0f} records/s.",
        *(
            f"  {name:<20}{written.rows:>12,} versions {written.files:>6,} files {written.size / 1e6:>9,.1f} MB"
            for name, written in report.tables.items()
        ),
        workers_line(report.processor_seconds, report.worker_mb_max),
        *(f"Not in the tables: {name}: {error}" for name, error in report.failed.items()),
        f"The tables are in {out}.",
    ]
