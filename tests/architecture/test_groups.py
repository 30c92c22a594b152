"""Tests of a group run in one worker: those that start processes would else have each other's cores."""

import os
from pathlib import Path

import pytest

from tests.guards.workers import PROCESSES, group_of

_TESTS = Path(__file__).parents[1]
_GROUP = "together"


@pytest.mark.xdist_group(_GROUP)
@pytest.mark.skipif("PYTEST_XDIST_WORKER" not in os.environ, reason="all tests run in one process")
def test_groups_are_known_to_what_hands_tests_out(request: pytest.FixtureRequest) -> None:
    """It looks for them in the names of tests; where pytest does not let it put them there, it says nothing."""
    assert request.node.nodeid.endswith(f"@{_GROUP}")


def test_all_that_start_processes_are_one_group_but_those_of_the_project() -> None:
    """Which share something by file, or nothing."""
    found = {path: group_of(path) for path in (_TESTS / "integration").rglob("test_*.py")}

    assert {path.parent.name for path, group in found.items() if group != PROCESSES} == {"project"}
    assert all(group == path.stem for path, group in found.items() if path.parent.name == "project")
    assert group_of(_TESTS / "unit" / "broker" / "test_settings.py") is None
