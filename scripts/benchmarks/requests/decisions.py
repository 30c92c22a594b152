"""``decisions``: what a leader's ``alter_partition`` costs the controller, by the size of its batch."""

from __future__ import annotations

from typing import Final

from quorate.scripts.benchmarks.figures import BenchmarkOutcome, Figure, FigureTarget
from quorate.scripts.benchmarks.processes import brokers_sentence
from quorate.scripts.benchmarks.requests.decision_runs import partition_count, run_decisions
from quorate.scripts.benchmarks.workspace import Workspace

_BULK: Final = "10000"


def run(workspace: Workspace) -> BenchmarkOutcome:
    """All sizes in each run."""
    runs, _ = run_decisions("decisions", workspace)
    bulk = runs[0][_BULK]["partitions"]

    def microseconds(size: str, clock: str) -> tuple[float, ...]:
        return tuple(1e6 * run[size][clock] for run in runs)

    def rate(clock: str) -> tuple[float, ...]:
        return tuple(bulk / run[_BULK][clock] for run in runs)

    return BenchmarkOutcome(
        f"one process, no HTTP, no log; an image of {partition_count(workspace):,} partitions, {brokers_sentence()}; "
        "alter_partition requests in columns, as they arrive: one leader asks neighbours among the partitions that it "
        f"leads to lose one ISR member each, 1, 100 or {bulk:,} partitions a request; decided and encoded; the sample "
        "of a run is the median of 400, 100 or 9 requests at random places",
        (
            Figure("1 partition", "µs", microseconds("1", "wall_s"), (FigureTarget(300),)),
            Figure("1 partition, processor time", "µs", microseconds("1", "cpu_s")),
            Figure("100 partitions", "µs", microseconds("100", "wall_s")),
            Figure("100 partitions, processor time", "µs", microseconds("100", "cpu_s")),
            Figure(f"changes in batches of {bulk:,}", "/s", rate("wall_s"), (FigureTarget(1_000_000, is_most=False),)),
            Figure("... by processor time", "/s", rate("cpu_s")),
        ),
    )
