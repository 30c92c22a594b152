"""``scripts/bench-pipeline``: what jobs of the pipeline cost on logs of several sizes, by process."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Final

import typer

from quorate.metadata_log.directory.reader import find_files, iter_batches
from quorate.metadata_log.errors import QuorateError
from quorate.scripts.benchmarks.process_tree import watch_tree
from quorate.scripts.generated_history.digests import states_at
from quorate.scripts.generated_history.making import GenerationPlan, make_history
from quorate.scripts.terminal import exit_codes
from quorate.scripts.terminal.command_line import run

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)

#: By job: its arguments on a log, with a directory for what it writes and reads.
JOBS: Final[dict[str, Callable[[str, str], list[str]]]] = {
    "replay": lambda log, scratch: [log, "--out", f"{scratch}/state"],
    "history": lambda log, scratch: [log, "--out", f"{scratch}/tables"],
    "audit": lambda log, scratch: [log, "--digests", f"{scratch}/{_DIGESTS}"],
}
#: What the audit compares with: the digest of the controllers' own replay at the log's end, made before it is measured.
_DIGESTS: Final = "digests"
#: Records of the log that tells what a job costs before the first record of any other counts.
_START_RECORDS: Final = 10_000


class JobFailed(QuorateError):
    """A job that was to be measured did not run to its end."""


@dataclass(frozen=True, slots=True)
class MeasuredJob:
    """One run of one job."""

    job: str
    log: str
    records: int
    #: From the command to its end, and of that what the job takes for next to no records.
    wall_s: float
    start_s: float
    #: Of all processes, those of the start left out.
    processor_s: float
    #: Without the start, and with it.
    records_a_second: float
    records_a_second_in_all: float
    microseconds_a_record: float
    #: By kind of process.
    processes: dict[str, dict[str, float]]
    #: Where the job itself says that its workers' time went, in processor seconds.
    workers: dict[str, float]


@app.command()
def bench_pipeline(
    logs: Annotated[
        list[Path], typer.Argument(metavar="LOG...", help="Directories with logs from offset 0 on.", show_default=False)
    ],
    job: Annotated[list[str] | None, typer.Option(help=f"Of {', '.join(JOBS)}; may be repeated. Default: all.")] = None,
    runs: Annotated[int, typer.Option(min=1, help="Runs of each.")] = 1,
    master: Annotated[str, typer.Option(help="As the jobs take it.")] = "local[2]",
    driver_memory: Annotated[str, typer.Option(help="As the jobs take it.")] = "4g",
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document a run.")] = False,
) -> None:
    """Run jobs of the pipeline on logs, and print records a second, processor time a record, and memory.

    Each run is the command itself, Spark's start and all; what it takes for 10,000 records is measured first and taken
    off.
    Processor time is of all processes together. Memory is the most that one process of a kind had.
    The digest that audit compares with is made before, by the controllers' own replay: as long again as the audit.

    Example: scripts/generate-history --records 5000000 --segments 50 --out /tmp/h5
             scripts/bench-pipeline /tmp/h5 --job history
    """
    options = ["--master", master, "--driver-memory", driver_memory]
    unknown = sorted(set(job or ()) - JOBS.keys())
    if unknown:
        raise typer.BadParameter(f"{unknown[0]} is none of {', '.join(JOBS)}")
    try:
        with tempfile.TemporaryDirectory(prefix="bench-pipeline-") as made:
            small = Path(made, "log")
            make_history(GenerationPlan(_START_RECORDS, seed=1), small, lambda _: None)
            digests = {log: _digest_of(log) for log in (small, *logs) if "audit" in (job or JOBS)}
            for _ in range(runs):
                for name in job or JOBS:
                    start = _run_on(name, small, options, digests.get(small, ""))
                    for log in logs:
                        measured = _measured(name, log, start, _run_on(name, log, options, digests.get(log, "")))
                        print(json.dumps(asdict(measured)) if as_json else _text(measured), flush=True)
    except QuorateError as error:
        print(f"error: {error}", file=sys.stderr)
        raise typer.Exit(exit_codes.REFUSED) from error


@dataclass(frozen=True, slots=True)
class _Ran:
    wall_s: float
    processor_s: float
    processes: dict[str, dict[str, float]]
    #: Where the job says that its workers' time went, in processor seconds.
    workers: dict[str, float]


def _run(arguments: list[str]) -> _Ran:
    """Run one command of the pipeline to its end."""
    started = time.monotonic()
    with tempfile.TemporaryFile() as output:
        command = [sys.executable, "-P", "-m", "quorate.scripts.cli", "pipeline", *arguments]
        process = subprocess.Popen(command, stdout=output, start_new_session=True)
        try:
            with watch_tree(process.pid) as use:
                code = process.wait()
        except BaseException:
            os.killpg(process.pid, signal.SIGTERM)
            process.wait()
            raise
        wall = time.monotonic() - started
        output.seek(0)
        text = output.read().decode()
    if code != exit_codes.DONE:
        raise JobFailed(f"pipeline {arguments[0]} ended with exit code {code}")
    by_kind = use.by_kind()
    # Not what the kernel counts of ended children: Spark's Python workers are killed, and waited for by nobody.
    return _Ran(wall, sum(kind["processor_s"] for kind in by_kind.values()), by_kind, workers_of(text))


def workers_of(text: str) -> dict[str, float]:
    """A job's account of its workers at its end."""
    said = re.search(r"^Processor seconds of the workers: (.*?);", text, re.MULTILINE)
    if said is None:
        return {}
    return {name: float(spent) for name, spent in (part.rsplit(" ", 1) for part in said[1].split(", "))}


