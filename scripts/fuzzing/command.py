"""``scripts/fuzz``: mutated inputs for every reader of bytes."""

from __future__ import annotations

import resource
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Annotated, Final

import typer

from quorate.scripts.fuzzing.corpus import Corpus, make_corpus
from quorate.scripts.fuzzing.running import Tally, run_inputs
from quorate.scripts.fuzzing.targets import TARGETS
from quorate.scripts.worker_pool import worker_pool

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
#: Inputs that a worker is given at once.
_PIECE: Final = 500
#: A worker that wants more memory than this gets a MemoryError, which is no typed error.
_MEMORY_BYTES_MAX: Final = 4 * 1024**3
#: On a terminal, how often the state is said (seconds).
_PROGRESS_SECONDS: Final = 1.0


@app.command()
def fuzz(
    inputs: Annotated[int, typer.Option(min=1, help="Inputs, of each target an equal share.")] = 100_000,
    seconds: Annotated[float, typer.Option(min=0, help="Begin nothing new after so long; 0: no limit.")] = 0.0,
    target: Annotated[str | None, typer.Option(help=f"One of: {', '.join(TARGETS)}. All of them if unset.")] = None,
    seed: Annotated[int, typer.Option(help="Another seed, other inputs.")] = 0,
    first: Annotated[int, typer.Option(min=0, help="Number of the first input, of each target.")] = 0,
    jobs: Annotated[int, typer.Option(min=1, help="Processes.")] = 1,
    findings: Annotated[Path, typer.Option(help="Directory for inputs that went wrong.")] = Path("var/fuzz"),
) -> None:
    """Feed mutated inputs to whatever reads bytes: the answer must be a typed error or a correct result, and soon.

    scripts/fuzz --inputs 20000 --target log
    """
    if target is not None and target not in TARGETS:
        raise typer.BadParameter(f"{target} is none of: {', '.join(TARGETS)}")
    names = list(TARGETS) if target is None else [target]
    pieces = _pieces(names, first, -(-inputs // len(names)))
    began = time.monotonic()
    totals = {name: Counter[str]() for name in names}
    failed = 0
    for name, tally in _tallies(pieces, seed, jobs, seconds):
        totals[name] += tally.counts
        failed += _report(tally, seed, findings)
        _progress(totals, began)
    for name, counts in totals.items():
        said = ", ".join(f"{counts[what]:,} {what}" for what in ("refused", "taken", "wrong"))
        print(f"{name:16} {sum(counts.values()):>9,} inputs: {said}")
    print(f"{sum(map(Counter.total, totals.values())):,} inputs, {failed} wrong, {time.monotonic() - began:.0f} s")
    sys.exit(1 if failed else 0)


def _pieces(names: list[str], first: int, count: int) -> Iterator[tuple[str, range]]:
    """All targets in turn, so that a run that is cut short has tried each."""
    for begin in range(first, first + count, _PIECE):
        for name in names:
            yield name, range(begin, min(begin + _PIECE, first + count))


def _tallies(pieces: Iterator[tuple[str, range]], seed: int, jobs: int, seconds: float) -> Iterator[tuple[str, Tally]]:
    ends_at = time.monotonic() + seconds if seconds else float("inf")
    with worker_pool(jobs, _bound_memory) as pool:
        waiting: dict[Future[Tally], str] = {}
        while True:
            room = 2 * jobs - len(waiting) if time.monotonic() < ends_at else 0
            waiting |= {pool.submit(_run, name, seed, numbers): name for name, numbers in islice(pieces, room)}
            if not waiting:
                return
            done, _ = wait(waiting, return_when=FIRST_COMPLETED)
            for future in done:
                yield waiting.pop(future), future.result()


def _bound_memory() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES_MAX, _MEMORY_BYTES_MAX))


@cache
def _corpus() -> Corpus:
    return make_corpus()


def _run(target: str, seed: int, numbers: range) -> Tally:
    return run_inputs(target, _corpus(), seed, numbers)


def _report(tally: Tally, seed: int, findings: Path) -> int:
    for finding in tally.findings:
        findings.mkdir(parents=True, exist_ok=True)
        path = findings / f"{finding.target}-{seed}-{finding.number}.bin"
        path.write_bytes(finding.data)
        again = f"scripts/fuzz --target {finding.target} --seed {seed} --first {finding.number} --inputs 1"
        print(f"{finding.failure}\ninput {finding.number} of {finding.target} is in {path}; again with: {again}")
    return len(tally.findings)


def _progress(totals: dict[str, Counter[str]], began: float) -> None:
    if sys.stderr.isatty():
        done, took = sum(map(Counter.total, totals.values())), time.monotonic() - began
        print(f"\r{done:,} inputs, {done / took:,.0f} a second ", end="", file=sys.stderr, flush=True)
