"""Figures over several runs: the least, the median and the most of each. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median

from quorate.scripts.drills.outcome import DrillOutcome


def figures(outcomes: Sequence[DrillOutcome]) -> Iterator[str]:
    """Lines for each scenario that was run, in the order of its first run."""
    for name in dict.fromkeys(outcome.drill for outcome in outcomes):
        runs = [outcome for outcome in outcomes if outcome.drill == name]
        passed = sum(run.verdict == "passed" for run in runs)
        yield f"{name}: {passed} of {len(runs)} passed"
        for figure in dict.fromkeys(figure for run in runs for figure in _values(run)):
            values = [values[figure] for run in runs if figure in (values := _values(run))]
            least, middle, most = (_text(value) for value in (min(values), median(values), max(values)))
            yield f"  {figure:<26}{least:>10}{middle:>10}{most:>10}   of {len(values)}{_limit(runs[0], figure)}"


def _values(run: DrillOutcome) -> dict[str, float]:
    measured = {one.expectation.name: one.value for one in run.measured if one.value is not None}
    noted = {name: value for name, value in run.noted.items() if isinstance(value, int | float) and name != "seed"}
    return {**measured, **noted}


def _limit(run: DrillOutcome, figure: str) -> str:
    limits = [one.expectation.at_most for one in run.measured if one.expectation.name == figure]
    return f", expected at most {limits[0]:g}" if limits else ""


def _text(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) else f"{value:,.2f}"
