"""Named scenarios of a single node that is not well, beside a majority that is: writes go on being acknowledged."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from quorate.scripts.simulation.quorum.minority import demand_a_write
from quorate.scripts.simulation.quorum.stage import QuorumStage

#: Virtual seconds for which a follower hears nothing of its leader: several election timeouts.
_DEAF_SECONDS: Final = 4.0
_FLAPS: Final = 4


def hung_leader_beside_one_follower(seed: int) -> None:
    """A leader reaches one follower only and its own disk hangs: nothing is committed, and nobody may depose it."""
    stage = QuorumStage(seed)
    stage.lead(0)
    stage.write_acknowledged(0)
    stage.world.network.cut |= _both_ways(stage, 0, 1)
    stage.nodes[0].hang_disk()
    stage.pass_time(1.0)
    stage.suppose(stage.leads(0), "its one follower keeps it in office")
    demand_a_write(stage.world, "though two of three nodes are well")
    stage.finish()


def deaf_follower(seed: int) -> None:
    """A follower does not hear the leader that the others hear, then loses all its connections again and again."""
    stage = QuorumStage(seed)
    stage.lead(0)
    stage.write_acknowledged(0)
    epoch, network = stage.epoch_of(0), stage.world.network
    network.cut.add((stage.nodes[0].node_id, stage.nodes[2].node_id))
    until = stage.world.scheduler.now + _DEAF_SECONDS
    while stage.world.scheduler.now < until:
        demand_a_write(stage.world, "though two of three nodes are well", seconds=0.5)
        stage.pass_time(0.3)
    for _ in range(_FLAPS):
        stage.cut((0, 1), (2,))
        stage.pass_time(1.2)
        network.cut.clear()
        for index in (0, 1):
            network.break_connection(stage.nodes[index].node_id, stage.nodes[2].node_id)
        demand_a_write(stage.world, "though two of three nodes are well", seconds=0.5)
        stage.pass_time(0.2)
    stage.claim(stage.leads(0) and stage.epoch_of(0) == epoch, "a single follower cost an election")
    stage.finish()


def _both_ways(stage: QuorumStage, one: int, other: int) -> set[tuple[int, int]]:
    a, b = stage.nodes[one].node_id, stage.nodes[other].node_id
    return {(a, b), (b, a)}


MINORITY_SCENARIOS: Final[dict[str, Callable[[int], None]]] = {
    "hung-leader-beside-one-follower": hung_leader_beside_one_follower,
    "deaf-follower": deaf_follower,
}
