"""Runs of ``decision_process``, and what their methods have in common."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any, Final

from quorate.metadata_log.errors import QuorateError
from quorate.scripts.benchmarks.workspace import Workspace

_PARTITIONS: Final = 1_000_000
#: Of the smallest cluster: each of twelve brokers leads some.
_PARTITIONS_MIN: Final = 1_200
_TIMEOUT_S: Final = 600.0


def partition_count(workspace: Workspace) -> int:
    """Partitions of the cluster."""
    return workspace.scaled(_PARTITIONS, _PARTITIONS_MIN)


def run_decisions(name: str, workspace: Workspace) -> tuple[list[dict[str, Any]], int]:
    """The results of each run, and the rows of a slice; see ``decision_process``."""
    count = partition_count(workspace)
    workspace.say(f"{name}: {workspace.runs} runs on {count:,} partitions in a fresh process")
    command = [
        sys.executable,
        "-P",
        "-m",
        "quorate.scripts.benchmarks.programs.decision_process",
        name,
        str(count),
        str(workspace.runs),
    ]
    if workspace.profile_directory is not None:
        command.append(str(workspace.profile_directory / f"{name}.prof"))
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=_TIMEOUT_S)
    if done.returncode != 0:
        raise QuorateError(f"the deciding process failed: {done.stderr.strip()}")
    found = json.loads(done.stdout)
    return found["runs"], int(found["rows_per_slice"])
