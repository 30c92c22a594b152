"""`quorate pipeline replay`: the state at any moment, as tables."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from quorate.pipeline.files.storage import checked
from quorate.pipeline.tables.table_format import TableFormat
from quorate.scripts.cli.pipeline_jobs.running import Html, Inputs, JobRun, WrittenAs, workers_line
from quorate.scripts.terminal.secrets_shown import ShowSecrets, secrets_rule

if TYPE_CHECKING:
    from quorate.pipeline.jobs.replay import ReplayResult


ClusterId = Annotated[str | None, typer.Option("--cluster-id", metavar="ID", help="Of files that do not tell it.")]


def replay(
    run: JobRun,
    paths: Inputs,
    out: Annotated[
        str,
        typer.Option(
            "--out", metavar="DIR", parser=checked, help="Where the tables go: empty, or not there.", show_default=False
        ),
    ],
    at: Annotated[
        int | None, typer.Option("--at", metavar="OFFSET", min=0, help="The state before it; default: the end.")
    ] = None,
    time: Annotated[
        datetime | None,
        typer.Option("--time", metavar="TIME", help="The state at this time (UTC), as 2026-01-05T14:00:00."),
    ] = None,
    base: Annotated[
        str | None,
        typer.Option(
            "--base", metavar="DIR", parser=checked, help="Begin with these tables, which an earlier replay wrote."
        ),
    ] = None,
    cluster_id: ClusterId = None,
    table_format: WrittenAs = TableFormat.PARQUET,
    show_secrets: ShowSecrets = False,
    html: Html = None,
) -> None:
    """Write the state of a cluster at an offset or a time, as Parquet: partitions, topics, brokers, configs, entries.

    Begins with the newest checkpoint before the moment, with --base, or with the first record. Inside a transaction
    the state is the one before it. Salts and keys of SCRAM users, and configs that may be secrets, are `(hidden)`;
    tables that are to be a --base take --show-secrets. Nothing of the tables is to be seen before all of it is written.

    Example: quorate pipeline replay var/controller-1 --time 2026-01-05T14:00:00 --out /tmp/state
    """
    if at is not None and time is not None:
        raise typer.BadParameter("give --at or --time, not both")
    from quorate.pipeline.jobs.replay import ReplayOptions
    from quorate.pipeline.jobs.replay import replay as run_replay
    from quorate.pipeline.jobs.replay_page import replay_page

    time_ms = None if time is None else int(time.replace(tzinfo=UTC).timestamp() * 1000)
    table_format.require_writer(out)
    is_secret = secrets_rule(show_secrets=show_secrets)
    options = ReplayOptions(at, time_ms, base, cluster_id, table_format, is_secret=is_secret)
    with run.session("replay", hands_on=True) as spark:
        result = run_replay(spark, paths, out, options)
        if html is not None:
            replay_page(spark, out, result).write(html)
    run.show(_lines(result, out), result.as_json())


def _lines(result: ReplayResult, out: str) -> list[str]:
    begin = "offset 0" if result.base is None else f"{result.base}, offset {result.base_offset}"
    return [
        f"Cluster {result.cluster_id}: the state at offset {result.offset}, digest {result.digest}.",
        f"Replayed {result.records} records, from {begin}.",
        *(f"  {name:<12}{count:>10} rows" for name, count in sorted(result.rows.items())),
        workers_line(result.processor_seconds, result.worker_mb_max),
        f"The tables are in {out}.",
    ]
