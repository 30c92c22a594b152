"""What goes wrong behind a commit ends the node: nothing is skipped, and nothing more is acknowledged."""

from __future__ import annotations

import pytest

from quorate.quorum.host import CommittedBatches
from quorate.scripts.simulation.quorum.checks import Violation
from quorate.scripts.simulation.quorum.stage import QuorumStage


@pytest.mark.parametrize("error", [ValueError("a bug"), KeyError("a bug"), MemoryError("a bug")], ids=repr)
def test_listener_that_raises_ends_the_node(error: Exception) -> None:
    stage = QuorumStage(1)
    stage.lead(0)
    stage.write_acknowledged(0)
    follower = stage.nodes[1]
    assert follower.machine is not None
    asked: list[CommittedBatches] = []

    def on_commit(batches: CommittedBatches) -> None:
        asked.append(batches)
        raise error

    follower.machine.on_commit = on_commit  # type: ignore[method-assign]
    stage.write(0)
    with pytest.raises(Violation, match=f"node {follower.node_id} stopped: {type(error).__name__}"):
        stage.pass_time(0.2)

    node = follower.node
    assert node is not None
    assert node.pump() == float("inf"), "it acts no more"
    assert len(asked) == 1


def test_callback_of_a_read_that_raises_ends_the_node() -> None:
    stage = QuorumStage(1)
    leader = stage.lead(0)

    def done(outcome: object) -> None:
        raise ValueError("a bug")

    leader.call(lambda node: node.read_barrier(done))
    with pytest.raises(Violation, match=f"node {leader.node_id} stopped: ValueError"):
        stage.pass_time(0.2)
