"""Tests of a group run in one worker: those that start processes would else have each other's cores."""

import os

import pytest

_GROUP = "together"


@pytest.mark.xdist_group(_GROUP)
@pytest.mark.skipif("PYTEST_XDIST_WORKER" not in os.environ, reason="all tests run in one process")
def test_groups_are_known_to_what_hands_tests_out(request: pytest.FixtureRequest) -> None:
    """It looks for them in the names of tests; where pytest does not let it put them there, it says nothing."""
    assert request.node.nodeid.endswith(f"@{_GROUP}")
