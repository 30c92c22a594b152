"""``scripts/conformance``: the controller against what Apache Kafka's own classes decided."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from quorate.scripts.conformance_runner.comparison import Difference
from quorate.scripts.conformance_runner.outcome import VectorOutcome
from quorate.scripts.conformance_runner.report import Report
from quorate.scripts.conformance_runner.vector_file import RUNNERS, BadVectorFile, read_vectors
from quorate.scripts.conformance_runner.wanted_differences import judged
from quorate.scripts.terminal import exit_codes
from quorate.scripts.worker_pool import worker_pool

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)

#: Vectors that go to a process at once.
_CHUNK: Final = 40
#: Vectors that wait for the processes at most: some are megabytes when unpacked.
_WAITING_MAX: Final = 400


def run_one(work: tuple[str, Any]) -> VectorOutcome:
    """Run one vector by its kind."""
    kind, vector = work
    try:
        return judged(RUNNERS[kind](vector))
    except Exception:  # noqa: BLE001  # whatever a vector dies of is its outcome
        return VectorOutcome(vector["id"], [Difference("", vector["expected"], traceback.format_exc())])


@app.command()
def conformance(
    files: Annotated[list[Path], typer.Argument(help="Vectors: one JSON object a line, packed with gzip or not.")],
    part: Annotated[str | None, typer.Option(help=f"Only one kind: {', '.join(RUNNERS)}.")] = None,
    id_: Annotated[list[str] | None, typer.Option("--id", help="Only this vector; may be repeated.")] = None,
    verbose: Annotated[
        bool, typer.Option("-v", "--verbose", help="Show every vector that fails, and where it differs.")
    ] = False,
    jobs: Annotated[int, typer.Option(min=1, help="Processes.")] = 1,
) -> None:
    """Give the controller what Apache Kafka's controller was given, and compare what both decided.

    A file may hold vectors of any kind; what a vector is shows by its content. Scenarios run through the production
    controller on a log in memory, with a clock that stands still; each ends at its first step that differs.
    ELR and last known ELR are compared as sets, everything else in order; errors by name, not by their sentences.
    What is wanted to differ stands in scripts/conformance_runner/wanted_differences.py.
    The set for the tests is in tests/data/conformance.

    Exit code: 0 all passed, 1 some failed, 2 a file is no file of vectors, or none of its vectors was asked for.
    """
    if part is not None and part not in RUNNERS:
        raise typer.BadParameter(f"{part} is none of: {', '.join(RUNNERS)}", param_hint="--part")
    report = Report(is_verbose=verbose)
    try:
        for work, outcome in _outcomes(_asked_for(files, part, set(id_ or ())), jobs):
            report.add(work[0], work[1], outcome)
    except BadVectorFile as problem:
        typer.echo(f"conformance: {problem}", err=True)
        raise typer.Exit(exit_codes.USAGE) from None
    if report.count == 0:
        typer.echo("conformance: no vector of these files was asked for", err=True)
        raise typer.Exit(exit_codes.USAGE)
    report.close()
    raise typer.Exit(exit_codes.REFUSED if report.failed_count else exit_codes.DONE)


def _asked_for(files: list[Path], part: str | None, ids: set[str]) -> Iterator[tuple[str, Any]]:
    for path in files:
        for kind, vector in read_vectors(path):
            if part in (None, kind) and (not ids or vector["id"] in ids):
                yield kind, vector


def _outcomes(work: Iterator[tuple[str, Any]], jobs: int) -> Iterator[tuple[tuple[str, Any], VectorOutcome]]:
    if jobs == 1:
        for one in work:
            yield one, run_one(one)
        return
    with worker_pool(jobs) as pool:
        while some := list(islice(work, _WAITING_MAX)):
            yield from zip(some, pool.map(run_one, some, chunksize=_CHUNK), strict=True)
