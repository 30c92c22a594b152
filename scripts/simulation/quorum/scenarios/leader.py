"""Limits on a leader: no answers before its epoch has committed something, nor when no other voter is with it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from quorate.scripts.simulation.quorum.stage import QuorumStage

#: Check-quorum takes 0.75 s.
_RESIGNS_WITHIN: Final = 1.2


def read_at_once_behind_an_election(seed: int) -> None:
    """A leader that has just been elected does not know yet what was acknowledged before: a read must wait."""
    stage = QuorumStage(seed)
    stage.lead(0)
    stage.write_acknowledged(0)
    stage.pass_time(0.3)
    end = stage.write_acknowledged(0)
    stage.crash(0)
    for index in (1, 2):
        node = stage.nodes[index].node
        assert node is not None
        stage.suppose(node.high_watermark < end, "nobody else knows that it was acknowledged")
    stage.stand(1)
    stage.wait("another leader", lambda: stage.leads(1) or stage.leads(2), 1.0)
    stage.world.read(stage.nodes[1 if stage.leads(1) else 2])
    stage.pass_time(0.3)
    stage.restart(0)
    stage.finish()


def leader_beside_a_node_without_memory(seed: int) -> None:
    """Of three voters one is down and one has no vote: the leader can commit nothing, and lets no read wait for it."""
    stage = QuorumStage(seed)
    stage.lead(0)
    stage.write_acknowledged(0)
    stage.world.wipe(stage.nodes[1])
    stage.crash(2)
    stage.restart(1)
    leader = stage.nodes[0].node
    assert leader is not None
    stage.wait("the node without memory", lambda: stage.nodes[1].node_id in stage.nodes[0]._connections, 0.5)
    stage.suppose(stage.leads(0), "node 0 still leads")
    stage.world.read(stage.nodes[0])
    stage.pass_time(_RESIGNS_WITHIN)
    stage.claim(not stage.leads(0), "a leader that can commit nothing leads on")
    stage.claim(not leader._barrier, "a read waits that nobody will confirm")
    stage.restart(2)
    stage.finish()


LEADER_SCENARIOS: Final[dict[str, Callable[[int], None]]] = {
    "read-at-once-behind-an-election": read_at_once_behind_an_election,
    "leader-beside-a-node-without-memory": leader_beside_a_node_without_memory,
}
