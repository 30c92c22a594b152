"""One measurement of one drill over all its runs, in figures and in words. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from statistics import median
from typing import Any, Final

from quorate.pipeline.pages import HtmlPage, over_time

_ROWS_SHOWN: Final = 500
#: The last run against the median of those before: beyond that it is worth a word.
_NOTABLE: Final = 1.5


@dataclass(frozen=True, slots=True)
class DrillRun:
    """One value that one run measured; None: it did not get so far."""

    begun_at_ms: int
    verdict: str
    value: float | None


@dataclass(frozen=True, slots=True)
class DrillSeries:
    """All runs of one drill, as far as one measurement is concerned, the oldest first."""

    drill: str
    name: str
    meaning: str
    #: Of the last run.
    at_most: float
    runs: tuple[DrillRun, ...]

    @property
    def values(self) -> list[float]:
        return [run.value for run in self.runs if run.value is not None]

    @property
    def change(self) -> float | None:
        """The last value as a multiple of the median of those before; None where there is nothing to compare."""
        *before, last = self.values or [0.0]
        usual = median(before) if before else 0.0
        return last / usual if usual else None

    def as_json(self) -> dict[str, Any]:
        values = self.values
        return {
            "drill": self.drill,
            "name": self.name,
            "meaning": self.meaning,
            "at_most": self.at_most,
            "runs": len(self.runs),
            "passed": sum(run.verdict == "passed" for run in self.runs),
            "median": median(values) if values else None,
            "worst": max(values, default=None),
            "last": self.runs[-1].value,
            "change": self.change,
        }


def lines(series: Sequence[DrillSeries]) -> list[str]:
    """A drill after the other, a line a measurement."""
    said: list[str] = []
    for drill, measured in _by_drill(series).items():
        said.append(f"{drill}: {_passed(measured)}")
        said += map(_line, measured)
    return said or ["There is no outcome of a drill."]


def _line(one: DrillSeries) -> str:
    if not one.values:
        return f"  {one.meaning}: never measured"
    told = one.as_json()
    last = "not measured" if told["last"] is None else f"{told['last']:g}"
    text = f"  {one.meaning}: last {last}, median {told['median']:g}, worst {told['worst']:g}, at most {one.at_most:g}"
    return text + (f": {one.change:.1f} times the usual" if one.change and one.change > _NOTABLE else "")


def _by_drill(series: Iterable[DrillSeries]) -> dict[str, list[DrillSeries]]:
    found: dict[str, list[DrillSeries]] = {}
    for one in series:
        found.setdefault(one.drill, []).append(one)
    return found


def _passed(measured: Sequence[DrillSeries]) -> str:
    """Every measurement of a drill has the same runs."""
    runs = measured[0].runs
    return f"{sum(run.verdict == 'passed' for run in runs)} of {len(runs)} runs passed"


def page(series: Iterable[DrillSeries]) -> HtmlPage:
    """A section a drill: what its runs measured, over time."""
    made = HtmlPage("Drills over time", "what each run measured beside what it expected")
    found = _by_drill(series)
    if not found:
        made.text("There is no outcome of a drill.")
    for drill, measured in found.items():
        made.section(drill, f"{_passed(measured)}.")
        names = ["measured", "expected at most", "last", "median", "worst", "times the usual"]
        rows = [[told[key] for key in ("meaning", "at_most", "last", "median", "worst", "change")]
                for told in (one.as_json() for one in measured)]  # fmt: skip
        made.table("Measurements", names, rows, rows_max=_ROWS_SHOWN)
        for one in measured:
            points = [(run.begun_at_ms, run.value) for run in one.runs if run.value is not None]
            if len(points) > 1 and any(value for _, value in points):
                times = [datetime.fromtimestamp(ms / 1000, UTC) for ms, _ in points]
                made.plot(one.meaning, over_time(times, {one.name: [value for _, value in points]}))
    return made
