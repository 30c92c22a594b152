"""A benchmark's results: figures with their spread, each beside its target."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

_MEDIAN: Final = 50


@dataclass(frozen=True, slots=True)
class FigureTarget:
    """A bound that a percentile of the samples must keep."""

    bound: float
    #: Whether the figure must not be above the bound; else not below it.
    is_most: bool = True
    percentile: int = _MEDIAN
    #: What the figure is like elsewhere, or when the bound applies.
    note: str = ""

    def is_reached(self, samples: Sequence[float]) -> bool:
        """Whether these samples keep it."""
        value = percentile(samples, self.percentile)
        return value <= self.bound if self.is_most else value >= self.bound

    def text(self, unit: str) -> str:
        """``p90 ≤ 0.25 s``."""
        of = "" if self.percentile == _MEDIAN else f"p{self.percentile} "
        return f"{of}{'≤' if self.is_most else '≥'} {number(self.bound)} {unit}"


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured thing: a sample a run."""

    name: str
    unit: str
    samples: tuple[float, ...]
    targets: tuple[FigureTarget, ...] = ()

    @property
    def median(self) -> float:
        """Of the samples."""
        return statistics.median(self.samples)

    @property
    def is_reached(self) -> bool | None:
        """Whether all targets are; None where there is none."""
        return all(target.is_reached(self.samples) for target in self.targets) if self.targets else None

    def as_data(self) -> dict[str, Any]:
        """For ``--json``."""
        return {
            "name": self.name,
            "unit": self.unit,
            "median": self.median,
            "p90": percentile(self.samples, 90),
            "min": min(self.samples),
            "max": max(self.samples),
            "samples": list(self.samples),
            "targets": [
                {
                    "percentile": target.percentile,
                    "at_most" if target.is_most else "at_least": target.bound,
                    "note": target.note,
                    "is_reached": target.is_reached(self.samples),
                }
                for target in self.targets
            ],
        }


@dataclass(frozen=True, slots=True)
class BenchmarkOutcome:
    """All figures of one benchmark."""

    #: How it was measured, sizes included: enough to measure it again.
    method: str
    figures: tuple[Figure, ...]


def percentile(samples: Sequence[float], percent: int) -> float:
    """Median for 50; else the smallest sample that at least ``percent`` of the samples do not exceed."""
    if percent == _MEDIAN:
        return statistics.median(samples)
    ordered = sorted(samples)
    return ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)]


def number(value: float) -> str:
    """Three significant digits, thousands separated."""
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}"
