"""How a leader stops: at once where another one leads its epoch, and never without telling its followers."""

from __future__ import annotations

import pytest

from quorate.quorum.errors import SecondLeader
from quorate.quorum.messages.messages import Append
from quorate.quorum.messages.wire import encode
from quorate.scripts.simulation.quorum.stage import QuorumStage


def test_leader_that_meets_another_one_of_its_epoch_refuses_it_and_stops() -> None:
    """A vote may have been forgotten: then both were elected, and each commits what the other does not have."""
    stage = QuorumStage(1)
    leader = stage.lead(0)
    stage.write_acknowledged(0)
    node, other = leader.node, stage.nodes[1].node_id
    assert node is not None
    epoch = node.epoch
    claim = Append(epoch, 1, 0, 0, 0, b"", (), is_vouched=False)

    with pytest.raises(SecondLeader, match=f"node {other} says that it leads epoch {epoch}"):
        node.receive(other, encode(claim))

    assert not node.is_leader
    stage.wait("a leader of a later epoch", lambda: stage.world.leaders() != [] and stage.epoch_of(0) > epoch)
    stage.finish()


def test_leader_that_resigns_is_succeeded_before_any_timeout() -> None:
    stage = QuorumStage(1)
    leader = stage.lead(0)
    stage.write_acknowledged(0)
    epoch = stage.epoch_of(0)

    leader.call(lambda node: node.resign(epoch))

    assert not stage.leads(0)
    soon = leader.config.timing.election_timeout_min / 2
    stage.wait("another leader", lambda: any(stage.leads(index) for index in (1, 2)), soon)
    stage.finish()
