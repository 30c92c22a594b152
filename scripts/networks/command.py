"""``scripts/netsim``: controllers, brokers and clients in network namespaces, on networks that fail."""

from __future__ import annotations

import shutil
import sys
from functools import partial
from pathlib import Path
from typing import Annotated, Final

import typer

from quorate.scripts.drills.outcome import DrillOutcome
from quorate.scripts.drills.report import lines
from quorate.scripts.networks.figures import figures
from quorate.scripts.networks.runner import RunOptions, run_once
from quorate.scripts.networks.scenarios import SCENARIOS
from quorate.scripts.terminal import exit_codes

#: Nothing was run, for namespaces are not allowed here: what test runners take for "skipped".
NOT_HERE: Final = 77
_ALL: Final = "all"

app = typer.Typer(
    help="Controllers, brokers and clients as real processes in network namespaces, on a network that fails.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


@app.command("list")
def list_scenarios() -> None:
    """List the scenarios: how long the fault lasts, what is claimed, and the figures that are held against limits.

    Example: scripts/netsim list
    """
    for scenario in SCENARIOS.values():
        typer.echo(f"{scenario.name} ({scenario.seconds:g} s)\n  {scenario.claim}")
        for one in scenario.all_expectations:
            typer.echo(f"    {one.name}: {one.meaning}, at most {one.at_most:g}")


@app.command()
def run(
    context: typer.Context,
    names: Annotated[
        list[str], typer.Argument(metavar="NAME...", help="Scenarios, or `all`. See: scripts/netsim list.")
    ],
    runs: Annotated[int, typer.Option(min=1, max=1_000, help="Runs of each, every one on a new cluster.")] = 1,
    voters: Annotated[int, typer.Option(min=3, max=9, help="Controllers.")] = 3,
    brokers: Annotated[int, typer.Option(min=2, max=8, help="Brokers.")] = 2,
    seed: Annotated[int, typer.Option(help="Of what the network and the clients do; each run adds one.")] = 0,
    seconds: Annotated[
        float | None, typer.Option(min=0.1, max=7_200.0, help="How long the fault lasts, instead of its own time.")
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Keep each run's result as JSON, and the logs of those that fail."),
    ] = None,
) -> None:
    """Run scenarios, and print what each measured; of several runs the least, the median and the most.

    Every machine has a namespace and an address of its own; a switch of ours forwards their frames, and loses, delays,
    reorders or swallows them as the scenario says. Four clients keep their connections and read and change topics
    through all controllers; a probe writes over a new connection ten times a second. All that the four saw must be
    linearizable, and each run proves on a damaged copy that the checker finds what is wrong.

    A figure of connections that stand (every_client_s) tells how soon clients notice that theirs are dead; that of the
    probes (next_write_s) how soon the controllers take writes.

    Exit code 0: all that was expected holds; 1: something does not; 77: nothing was run, for this machine gives us no
    namespaces. Nothing outside the namespaces is touched, and nothing is left of them.

    Examples:

      scripts/netsim run switch-outage --runs 10

      scripts/netsim run loss --voters 5 --seconds 60 --seed 7

      scripts/netsim run all --report var/netsim
    """
    wanted = _wanted(names)
    if context.obj is not None:
        sys.stderr.write(f"netsim: skipped, no namespaces here: {context.obj}\n")
        raise typer.Exit(NOT_HERE)
    if report is not None:
        report.mkdir(parents=True, exist_ok=True)
    options = [RunOptions(voters, brokers, seed + number, seconds) for number in range(runs)]
    outcomes = [_run_one(name, one, report) for name in wanted for one in options]
    typer.echo(f"\n{'':28}{'least':>10}{'median':>10}{'most':>10}")
    for line in figures(outcomes):
        typer.echo(line)
    raise typer.Exit(exit_codes.DONE if all(one.verdict == "passed" for one in outcomes) else exit_codes.REFUSED)


def _run_one(name: str, options: RunOptions, report: Path | None) -> DrillOutcome:
    """One run, with its story on standard output as soon as it is over."""
    sys.stderr.write(f"netsim: {name}, seed {options.seed}: {SCENARIOS[name].claim}\n")
    outcome = run_once(SCENARIOS[name], options, partial(_keep_logs, report, f"{name}-{options.seed}"))
    sys.stdout.writelines(f"{line}\n" for line in lines(outcome))
    sys.stdout.flush()
    if report is not None:
        text = outcome.model_dump_json(indent=1) + "\n"
        (report / f"{name}-{options.seed}.json").write_text(text, encoding="utf-8")
    return outcome


def _wanted(names: list[str]) -> list[str]:
    unknown = [name for name in names if name not in SCENARIOS and name != _ALL]
    if unknown:
        raise typer.BadParameter(f"{unknown[0]!r} is no scenario; there are {', '.join(SCENARIOS)}, and all")
    return list(SCENARIOS) if _ALL in names else list(dict.fromkeys(names))


def _keep_logs(report: Path | None, name: str, directory: Path) -> None:
    """Keep the logs of the processes of a run that did not pass."""
    if report is not None:
        shutil.copytree(directory / "logs", report / f"{name}-logs", dirs_exist_ok=True)
