"""Named scenarios of the network: what TCP keeps to itself, and how soon the quorum is of use again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from quorate.scripts.simulation.quorum.damaged_frames import stretched
from quorate.scripts.simulation.quorum.stage import QUIET, QuorumStage

_STREAMS: Final = replace(QUIET, is_stream=True)
_DAMAGED_WRITES: Final = 60
#: Two silences, and time to dial.
_HEARD_AGAIN_SECONDS: Final = 3.0


def switch_outage(seed: int) -> None:
    """Nothing passes between any two machines for half a minute: TCP has backed off, and would wait as long again."""
    stage = QuorumStage(seed, options=_STREAMS)
    stage.lead(0)
    stage.write_acknowledged(0)
    stage.cut((0,), (1,), (2,))
    stage.pass_time(31.0)
    stage.suppose(not stage.world.leaders(), "nobody leads without a majority")
    stage.world.network.cut.clear()
    _claim_next_write(stage, 3.0)
    stage.finish()


def forgotten_connection(seed: int) -> None:
    """A router has forgotten the idle connection of two followers; then their leader dies."""
    stage = QuorumStage(seed, options=_STREAMS)
    stage.lead(0)
    stage.write_acknowledged(0)
    stage.world.network.forget(stage.nodes[1].node_id, stage.nodes[2].node_id)
    stage.pass_time(5.0)
    stage.suppose(stage.world.leaders() == [stage.nodes[0]], "the leader does not notice")
    stage.crash(0)
    _claim_next_write(stage, 1.5)
    stage.restart(0)
    stage.finish()


def swallowed_leader(seed: int) -> None:
    """From one moment on nothing passes to or from the leader, on connections that stay."""
    stage = QuorumStage(seed, options=_STREAMS)
    stage.lead(0)
    stage.write_acknowledged(0)
    for index in (1, 2):
        stage.world.network.forget(stage.nodes[0].node_id, stage.nodes[index].node_id)
    stage.wait("another leader", lambda: any(node is not stage.nodes[0] for node in stage.world.leaders()), 2.0)
    stage.finish()


def leader_without_power(seed: int) -> None:
    """The leader's machine loses its power: no socket says so. It comes back, and its peers' ends are half open."""
    stage = QuorumStage(seed, options=_STREAMS)
    stage.lead(1)
    stage.write_acknowledged(1)
    stage.crash(1, is_power_cut=True)
    _claim_next_write(stage, 2.0)
    stage.restart(1)
    stage.finish()


def leader_gone_between_two_epochs(seed: int) -> None:
    """The leader dies while a voter with a shorter log is an epoch ahead: who has the longer one must lead.

    It knows the leader of its epoch, who is dead, and cannot win a vote in an epoch that the other has reached.
    """
    stage = QuorumStage(seed)
    stage.lead(0)
    stage.cut((0, 1), (2,))
    ahead = stage.nodes[2].node
    assert ahead is not None
    # It had won a Pre-Vote, and its vote requests were lost with the link.
    ahead._core.adopt_epoch(ahead.epoch + 1)
    stage.write_acknowledged(0)
    stage.pass_time(0.3)
    stage.crash(0)
    stage.mend()
    _claim_next_write(stage, 3.0)
    stage.restart(0)
    stage.finish()


def damaged_frames(seed: int) -> None:
    """Many a frame arrives with other bytes: its connection ends and is made again, and writes go on."""
    stage = QuorumStage(seed, options=replace(_STREAMS, damage=0.05))
    stage.wait("a leader", lambda: bool(stage.world.leaders()))
    for _ in range(_DAMAGED_WRITES):
        _claim_next_write(stage, 3.0)
        stage.pass_time(0.01)
    stage.finish()


def stretched_frame(seed: int) -> None:
    """A follower is told of a frame that is longer than it is: all that its leader says next belongs to that.

    The connection is given up for it before an election comes of it, or soon afterwards.
    """
    stage = QuorumStage(seed, options=_STREAMS)
    leader, deaf = stage.lead(0), stage.nodes[2]
    stage.write_acknowledged(0)
    connection = stage.world.network.connection(deaf.node_id, leader.node_id)
    assert connection is not None
    deaf._receive(connection.number, leader.node_id, stretched())
    stage.write_acknowledged(0)
    stage.suppose(stage.end_of(2) < stage.end_of(0), "the follower does not hear of the write")
    is_heard = stage.world.run_until(
        lambda: deaf.node is not None and deaf.node.applied_end >= stage.end_of(0), _HEARD_AGAIN_SECONDS
    )
    stage.claim(is_heard, "the follower hears nobody of what was committed")
    stage.claim(not deaf.knows(connection.number, leader.node_id), "the connection that got stuck is still there")
    stage.finish()


def _claim_next_write(stage: QuorumStage, seconds: float) -> None:
    """A write is acknowledged within so long."""
    begun = stage.world.scheduler.now
    count = len(stage.world.checks.acknowledged)
    stage.world.write_until(count + 1)
    is_done = stage.world.run_until(lambda: len(stage.world.checks.acknowledged) > count, seconds)
    took = stage.world.scheduler.now - begun
    stage.claim(is_done, f"no write was acknowledged in {took:.2f} s")


NETWORK_SCENARIOS: Final[dict[str, Callable[[int], None]]] = {
    "switch-outage": switch_outage,
    "forgotten-connection": forgotten_connection,
    "swallowed-leader": swallowed_leader,
    "leader-without-power": leader_without_power,
    "damaged-frames": damaged_frames,
    "stretched-frame": stretched_frame,
    "leader-gone-between-two-epochs": leader_gone_between_two_epochs,
}
