"""Tests of a group run in one worker: those that start clusters would else have each other's cores."""

import os
from pathlib import Path

import pytest

from tests.guards.workers import group_of

_TESTS = Path(__file__).parents[1]
_GROUP = "together"


@pytest.mark.xdist_group(_GROUP)
@pytest.mark.skipif("PYTEST_XDIST_WORKER" not in os.environ, reason="all tests run in one process")
def test_groups_are_known_to_what_hands_tests_out(request: pytest.FixtureRequest) -> None:
    """It looks for them in the names of tests; where pytest does not let it put them there, it says nothing."""
    assert request.node.nodeid.endswith(f"@{_GROUP}")


def test_folders_of_integration_are_one_of_two_groups_but_that_of_the_project() -> None:
    found = {path: group_of(path) for path in (_TESTS / "integration").rglob("test_*.py")}

    alone = {path for path, group in found.items() if group == path.stem}
    assert {path.parent.name for path in alone} == {"project"}
    assert {found[path] for path in found.keys() - alone} == {"clusters", "servers"}
    assert group_of(_TESTS / "unit" / "broker" / "test_settings.py") is None
