"""One benchmark under several protections: measured in turn, and what each costs as a ratio."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from quorate.scripts.benchmarks.figures import BenchmarkOutcome, Figure
from quorate.scripts.benchmarks.protection import Protection, base_of, name_of

#: Measures once under a protection.
Measure = Callable[[Protection], BenchmarkOutcome]


@dataclass(frozen=True, slots=True)
class ComparedFigure:
    """One measured thing under one protection."""

    protection: Protection
    #: A sample a round.
    figure: Figure
    #: The same thing under what the protection is compared with.
    base: Figure

    @property
    def ratios(self) -> tuple[float, ...]:
        """The quotient of both samples of each round; none where there is nothing to divide by."""
        if self.protection == base_of(self.protection) or min(self.base.samples) <= 0:
            return ()
        return tuple(one / other for one, other in zip(self.figure.samples, self.base.samples, strict=True))

    def as_data(self) -> dict[str, Any]:
        """For ``--json``."""
        ratios = self.ratios
        ratio = {"to": name_of(base_of(self.protection)), "median": statistics.median(ratios)} if ratios else None
        return {
            **self.figure.as_data(),
            "with": name_of(self.protection),
            "ratio": ratio and {**ratio, "min": min(ratios), "max": max(ratios)},
        }


@dataclass(frozen=True, slots=True)
class Comparison:
    """All figures of one benchmark, each under all protections."""

    method: str
    figures: tuple[ComparedFigure, ...]


def compare(measure: Measure, protections: Sequence[Protection], rounds: int) -> Comparison:
    """Measure so many rounds: in each every protection once, in another order each time.

    So what the machine does besides, and how it changes meanwhile, is in all of them alike.

    Args:
        protections: among them what each of them is compared with.
    """
    found: dict[Protection, list[BenchmarkOutcome]] = {protection: [] for protection in protections}
    for number in range(rounds):
        first = number % len(protections)
        for protection in (*protections[first:], *protections[:first]):
            found[protection].append(measure(protection))
    merged = {protection: _merged(outcomes) for protection, outcomes in found.items()}
    figures = tuple(
        ComparedFigure(protection, merged[protection][place], merged[base_of(protection)][place])
        for place in range(len(merged[protections[0]]))
        for protection in protections
    )
    names = ", ".join(map(name_of, protections))
    method = (
        f"{found[protections[0]][0].method}. Compared: {names}; {rounds} rounds, in each of them one run of every one "
        "in turn, beginning with another each time; a ratio is that of both runs of a round, to nothing at all or, "
        "with quotas, to the same without them, and the figure is the median of the rounds"
    )
    return Comparison(method, figures)


def _merged(outcomes: Sequence[BenchmarkOutcome]) -> tuple[Figure, ...]:
    """The figures of several runs as one. Targets are for a cluster without protection, and of a whole run."""
    return tuple(
        replace(figure, samples=sum((outcome.figures[place].samples for outcome in outcomes), ()), targets=())
        for place, figure in enumerate(outcomes[0].figures)
    )