def _digest_of(log: Path) -> str:
    (end,) = states_at(log, [end_of(log)])
    return json.dumps(asdict(end))


def _run_on(job: str, log: Path, options: list[str], digest: str) -> _Ran:
    with tempfile.TemporaryDirectory(prefix="bench-pipeline-") as scratch:
        Path(scratch, _DIGESTS).write_text(digest, encoding="utf-8")
        return _run([job, *JOBS[job](str(log), scratch), *options])


def _measured(job: str, log: Path, start: _Ran, ran: _Ran) -> MeasuredJob:
    records = end_of(log)
    seconds, processor = max(ran.wall_s - start.wall_s, 0.01), ran.processor_s - start.processor_s
    return MeasuredJob(
        job=job,
        log=str(log),
        records=records,
        wall_s=round(ran.wall_s, 1),
        start_s=round(start.wall_s, 1),
        processor_s=round(processor, 1),
        records_a_second=round(records / seconds),
        records_a_second_in_all=round(records / ran.wall_s),
        microseconds_a_record=round(processor / records * 1e6, 2),
        processes=ran.processes,
        workers=ran.workers,
    )


def end_of(log: Path) -> int:
    """The end of the log: the number of its records."""
    *_, last = (file for file in find_files(log) if not file.is_checkpoint)
    end = last.offset or 0
    for batch in iter_batches(last):
        end = batch.header.end_offset
    return end


def _text(measured: MeasuredJob) -> str:
    after_start = measured.wall_s - measured.start_s
    rate = f"{measured.records_a_second:,} records/s"
    in_all = f"{measured.records_a_second_in_all:,} with it"
    lines = [
        f"{measured.job} of {measured.records:,} records ({measured.log})",
        f"  {rate}: {after_start:.1f} s after a start of {measured.start_s:.1f} s ({in_all})",
        f"  {measured.microseconds_a_record:.2f} us of processor time a record, {measured.processor_s:.1f} s in all",
    ]
    lines += [
        f"  {kind:<14}{use['processes']:>3.0f} of them{use['processor_s']:>9.1f} s{use['peak_mb']:>7.0f} MB at most"
        for kind, use in measured.processes.items()
    ]
    lines += [f"  workers: {name:<10}{spent:>8.1f} s" for name, spent in measured.workers.items()]
    return "\n".join(lines)


if __name__ == "__main__":
    run(app, sys.argv[1:], "scripts/bench-pipeline")
