"""``scripts/generate-history``: a metadata directory with a made-up history of months in it."""

from __future__ import annotations

import json
import resource
import sys
import time
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from quorate.metadata_log.directory.directory import DirectoryError
from quorate.scripts.generated_history.making import RECORDS_MIN, GenerationPlan, make_history
from quorate.scripts.terminal import exit_codes

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def generate(
    records: Annotated[int, typer.Option(min=RECORDS_MIN, help="Records of the log, exactly.", show_default=False)],
    out: Annotated[Path, typer.Option(help="The metadata directory to make.", show_default=False)],
    seed: Annotated[int, typer.Option(min=0, help="The same seed and options give the same bytes.")] = 1,
    segments: Annotated[int, typer.Option(min=1, help="Segment files, of about as many records each.")] = 1,
    days: Annotated[int, typer.Option(min=1, help="Time from the first record to the last.")] = 180,
    partitions: Annotated[
        int | None,
        typer.Option(
            min=8,
            help="About how many partitions the cluster has; default: one for 40 records, at most 80,000.",
            show_default=False,
        ),
    ] = None,
    brokers: Annotated[
        int | None,
        typer.Option(
            min=4, max=1000, help="Brokers at the beginning; default: 6 to 60, by partitions.", show_default=False
        ),
    ] = None,
    checkpoint_every: Annotated[
        int, typer.Option(min=0, help="A checkpoint with its manifest every so many records; 0: none.")
    ] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="What was made, as one JSON document.")] = False,
) -> None:
    """Make a metadata directory with a history in it, for measuring and testing what reads logs.

    A cluster of brokers in three racks is founded, upgraded and worked on for months: restarts, crashes, flapping ISRs,
    reassignments, topics that come, go and come again, configs, quotas, credentials, failovers of the controller,
    transactions that are committed, undone, and one still open at the end. The state is valid at every batch.

    Example: scripts/generate-history --records 20000000 --segments 200 --seed 1 --out /tmp/history
    """
    plan = GenerationPlan(records, seed, segments, days, partitions, brokers, checkpoint_every)
    if plan.partition_count > records // 4:
        raise typer.BadParameter(f"{plan.partition_count} partitions need at least {plan.partition_count * 4} records")
    if segments > records // 100:
        raise typer.BadParameter(f"{segments} segments need at least {segments * 100} records")
    report = _make(plan, out)
    if as_json:
        print(json.dumps(report))
        return
    for name, value in report.items():
        print(f"{name:<12}{value:,}" if isinstance(value, int) else f"{name:<12}{value}")


def _make(plan: GenerationPlan, out: Path) -> dict[str, str | int | float]:
    started = time.monotonic()
    progress = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeRemainingColumn(),
        disable=not sys.stderr.isatty(),
        transient=True,
    )
    try:
        with progress:
            task = progress.add_task("records", total=plan.records)
            made = make_history(plan, out, lambda count: progress.advance(task, count))
    except DirectoryError as error:
        print(f"error: {error}", file=sys.stderr)
        raise typer.Exit(exit_codes.REFUSED) from error
    return {
        "directory": str(out),
        "records": made.end_offset,
        "segments": made.segments,
        "bytes": sum(file.stat().st_size for file in out.rglob("*.log")),
        "partitions": made.operations.pool.held_count,
        "topics": len(made.operations.topics.present),
        "brokers": len(made.operations.brokers.ids),
        "epochs": made.epochs,
        "checkpoints": made.checkpoints,
        "seconds": round(time.monotonic() - started, 1),
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }


def main() -> None:
    """The program."""
    try:
        app(prog_name="scripts/generate-history")
    except KeyboardInterrupt:
        print("interrupted: what was made so far is no whole history", file=sys.stderr)
        sys.exit(exit_codes.INTERRUPTED)


if __name__ == "__main__":
    main()
