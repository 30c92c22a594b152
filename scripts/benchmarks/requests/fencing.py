"""``fencing``: one broker with a quarter of a million replicas is fenced, in one process."""

from __future__ import annotations

from quorate.scripts.benchmarks.figures import BenchmarkOutcome, Figure
from quorate.scripts.benchmarks.processes import brokers_sentence
from quorate.scripts.benchmarks.requests.decision_runs import partition_count, run_decisions
from quorate.scripts.benchmarks.workspace import Workspace


def run(workspace: Workspace) -> BenchmarkOutcome:
    """``broker-loss`` measures the same with log, network and followers."""
    runs, rows_per_slice = run_decisions("fencing", workspace)

    def seconds(name: str) -> tuple[float, ...]:
        return tuple(float(run[name]) for run in runs)

    return BenchmarkOutcome(
        f"one process, no HTTP, no log; an image of {partition_count(workspace):,} partitions, {brokers_sentence()}; a "
        f"heartbeat asks to fence one broker, which changes {runs[0]['changed']:,} partitions: decided, encoded, "
        f"decoded and replayed in {runs[0]['pieces']} slices of at most {rows_per_slice:,}, each one turn of the loop",
        (
            Figure("all slices", "s", seconds("wall_s")),
            Figure("... processor time", "s", seconds("cpu_s")),
            Figure("of it deciding", "s", seconds("decide_s")),
            Figure("of it encoding", "s", seconds("encode_s")),
            Figure("of it decoding and replaying", "s", seconds("replay_s")),
            Figure("longest slice", "ms", tuple(1000 * run["longest_s"] for run in runs)),
            Figure("partition changes", "/s", tuple(run["changed"] / run["wall_s"] for run in runs)),
        ),
    )
