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

from quorate.metadata_log.errors import QuorateError
from quorate.scripts.cli.clusters.drill_places import place_of
from quorate.scripts.cluster.control import Act
from quorate.scripts.drills.outcome import DrillOutcome
from quorate.scripts.drills.places import NotHere, On
from quorate.scripts.drills.report import lines, page
from quorate.scripts.drills.runner import DRILLS, run_drill, skipped
from quorate.scripts.terminal import exit_codes
from quorate.scripts.terminal.arguments import AsJson
from quorate.scripts.terminal.output import reader_may_leave, show
from quorate.scripts.terminal.tables import columns

app = typer.Typer(help="Rehearse disasters on real processes, and measure what they cost.", no_args_is_help=True)

_ALL: Final = "all"


def _drill_names(incomplete: str) -> list[str]:
    return [name for name in (*DRILLS, _ALL) if name.startswith(incomplete)]


Names = Annotated[
    list[str],
    typer.Argument(metavar="NAME...", help="Drills, or `all`. See: quorate drill list.", autocompletion=_drill_names),
]
Expected = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME=AT_MOST", help="Another limit for what is measured, as outage_ms=200; again for more."),
]
OnCluster = Annotated[
    str | None,
    typer.Option(
        "--on",
        metavar="DIR|http://HOST:PORT,...",
        help="A cluster that is there already: the directory of `quorate up`, or addresses of controllers, whose "
        "processes are ended and started by the commands below.",
    ),
]
KillWith = Annotated[
    str | None,
    typer.Option(
        metavar="COMMAND",
        help="Kills a node of a named cluster. {host}, {id}, {kind} (controller, broker) and {name} are put in.",
    ),
]
StopWith = Annotated[str | None, typer.Option(metavar="COMMAND", help="Stops one in order (SIGTERM).")]
StartWith = Annotated[str | None, typer.Option(metavar="COMMAND", help="Starts one that was ended.")]
PauseWith = Annotated[str | None, typer.Option(metavar="COMMAND", help="Freezes one (SIGSTOP).")]
ResumeWith = Annotated[str | None, typer.Option(metavar="COMMAND", help="Thaws one that was frozen (SIGCONT).")]
Destroy = Annotated[
    bool,
    typer.Option(
        "--destroy",
        help="With --on DIR of a cluster that does not run: drills may change and take away its controllers' files.",
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
    """List the drills: what each does to a cluster, and what is expected.

    Drills that observe or kill may be run on a cluster that runs.

    Example: quorate drill list
    """
    with reader_may_leave():
        if as_json:
            import json

            rows = [
                {
                    "name": drill.name,
                    "hypothesis": drill.hypothesis,
                    "kind": drill.kind,
                    "acts": sorted(drill.acts),
                    "expectations": [one.model_dump() for one in drill.all_expectations],
                }
                for drill in DRILLS.values()
            ]
            sys.stdout.write(json.dumps(rows) + "\n")
            return
        for line in columns([(drill.name, drill.kind, drill.hypothesis) for drill in DRILLS.values()]):
            typer.echo(line)


@app.command()
def run(
    names: Names,
    expect: Expected = None,
    on: OnCluster = None,
    kill_with: KillWith = None,
    stop_with: StopWith = None,
    start_with: StartWith = None,
    pause_with: PauseWith = None,
    resume_with: ResumeWith = None,
    destroy: Destroy = False,
    report: Report = None,
    as_json: AsJson = False,
) -> None:
    """Run drills, each on a cluster of real processes that is made for it and removed afterwards, or --on another.

    A drill brings its cluster to a steady state, writes all the while, does its damage, repairs what a person would,
    and measures. A cluster that runs is only drilled by what observes or kills, and is afterwards as it was; one in a
    directory that does not run by what destroys its files only with --destroy.

    Exit code 0: all that was expected holds; 1: something does not, or a drill could not be carried out.

    Examples:

      quorate drill run leader-kill --expect outage_ms=50

      quorate drill run all --report drills

      quorate drill run leader-kill --on var

      quorate drill run leader-kill --on http://c1:8080 --kill-with "ssh {host} kill" --start-with "ssh {host} run"
    """
    wanted = _wanted(names)
    stricter = dict(_limit(text, wanted) for text in expect or ())
    commands: dict[Act, str | None] = {
        "kill": kill_with,
        "stop": stop_with,
        "start": start_with,
        "pause": pause_with,
        "resume": resume_with,
    }
    place = place_of(on, commands, [DRILLS[name] for name in wanted], may_destroy=destroy)
    target = None if report is None else _made(report)
    outcomes: list[DrillOutcome] = []
    for name in wanted:
        _announce(len(outcomes) + 1, len(wanted), name)
        outcomes.append(_run_one(name, stricter, target, place, may_skip=_ALL in names))
        _show(outcomes[-1], as_json=as_json)
        if target is not None:
            _store(outcomes, target)
    raise typer.Exit(_exit_code(outcomes))


def _announce(number: int, of: int, name: str) -> None:
    if sys.stderr.isatty():
        sys.stderr.write(f"quorate: [{number}/{of}] {name}: {DRILLS[name].hypothesis}\n")


def _exit_code(outcomes: list[DrillOutcome]) -> int:
    verdicts = {outcome.verdict for outcome in outcomes}
    return exit_codes.DONE if "passed" in verdicts <= {"passed", "skipped"} else exit_codes.REFUSED


def _run_one(name: str, stricter: dict[str, float], target: Path | None, on: On, *, may_skip: bool) -> DrillOutcome:
    """One drill; of all of them those that may not be run there are skipped. Ctrl-C ends it in order."""
    try:
        return asyncio.run(run_drill(DRILLS[name], stricter, partial(_keep_logs, name, target), on))
    except NotHere as refusal:
        if not may_skip:
            raise
        return skipped(DRILLS[name], str(refusal))
    except KeyboardInterrupt:
        sys.stderr.write(f"quorate: {name} was broken off by Ctrl-C, and has no outcome\n")
        raise


def _store(outcomes: list[DrillOutcome], target: Path) -> None:
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
    """Keep the logs of the processes of a drill that did not pass."""
    if target is not None:
        shutil.copytree(directory / "logs", target / f"{name}-logs", dirs_exist_ok=True)


def _show(outcome: DrillOutcome, *, as_json: bool) -> None:
    show(outcome, lines(outcome), as_json=as_json)
