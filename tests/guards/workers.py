"""How many workers run the tests, and which tests one of them gets together.

Tests that start clusters or servers mostly wait: for elections, timeouts, starts. So there is one worker more than
there are cores, and two of the workers have such tests, one after another each.
"""

from __future__ import annotations

import os
from pathlib import Path

_INTEGRATION = Path(__file__).parents[1] / "integration"

#: Folders of tests that would else have each other's cores, by group. Both groups take about as long.
_WAITING = {
    "clusters": ("clusters", "controllers", "guide", "kafka", "pipeline", "quorum"),
    "servers": (
        "access",
        "answers",
        "brokers",
        "cli",
        "client",
        "connections",
        "embedded",
        "http",
        "page",
        "plans",
        "shell",
    ),
}


def number_of_workers() -> int | None:
    """What ``-n auto`` means; None where the environment says another number."""
    return None if "PYTEST_XDIST_AUTO_NUM_WORKERS" in os.environ else len(os.sched_getaffinity(0)) + 1


def group_of(path: Path) -> str | None:
    """The group of a file's tests; None where they may run beside any others."""
    if "architecture" in path.parts:
        return "source"  # they share the syntax trees of all modules
    if _INTEGRATION not in path.parents:
        return None
    folder = path.parent.name
    # Those of the project wait for nothing, but those of a file may share a wheel.
    return next((group for group, folders in _WAITING.items() if folder in folders), path.stem)
