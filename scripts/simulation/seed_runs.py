"""Many seeds on several processes: results as they come, a line of progress, and an end that Ctrl-C may bring."""

from __future__ import annotations

import logging
import signal
import sys
import time
from collections import deque
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field
from types import FrameType
from typing import Final, Generic, Self, TypeVar

from quorate.scripts.worker_pool import worker_pool

#: On a terminal, how often the state of a long run is said (seconds).
_PROGRESS_SECONDS: Final = 1.0
#: Seeds that wait or run, for each process.
_AHEAD: Final = 3
#: Exit code of a run that Ctrl-C ended.
CTRL_C: Final = 130

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class SeedOutcome(Generic[R]):
    """The outcome of one seed: its result, or the error that ended it."""

    seed: int
    result: R | None
    failure: str | None


@dataclass(slots=True)
class SeedRuns(Generic[R]):
    """The outcomes of all seeds. A run that was broken off has fewer outcomes than seeds."""

    results: list[R] = field(default_factory=list)
    failed: int = 0
    seconds: float = 0.0
    is_broken_off: bool = False

    @property
    def done(self) -> int:
        """Seeds that came to their end."""
        return len(self.results) + self.failed


def run_seeds(
    attempt: Callable[[int], SeedOutcome[R]], seeds: range, jobs: int, tell_failure: Callable[[SeedOutcome[R]], None]
) -> SeedRuns[R]:
    """Attempt every seed; ``tell_failure`` prints what is known of one that failed, as soon as it did.

    What the simulated nodes log is not shown, unless it is of one seed alone.
    """
    runs: SeedRuns[R] = SeedRuns()
    progress = _Progress(len(seeds))
    begin = say_nothing if len(seeds) > 1 else lambda: None
    with _CtrlC() as ctrl_c, worker_pool(jobs, begin) as pool:
        for outcome in _outcomes(pool, attempt, seeds, jobs * _AHEAD, ctrl_c):
            if outcome.result is not None:
                runs.results.append(outcome.result)
            else:
                runs.failed += 1
                progress.clear()
                tell_failure(outcome)
            progress.at(runs.done, runs.failed)
    progress.clear()
    runs.seconds = progress.seconds
    if ctrl_c.is_pressed:
        runs.is_broken_off = True
        print(f"stopped after {runs.done} of {len(seeds)} seeds", file=sys.stderr)
    return runs


def run_mutations(names: Collection[str], find: Callable[[str], tuple[str, str | None]], jobs: int, seeds: int) -> int:
    """Say of each mutation who noticed it; how many nobody did. ``find`` tries scenarios and so many ``seeds``."""
    missed = 0
    with worker_pool(jobs, say_nothing) as pool:
        for name, found in pool.map(find, names):
            missed += found is None
            print(f"{name:28} {found or f'NOT NOTICED by any scenario and {seeds} seeds'}", flush=True)
    print(f"{len(names)} mutations, {missed} not noticed")
    return missed


def _outcomes(
    pool: Executor, attempt: Callable[[int], SeedOutcome[R]], seeds: range, ahead: int, ctrl_c: _CtrlC
) -> Iterator[SeedOutcome[R]]:
    """In the order of the seeds; after Ctrl-C only those that had begun."""
    waiting: deque[Future[SeedOutcome[R]]] = deque()
    for seed in seeds:
        if ctrl_c.is_pressed:
            break
        waiting.append(pool.submit(attempt, seed))
        if len(waiting) >= ahead:
            yield waiting.popleft().result()
    for future in waiting:
        if not (ctrl_c.is_pressed and future.cancel()):
            yield future.result()


class _CtrlC:
    """Notes the first Ctrl-C, as an executor that is interrupted anywhere may wait for ever. The second ends all."""

    def __init__(self) -> None:
        self.is_pressed = False

    def __enter__(self) -> Self:
        self._before = signal.signal(signal.SIGINT, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        signal.signal(signal.SIGINT, self._before)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.is_pressed = True
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def say_nothing() -> None:
    """Drop what simulated nodes log in this process."""
    # A handler that drops everything; without any, Python prints what is severe.
    logging.getLogger().addHandler(logging.NullHandler())


class _Progress:
    """A line that is written over, on a terminal only."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._began = self._said = time.monotonic()
        self._is_shown = sys.stderr.isatty()

    @property
    def seconds(self) -> float:
        """Since it began."""
        return time.monotonic() - self._began

    def at(self, done: int, failed: int) -> None:
        """So many seeds are done."""
        if self._is_shown and time.monotonic() - self._said >= _PROGRESS_SECONDS:
            self._said = time.monotonic()
            rate = 60 * done / self.seconds
            said = f"\r{done} of {self._count} seeds, {failed} failed, {rate:.0f} a minute "
            print(said, end="", file=sys.stderr, flush=True)

    def clear(self) -> None:
        """Take the line away."""
        if self._is_shown:
            print("\r\033[K", end="", file=sys.stderr, flush=True)
