"""``scripts/test --explore``."""

from __future__ import annotations

import os
import random
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Final

import typer

from quorate.scripts.exploration.findings import heading, written
from quorate.scripts.exploration.properties import run_tests
from quorate.scripts.exploration.seeds import KINDS, try_seeds
from quorate.scripts.terminal import exit_codes

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
SEED_MAX: Final = 999_999_999
#: Tests that start no process, and whose verdict may hang on their order.
_IN_ANOTHER_ORDER: Final = ("-m", "not hypothesis", "tests/unit", "tests/golden")


@app.command()
def explore(
    tests: Annotated[
        list[str] | None,
        typer.Argument(metavar="PATH", help="Files or directories: only the properties there, and no seeds."),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(min=0, max=SEED_MAX, help="Where it begins. Drawn and printed if unset.")
    ] = None,
    minutes: Annotated[float, typer.Option(min=0.01, max=10_080, help="It ends after so long.")] = 10.0,
    out: Annotated[Path, typer.Option(help="Directory for findings, one of its own for each run.")] = Path(
        "var/explore"
    ),
) -> None:
    """Try what no run of the tests has tried, until the time is over or something is found.

    Round after round, each with the next seed: every property on examples drawn anew, and more of them; seeds of the
    simulated quorum and of the simulated system; the other tests in another order. The same seed tries the same.

    The round that finds something is the last one. Each finding is a file that says how to run it again and how to keep
    it: the line @example(...) to write above a test, or the seed to add to a test's list. Nothing is kept elsewhere.

    Exit codes: 0 nothing was found, 1 something was found, 2 a mistake in the arguments, 130 ended by Ctrl-C.

    scripts/test --explore --minutes 60

    scripts/test --explore --seed 4711 tests/property/snapshots
    """
    first = random.SystemRandom().randint(0, SEED_MAX) if seed is None else seed
    directory = out.resolve() / f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-seed-{first}"
    deadline = time.monotonic() + 60 * minutes
    rounds = 0
    try:
        while time.monotonic() < deadline and not written(directory):
            rounds += 1
            _round((first + rounds - 1) % (SEED_MAX + 1), tests or [], directory, deadline, rounds)
    except KeyboardInterrupt:
        _say(f"ended by Ctrl-C in round {rounds}")
        _tell(directory)
        sys.exit(exit_codes.INTERRUPTED)
    found = _tell(directory)
    _say(f"rounds from seed {first}: {rounds}, findings: {found}")
    sys.exit(exit_codes.REFUSED if found else exit_codes.DONE)


def _round(seed: int, tests: list[str], directory: Path, deadline: float, number: int) -> None:
    jobs = os.cpu_count() or 1
    _say(f"round {number}, which scripts/test --explore --seed {seed} begins with: properties")
    run_tests(["-m", "hypothesis", *(tests or ["tests"])], seed, directory, deadline)
    if tests:
        return
    for kind in KINDS:
        tried = try_seeds(kind, seed, directory, jobs, deadline)
        _say(f"round {number}: {tried} seeds of the simulated {kind.name}")
    if time.monotonic() < deadline:
        _say(f"round {number}: the other tests in another order")
        run_tests(_IN_ANOTHER_ORDER, seed, directory, deadline)


def _tell(directory: Path) -> int:
    """Show what was found, and return how much that is."""
    found = written(directory)
    for path in found:
        _say(f"found, all of it in {path}:\n{heading(path)}")
    return len(found)


def _say(text: str) -> None:
    # On a line of its own, wherever what ran before was interrupted.
    print(f"\n== {text}", flush=True)
