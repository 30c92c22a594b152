"""The order of remedies: what costs least first, of that what brings most, and what brings nothing by itself last."""

from __future__ import annotations

import pytest

from quorate.controller.answers.explain import explain
from quorate.controller.answers.subjects import AskedPartitions
from tests.unit.controller.small_cluster import SmallCluster


class Enough(Exception):
    """Whoever asked has gone."""


def test_remedy_that_brings_a_leader_comes_before_one_that_brings_none_and_clean_before_unclean() -> None:
    cluster = SmallCluster(4)
    cluster.create("alone", [0])
    cluster.create("torn", [1, 2], configs={"unclean.leader.election.enable": "true"})
    cluster.create("held", [3, 2])
    for broker in (2, 1, 0):  # the last one in sync of `torn` is 1
        cluster.heartbeat(broker, want_fence=True)

    found = explain(AskedPartitions().scope(cluster.image), cluster.config, 1, {1: 77})

    told = [(one.code, one.broker, one.led_again, one.risk) for one in found.remedies]
    assert told == [
        ("START_BROKER", 0, 1, "NONE"),
        ("START_BROKER", 1, 1, "NONE"),
        ("START_BROKER", 2, 0, "NONE"),
    ]
    assert {one.broker: one.since_ms for one in found.symptoms[0].causes} == {0: None, 1: 77}


@pytest.mark.parametrize("steps", [1, 2, 3])
def test_remedies_are_tried_no_longer_than_somebody_waits_for_them(steps: int) -> None:
    """Each step of each try asks whether it is to go on: the second broker's are tried after the first one's."""
    cluster = SmallCluster(2)
    cluster.create("one", [0])
    cluster.create("two", [1])
    for broker in (0, 1):
        cluster.heartbeat(broker, want_fence=True)
    asked = 0

    def check() -> None:
        nonlocal asked
        asked += 1
        if asked == steps:
            raise Enough

    with pytest.raises(Enough):
        explain(AskedPartitions().scope(cluster.image), cluster.config, 1, {}, check)
    assert asked == steps
