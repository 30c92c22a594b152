"""Outcomes for people. The JSON form is made by the command from the same data."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from typing import Final

from rich.console import Console
from rich.table import Table

from quorate.scripts.benchmarks.comparison import ComparedFigure, Comparison
from quorate.scripts.benchmarks.figures import BenchmarkOutcome, Figure, number
from quorate.scripts.benchmarks.machine import MachineDescription
from quorate.scripts.benchmarks.protection import name_of

_MEASURED: Final = ("figure", "median", "min", "max", "runs", "target", "")
_COMPARED: Final = ("figure", "with", "median", "min", "max", "rounds", "ratio", "from, to")
_NUMBERS: Final = frozenset({"median", "min", "max", "runs", "rounds", "ratio"})


def print_machine(console: Console, machine: MachineDescription) -> None:
    """Print the machine that the numbers below it were measured on."""
    console.print(machine.sentence(), highlight=False, soft_wrap=True)


def print_outcome(console: Console, name: str, what: str, outcome: BenchmarkOutcome | Comparison) -> None:
    """One benchmark: its method, and a row per figure, where protections are compared one for each of them."""
    console.print(f"\n[bold]{name}[/bold]  {what}", highlight=False, soft_wrap=True)
    console.print(f"method: {outcome.method}", highlight=False, soft_wrap=True)
    if isinstance(outcome, Comparison):
        console.print(_table(_COMPARED, map(_compared_row, outcome.figures)))
        return
    console.print(_table(_MEASURED, map(_row, outcome.figures)))
    for figure in outcome.figures:
        for target in figure.targets:
            if target.note:
                console.print(f"{figure.name}: {target.note}", highlight=False, soft_wrap=True)


def _table(headings: Iterable[str], rows: Iterable[tuple[str, ...]]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for heading in headings:
        table.add_column(heading, no_wrap=True, justify="right" if heading in _NUMBERS else "left")
    for row in rows:
        table.add_row(*row)
    return table


def _row(figure: Figure) -> tuple[str, ...]:
    verdict = {True: "reached", False: "MISSED", None: ""}[figure.is_reached]
    return (
        figure.name,
        f"{number(figure.median)} {figure.unit}",
        number(min(figure.samples)),
        number(max(figure.samples)),
        str(len(figure.samples)),
        ", ".join(target.text(figure.unit) for target in figure.targets),
        verdict,
    )


def _compared_row(compared: ComparedFigure) -> tuple[str, ...]:
    figure, ratios = compared.figure, compared.ratios
    return (
        figure.name,
        name_of(compared.protection),
        f"{number(figure.median)} {figure.unit}",
        number(min(figure.samples)),
        number(max(figure.samples)),
        str(len(figure.samples)),
        f"x {number(statistics.median(ratios))}" if ratios else "",
        f"{number(min(ratios))} to {number(max(ratios))}" if ratios else "",
    )
