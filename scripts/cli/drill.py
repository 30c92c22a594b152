"""`quorate drill`: disasters rehearsed on real processes, with measured verdicts."""

from __future__ import annotations

import asyncio
import shutil
import sys
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Annotated, Final

import typer

from metadata_log.errors import QuorateError
from scripts.cli import exit_codes
from scripts.cli.arguments import AsJson
from scripts.cli.output import columns, reader_may_leave
from scripts.drills.outcome import Outcome
from scripts.drills.report import lines, page
from scripts.drills.runner import DRILLS, run_drill

app = typer.Typer(help="Rehearse disasters on real processes, and measure what they cost.", no_args_is_help=True)

_ALL: Final = "all"


Names = Annotated[list[str], typer.Argument(metavar="NAME...", help="Drills, or `all`. See: quorate drill list.")]
Expected = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME=AT_MOST", help="Another limit for what is measured, as outage_ms=200; again for more."),
]
On = Annotated[
    Path | None,
    typer.Option(
        "--on",
        metavar="DIR",
        help="A cluster of `quorate up` that does not run: it is started, damaged, healed, and stopped in order.",
    ),
]
Report = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="Keep results there: a page for people, and JSON that runs are compared by."),
]


class DrillRefused(QuorateError):
    """A report that cannot be written."""


@app.command("list")
def list_drills(as_json: AsJson = False) -> None:
    """List the drills with what each expects.

    Example: quorate drill list
    """
    with reader_may_leave():
        if as_json:
            import json

            rows = [
                {
                    "name": drill.name,
                    "hypothesis": drill.hypothesis,
                    "expectations": [one.model_dump() for one in drill.all_expectations],
                }
                for drill in DRILLS.values()
            ]
            sys.stdout.write(json.dumps(rows) + "\n")
            return
        for line in columns([(drill.name, drill.hypothesis) for drill in DRILLS.values()]):
            typer.echo(line)


@app.command()
def run(
    names: Names,
    expect: Expected = None,
    on: On = None,
    report: Report = None,
    as_json: AsJson = False,
) -> None:
    """Run drills, each on a cluster of real processes that is made for it and removed afterwards.

    With --on it runs on a cluster that is there already, which is healthy afterwards if the drill passed.

    A drill brings its cluster to a steady state, writes all the while, does its damage, repairs what a person would,
    and measures. Exit code 0: all that was expected holds; 1: something does not, or a drill could not be carried out.

    Examples:

      quorate drill run leader-kill

      quorate drill run all --report drills

      quorate drill run leader-kill --expect outage_ms=50
    """
    wanted = _wanted(names)
    stricter = dict(_limit(text, wanted) for text in expect or ())
    target = None if report is None else _made(report)
    outcomes: list[Outcome] = []
    for name in wanted:
        if sys.stderr.isatty():
            said = f"[{len(outcomes) + 1}/{len(wanted)}] {name}: {DRILLS[name].hypothesis}"
            sys.stderr.write(f"quorate: {said}\n")
        outcomes.append(asyncio.run(run_drill(DRILLS[name], stricter, partial(_keep_logs, name, target), on)))
        _show(outcomes[-1], as_json=as_json)
        if target is not None:
            _store(outcomes, target)
    passed = all(outcome.verdict == "passed" for outcome in outcomes)
    raise typer.Exit(exit_codes.DONE if passed else exit_codes.REFUSED)


def _store(outcomes: list[Outcome], target: Path) -> None:
    """After each drill, so that one that is broken off leaves a report of those before."""
    _write(target / f"{outcomes[-1].drill}.json", outcomes[-1].model_dump_json(indent=1) + "\n")
    _write(target / "report.html", page(outcomes))
    if len(outcomes) == 1:
        sys.stderr.write(f"quorate: the report is {target / 'report.html'}\n")


def _wanted(names: list[str]) -> list[str]:
    unknown = [name for name in names if name not in DRILLS and name != _ALL]
    if unknown:
        raise typer.BadParameter(f"{unknown[0]!r} is no drill; there are {', '.join(DRILLS)}, and all")
    return list(DRILLS) if _ALL in names else list(dict.fromkeys(names))


def _limit(text: str, wanted: list[str]) -> tuple[str, float]:
    name, separator, limit = text.partition("=")
    known = {one.name for drill in wanted for one in DRILLS[drill].all_expectations}
    try:
        value = float(limit)
    except ValueError:
        value = -1.0
    if not separator or not 0 <= value < float("inf"):
        raise typer.BadParameter(f"--expect {text!r}: say it as NAME=AT_MOST, a number from 0")
    if name not in known:
        raise typer.BadParameter(f"--expect {text!r}: these drills measure {', '.join(sorted(known))}")
    return name, value


def _made(report: Path) -> Path:
    target = report / datetime.now(UTC).strftime("%Y-%m-%dT%H-%M-%S")
    try:
        target.mkdir(parents=True)
    except OSError as error:
        raise DrillRefused(f"{target} cannot be made: {error.strerror}") from error
    return target


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise DrillRefused(f"{path} cannot be written: {error.strerror}") from error


def _keep_logs(name: str, target: Path | None, directory: Path) -> None:
    """What the processes of a drill said that did not pass."""
    if target is not None:
        shutil.copytree(directory / "logs", target / f"{name}-logs", dirs_exist_ok=True)


def _show(outcome: Outcome, *, as_json: bool) -> None:
    with reader_may_leave():
        if as_json:
            sys.stdout.write(outcome.model_dump_json() + "\n")
        else:
            sys.stdout.writelines(f"{line}\n" for line in lines(outcome))
