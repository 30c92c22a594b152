"""``load``: the image of a large cluster from a checkpoint, in a fresh process."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

from quorate.metadata_log.errors import QuorateError
from quorate.scripts.benchmarks.figures import BenchmarkOutcome, Figure, FigureTarget
from quorate.scripts.benchmarks.large_cluster import BROKERS, PARTITIONS_PER_TOPIC, large_image, write_checkpoint
from quorate.scripts.benchmarks.workspace import Workspace

_PARTITIONS: Final = 1_000_000
_TIMEOUT_S: Final = 60.0


def run(workspace: Workspace) -> BenchmarkOutcome:
    """One fresh process a run."""
    count = workspace.scaled(_PARTITIONS, PARTITIONS_PER_TOPIC)
    workspace.say(f"load: writing a checkpoint of {count:,} partitions")
    checkpoint = write_checkpoint(workspace.directory, large_image(count))
    loads = []
    for number in range(workspace.runs):
        loads.append(_load(checkpoint, count))
        workspace.say(f"load: {number + 1} of {workspace.runs}: {loads[-1]['elapsed_s']:.2f} s")
    megabytes = checkpoint.stat().st_size / 1e6
    return BenchmarkOutcome(
        f"a Kafka-format checkpoint of {count:,} partitions in topics of {PARTITIONS_PER_TOPIC}, {BROKERS} brokers, "
        f"factor 3, {megabytes:.0f} MB, in the page cache; timed in a fresh process from after its imports to the "
        "whole image; memory is the growth of the process's resident set, all of the image included",
        (
            Figure("time", "s", tuple(load["elapsed_s"] for load in loads), (FigureTarget(1.0),)),
            Figure("processor time", "s", tuple(load["cpu_s"] for load in loads)),
            Figure(
                "memory per partition",
                "B",
                tuple(load["resident_bytes"] / count for load in loads),
                (FigureTarget(120),),
            ),
            Figure("columns per partition", "B", tuple(load["column_bytes"] / count for load in loads)),
        ),
    )


def _load(checkpoint: Path, count: int) -> dict[str, Any]:
    command = [sys.executable, "-P", "-m", "quorate.scripts.benchmarks.programs.load_process", str(checkpoint)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=_TIMEOUT_S)
    if done.returncode != 0:
        raise QuorateError(f"the loading process failed: {done.stderr.strip()}")
    found: dict[str, Any] = json.loads(done.stdout)
    if found["partitions"] != count:
        raise QuorateError(f"loaded {found['partitions']} partitions instead of {count}")
    return found
