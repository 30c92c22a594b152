"""The job's findings, in lines."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from quorate.controller.planning.validator import Spread
from quorate.pipeline.planning.summary import PlanSummary


def plan_lines(summary: PlanSummary) -> list[str]:
    """Return a plan's figures as sentences."""
    verdict = summary.verdict
    takers = sum(one.role == "takes" for one in summary.brokers)
    lines = [
        f"{summary.partitions:,} partitions, {summary.replicas:,} replicas. Brokers that take replicas: {takers}"
        + "".join(_roles(summary))
        + ".",
        f"Replicas a broker: {_spread(verdict.replicas_before)}, with the plan {_spread(verdict.replicas)}"
        + ("." if verdict.replicas.is_even else ", the evenest that the racks allow."),
        f"Preferred leaders a broker: {_spread(verdict.leaders_before)}, with the plan {_spread(verdict.leaders)}.",
        f"Partitions in fewer racks than they could be in: {summary.rack_rule_broken_before:,}, with the plan 0.",
    ]
    if summary.lost:
        lines.append(
            f"Replicas in lost log directories: {summary.lost:,}; the plan moves {summary.lost_moved:,} of them, the "
            "others count where they are and wait for their brokers."
        )
    if summary.in_motion:
        lines.append(f"{summary.in_motion} reassignments are open: counted where they end.")
    if not summary.changed:
        return [*lines, "There is nothing to do."]
    bound = "" if summary.fewest_moves is None else f"; no plan as even needs fewer than {summary.fewest_moves:,}"
    bytes_moved = "" if summary.bytes_moved is None else f" ({summary.bytes_moved:,.0f} bytes)"
    lines.append(
        f"Replica moves of the plan: {summary.moves:,}{bytes_moved}{bound}. Partitions that it names: "
        f"{summary.changed:,}; only their order changes in {summary.reordered:,} of them."
    )
    return lines


def file_lines(files: Sequence[Path]) -> list[str]:
    """Return what to do with the files of a plan."""
    if not files:
        return []
    names = str(files[0]) if len(files) == 1 else f"{files[0]} to {files[-1].name}, one after the other"
    return [
        f"Written: {names}.",
        f"Carry it out with: quorate reassign apply {files[0]} --wait",
        "Then: quorate elect --type preferred --all",
    ]


def _spread(spread: Spread) -> str:
    return f"{spread.lowest:,} to {spread.highest:,}"


def _roles(summary: PlanSummary) -> list[str]:
    said = {"keeps": "keeping what they have", "drained": "drained"}
    found = []
    for role, what in said.items():
        ids = [str(one.broker) for one in summary.brokers if one.role == role]
        if ids:
            others = f" and {len(ids) - 10} others" if len(ids) > 10 else ""
            found.append(f"; {what}: {', '.join(ids[:10])}{others}")
    return found
