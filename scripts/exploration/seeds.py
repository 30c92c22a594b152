"""Seeds of the simulations that no run of the tests has tried."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from quorate.scripts.exploration.findings import Finding
from quorate.scripts.simulation import command as quorum
from quorate.scripts.simulation.seed_runs import SeedOutcome, run_seeds
from quorate.scripts.simulation.system import command as system

#: Of each kind: rounds have seeds of their own, and none has one of the tests', which are small.
_SEEDS_OF_A_ROUND: Final = 1_000
#: Begun together, so that the end of an exploration is not far off when its time is over.
_PIECE: Final = 10


@dataclass(frozen=True, slots=True)
class SimulationKind:
    """One of the two simulations."""

    name: str
    #: Of a seed, and the directory for the story of one that fails.
    attempt: Callable[[int, Path], SeedOutcome[Any]]
    again: Callable[[int], str]
    #: Where the tests have theirs.
    test: str
    #: In a round: each takes a few tenths of a second.
    count: int


def _attempt_quorum(seed: int, stories: Path) -> SeedOutcome[Any]:
    return quorum.attempt(seed)


def _attempt(kind: SimulationKind, stories: Path, seed: int) -> SeedOutcome[Any]:
    return kind.attempt(seed, stories)


KINDS: Final = (
    SimulationKind("quorum", _attempt_quorum, quorum.again, "tests/simulation/test_simulation.py", 200),
    SimulationKind("system", system.attempt, system.again, "tests/simulation/test_system.py", 60),
)


def try_seeds(kind: SimulationKind, round_seed: int, directory: Path, jobs: int, deadline: float) -> int:
    """Run the seeds of a round; those that fail are written to the directory. Returns how many came to their end.

    Args:
        deadline: of ``time.monotonic``; nothing begins behind it.

    Raises:
        KeyboardInterrupt: Ctrl-C was pressed; what had begun has come to its end.
    """
    first, tried = (round_seed + 1) * _SEEDS_OF_A_ROUND, 0

    def failed(outcome: SeedOutcome[Any]) -> None:
        _finding(kind, outcome).write(directory)

    for start in range(first, first + kind.count, _PIECE):
        if time.monotonic() >= deadline:
            break
        piece = range(start, min(start + _PIECE, first + kind.count))
        runs = run_seeds(partial(_attempt, kind, directory / "stories"), piece, jobs, failed)
        tried += runs.done
        if runs.is_broken_off:
            raise KeyboardInterrupt
    return tried


def _finding(kind: SimulationKind, outcome: SeedOutcome[Any]) -> Finding:
    return Finding(
        name=f"{kind.name}-seed-{outcome.seed}",
        again=kind.again(outcome.seed),
        keep=f"add {outcome.seed} to FIXED_SEEDS in {kind.test}; once it is understood, make it a scenario",
        story=outcome.failure or "",
    )
