"""``balance``: leaderships go back to preferred leaders in a large cluster, without holding up the loop."""

from __future__ import annotations

from typing import Final

from quorate.scripts.benchmarks.figures import BenchmarkOutcome, Figure, FigureTarget
from quorate.scripts.benchmarks.processes import brokers_sentence
from quorate.scripts.benchmarks.requests.decision_runs import partition_count, run_decisions
from quorate.scripts.benchmarks.workspace import Workspace

_PIECE_MS: Final = FigureTarget(100.0)


def run(workspace: Workspace) -> BenchmarkOutcome:
    """With the preferred leader back in sync, and with it still away."""
    runs, _ = run_decisions("balance", workspace)
    first = runs[0]
    return BenchmarkOutcome(
        f"one process, no HTTP, no log; an image of {partition_count(workspace):,} partitions, {brokers_sentence()}, "
        f"of which {first['changed']:,} are led by another than their preferred leader, which is in sync again; passes "
        "of at most 1,000 elections, each decided, encoded, decoded and replayed in one piece, until none is left "
        f"({first['pieces']} passes); and the same with the preferred leader still out of sync, where "
        f"{first['away']['pieces']} passes look and find nothing",
        (
            Figure("longest piece", "ms", tuple(1000 * run["longest_s"] for run in runs), (_PIECE_MS,)),
            Figure("all passes", "s", tuple(run["wall_s"] for run in runs)),
            Figure("... processor time", "s", tuple(run["cpu_s"] for run in runs)),
            Figure(
                "out of sync: longest piece", "ms", tuple(1000 * r["away"]["longest_s"] for r in runs), (_PIECE_MS,)
            ),
            Figure("out of sync: all passes", "s", tuple(run["away"]["wall_s"] for run in runs)),
            Figure("... processor time", "s", tuple(run["away"]["cpu_s"] for run in runs)),
        ),
    )
