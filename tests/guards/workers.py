"""Which tests run in one worker, and which step back for others.

Tests that start processes mostly wait for them: for elections, timeouts, starts. So there is one worker more than there
are cores; but only one of the workers has such tests, and the cores are its own when it wants them.
"""

from __future__ import annotations

import functools
import os
from pathlib import Path

import pytest

_PROJECT = Path(__file__).parents[1] / "integration" / "project"

#: The group of those for which it matters how soon a process gets a core.
PROCESSES = "processes"

#: Added to what a worker of other tests has: a third of the processes' share where there is not enough for both.
_NICENESS = 5


def number_of_workers() -> int | None:
    """What ``-n auto`` means; None where the environment says another number."""
    return None if "PYTEST_XDIST_AUTO_NUM_WORKERS" in os.environ else len(os.sched_getaffinity(0)) + 1


def group_of(path: Path) -> str | None:
    """The group of a file's tests; xdist begins with the one that has most tests, the processes."""
    if _PROJECT in path.parents:
        return path.stem  # they measure nothing, but those of a file may share a wheel
    if "integration" in path.parts:
        return PROCESSES
    # They share the syntax trees of all modules.
    return "source" if "architecture" in path.parts else None


@functools.cache
def step_back() -> None:
    """Have this worker, and what its tests start, yield to the processes of another; once, and until it ends."""
    os.nice(_NICENESS)


def is_in(group: str, item: pytest.Item) -> bool:
    """Whether a worker has this test because of that group."""
    return any(mark.args == (group,) for mark in item.iter_markers("xdist_group"))
