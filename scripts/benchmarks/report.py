"""Outcomes for people. The JSON form is made by the command from the same data."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from quorate.scripts.benchmarks.figures import BenchmarkOutcome, Figure, number
from quorate.scripts.benchmarks.machine import MachineDescription


def print_machine(console: Console, machine: MachineDescription) -> None:
    """Print the machine that the numbers below it were measured on."""
    console.print(machine.sentence(), highlight=False, soft_wrap=True)


def print_outcome(console: Console, name: str, what: str, outcome: BenchmarkOutcome) -> None:
    """One benchmark: its method, and a row per figure."""
    console.print(f"\n[bold]{name}[/bold]  {what}", highlight=False, soft_wrap=True)
    console.print(f"method: {outcome.method}", highlight=False, soft_wrap=True)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for heading in ("figure", "median", "min", "max", "runs", "target", ""):
        table.add_column(
            heading, no_wrap=True, justify="right" if heading in ("median", "min", "max", "runs") else "left"
        )
    for figure in outcome.figures:
        table.add_row(*_row(figure))
    console.print(table)
    for figure in outcome.figures:
        for target in figure.targets:
            if target.note:
                console.print(f"{figure.name}: {target.note}", highlight=False, soft_wrap=True)


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
