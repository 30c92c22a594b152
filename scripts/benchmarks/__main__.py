"""``scripts/bench``: measures what docs/benchmarks.md promises, on this machine."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Annotated, Any, Final

import typer
from rich.console import Console

from quorate.metadata_log.errors import QuorateError
from quorate.scripts.benchmarks.catalog import BENCHMARKS, Benchmark
from quorate.scripts.benchmarks.comparison import Comparison, compare
from quorate.scripts.benchmarks.figures import BenchmarkOutcome
from quorate.scripts.benchmarks.machine import MachineDescription, examine
from quorate.scripts.benchmarks.protection import NOTHING, Protection, Safeguard, name_of, variants
from quorate.scripts.benchmarks.report import print_machine, print_outcome
from quorate.scripts.benchmarks.workspace import Workspace, temporary_directory
from quorate.scripts.terminal.process_log import configure_log

_RUNS: Final = 5
_REFUSED: Final = 1
#: Columns: a table row is never broken, whatever the output goes to.
_WIDTH: Final = 160

_Seconds = Annotated[
    float | None,
    typer.Option(
        min=1, help="How long a run takes: stopped-follower (20), heartbeats (10), a part of ten-million (60)"
    ),
]
_Partitions = Annotated[
    int | None,
    typer.Option(min=1, max=20_000_000, help="Of ten-million and large-image; default: 10,000,000 x --scale."),
]
_Profile = Annotated[
    Path | None, typer.Option(help="Directory for profiles of the measured processes; they are slower then.")
]

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def bench(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="NAME", help=f"Of {', '.join(b.name for b in BENCHMARKS)}; default: all."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document instead of tables.")] = False,
    directory: Annotated[
        Path, typer.Option("--dir", help="A directory on the disk to measure; what is made there is removed again.")
    ] = Path("var"),
    runs: Annotated[
        int, typer.Option(min=1, help="Runs of each; the targets are about medians of at least 5.")
    ] = _RUNS,
    scale: Annotated[
        float, typer.Option(min=0.0001, max=1.0, help="Factor on amounts of data and work; the targets are about 1.")
    ] = 1.0,
    seconds: _Seconds = None,
    partitions: _Partitions = None,
    profile: _Profile = None,
    tls: Annotated[bool, typer.Option("--tls", help="Compare: with TLS on all ports, and without.")] = False,
    acls: Annotated[bool, typer.Option("--acls", help="Compare: with ACLs that decide, and without.")] = False,
    quotas: Annotated[bool, typer.Option("--quotas", help="Compare: with client quotas too, and without.")] = False,
) -> None:
    """Measure Quorate on this machine's disk: real processes on loopback, each figure beside its target.

    With --tls, --acls or --quotas the price of these is measured: nothing and each combination in turn, --runs rounds,
    and how often as much each figure is.

    Examples: scripts/bench commit failover --dir /mnt/nvme; scripts/bench heartbeats create --tls --acls
    """
    asked = _asked({Safeguard.TLS: tls, Safeguard.ACLS: acls, Safeguard.QUOTAS: quotas})
    chosen = _chosen(names or [], asked)
    # What is measured may say something; standard output is for figures.
    configure_log("warning", "console")
    console = Console(width=_WIDTH)
    outcomes: list[tuple[Benchmark, BenchmarkOutcome | Comparison]] = []
    with temporary_directory(directory) as own:
        machine = examine(own)
        if not as_json:
            print_machine(console, machine)
        for benchmark in chosen:
            outcome = _measured(benchmark, Workspace(own, runs, scale, profile, seconds, partitions), asked)
            outcomes.append((benchmark, outcome))
            if not as_json:
                print_outcome(console, benchmark.name, benchmark.what, outcome)
        machine = replace(machine, directory=str(directory))
    if as_json:
        print(json.dumps(_document(machine, runs, scale, outcomes), indent=2))


def _asked(switches: Mapping[Safeguard, bool]) -> Protection:
    return Protection(safeguard for safeguard, is_asked in switches.items() if is_asked)


def _measured(benchmark: Benchmark, workspace: Workspace, asked: Protection) -> BenchmarkOutcome | Comparison:
    if workspace.profile_directory is not None:
        workspace.profile_directory.mkdir(parents=True, exist_ok=True)

    def measure(runs: int, protection: Protection) -> BenchmarkOutcome:
        if asked:
            workspace.say(f"{benchmark.name}: with {name_of(protection)}")
        with temporary_directory(workspace.directory) as place:
            return benchmark.run(replace(workspace, directory=place, runs=runs, protection=protection))

    if not asked:
        return measure(workspace.runs, NOTHING)
    return compare(partial(measure, 1), variants(asked & benchmark.safeguards), workspace.runs)


def _chosen(names: list[str], asked: Protection) -> list[Benchmark]:
    known = {benchmark.name: benchmark for benchmark in BENCHMARKS}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise typer.BadParameter(f"{unknown[0]!r} is none of {', '.join(known)}")
    if not asked:
        return [known[name] for name in names] or list(BENCHMARKS)
    able = [name for name, benchmark in known.items() if benchmark.safeguards & asked]
    unable = [name for name in names if name not in able]
    if unable:
        option = " and ".join(f"--{safeguard.name.lower()}" for safeguard in Safeguard if safeguard in asked)
        raise typer.BadParameter(f"{unable[0]!r} does not go with {option}, but {', '.join(able)} do")
    return [known[name] for name in names or able]


def _document(
    machine: MachineDescription,
    runs: int,
    scale: float,
    outcomes: list[tuple[Benchmark, BenchmarkOutcome | Comparison]],
) -> dict[str, Any]:
    return {
        "machine": machine.as_data(),
        "runs": runs,
        "scale": scale,
        "benchmarks": [
            {
                "name": benchmark.name,
                "what": benchmark.what,
                "method": outcome.method,
                "figures": [figure.as_data() for figure in outcome.figures],
            }
            for benchmark, outcome in outcomes
        ],
    }


def _interrupt(number: int, frame: FrameType | None) -> None:
    # A plain SIGTERM would skip what stops the processes and removes the directories.
    raise KeyboardInterrupt


def _first(errors: BaseException) -> BaseException:
    """One of the errors in a group of groups: the others follow from it, or are like it."""
    while isinstance(errors, BaseExceptionGroup):
        errors = errors.exceptions[0]
    return errors


def main() -> None:
    """Run; errors raised on purpose become one sentence and an exit code."""
    signal.signal(signal.SIGTERM, _interrupt)
    failure: BaseException | None = None
    try:
        app(prog_name="scripts/bench")
    except* QuorateError as errors:
        failure = _first(errors)
    if failure is not None:
        sys.stderr.write(f"bench: {failure}\n")
        sys.exit(_REFUSED)


if __name__ == "__main__":
    main()
