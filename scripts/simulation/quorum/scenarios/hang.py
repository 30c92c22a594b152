"""Named scenarios of disks that hang or have no room: what waits for them stays within its bound, and others lead."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from quorate.quorum.node import QuorumNode
from quorate.scripts.simulation.quorum.stage import QUIET, QuorumStage

#: Bytes that may wait for a disk; a message holds a few hundred.
_BOUND: Final = 20_000
_OPTIONS: Final = replace(QUIET, unwritten_bytes=_BOUND, append_bytes=500, payload_bytes_max=400, resident_bytes=3_000)
#: Bytes of batches beyond the bound: the message that reaches it, and what a leader takes within one turn.
_SLACK: Final = 2_000
_WRITES: Final = 300
#: More than messages may wait.
_ROUNDS: Final = 1_500


def _node(stage: QuorumStage, index: int) -> QuorumNode:
    node = stage.nodes[index].node
    assert node is not None
    return node


def _waiting(stage: QuorumStage, index: int) -> int:
    storage = stage.nodes[index].storage
    assert storage is not None
    return storage.log.unwritten_bytes


def _bounded(stage: QuorumStage, index: int) -> None:
    waiting = _waiting(stage, index)
    stage.claim(waiting <= _BOUND + _SLACK, f"{waiting} bytes wait for the disk of node {index}, {_BOUND} are the most")


def follower_disk_hangs(seed: int) -> None:
    """A follower's disk hangs under writes: its memory is bounded, the others commit, and it catches up afterwards."""
    stage = QuorumStage(seed, options=_OPTIONS)
    stage.lead(0)
    stage.write_acknowledged(0)
    stage.nodes[2].hang_disk()
    epoch = stage.epoch_of(0)
    for _ in range(_WRITES):
        stage.write_acknowledged(0)
        _bounded(stage, 2)
    stage.suppose(_waiting(stage, 2) >= _BOUND, "more was written than may wait for a disk")
    stage.claim(stage.leads(0) and stage.epoch_of(0) == epoch, "a follower's disk cost an election")
    stage.nodes[2].wake_disk()
    stage.wait("the follower to catch up", lambda: stage.end_of(2) == stage.end_of(0))
    stage.claim(stage.epoch_of(0) == epoch, "the follower's return cost an election")
    stage.finish()


def voter_disk_hangs(seed: int) -> None:
    """A follower cannot store the epoch that it is in: what it would answer waits, and the oldest of it is dropped."""
    stage = QuorumStage(seed, options=_OPTIONS)
    stage.lead(0)
    stage.write_acknowledged(0)
    stage.wait("all to have it", lambda: stage.end_of(2) == stage.end_of(1) == stage.end_of(0))
    stage.nodes[2].hang_disk()
    stage.crash(0)
    stage.wait("node 1 to stand", lambda: stage.epoch_of(2) > 1)
    stage.restart(0)
    stage.wait("a leader", lambda: bool(stage.world.leaders()))
    leader = stage.world.leaders()[0]
    for _ in range(_ROUNDS):
        stage.world.read(leader)
        stage.pass_time(0.002)
    stage.suppose(stage.world.confirmed_reads >= _ROUNDS // 2, "the follower heard many rounds")
    stage.nodes[2].wake_disk()
    stage.finish()


def frozen_follower(seed: int) -> None:
    """A follower is frozen under writes: it is sent no more than it may leave unmatched."""
    options = replace(QUIET, is_stream=True, inflight_bytes=3_000, append_bytes=500, chunk_bytes=500)
    stage = QuorumStage(seed, options=replace(options, payload_bytes_max=2_000))
    stage.lead(0)
    stage.write_acknowledged(0)
    stage.nodes[2].freeze()
    for _ in range(_WRITES):
        stage.write_acknowledged(0)
    stage.suppose(stage.nodes[0].node_id in stage.nodes[2]._connections, "its connection stands")
    stage.finish()


def frozen_follower_of_a_new_leader(seed: int) -> None:
    """A follower is frozen before it has answered a new leader: what is asked again goes without the entries."""
    options = replace(QUIET, is_stream=True, inflight_bytes=3_000, append_bytes=20_000, chunk_bytes=500)
    stage = QuorumStage(seed, options=replace(options, payload_bytes_max=2_000))
    stage.lead(0)
    stage.write_acknowledged(0)
    stage.nodes[2].freeze()
    epoch = stage.epoch_of(0)
    stage.stand(1)
    stage.wait("another epoch", lambda: stage.epoch_of(0) > epoch and bool(stage.world.leaders()))
    leader = stage.nodes.index(stage.world.leaders()[0])
    epoch = stage.epoch_of(leader)
    for _ in range(_WRITES):
        stage.write_acknowledged(leader)
        stage.pass_time(0.002)
    stage.suppose(stage.leads(leader) and stage.epoch_of(leader) == epoch, "it leads all the while")
    stage.finish()


def leader_disk_hangs(seed: int) -> None:
    """A leader's disk hangs under writes: it gives up leadership, and does not lead before the disk has answered."""
    stage = QuorumStage(seed, options=_OPTIONS)
    stage.lead(0)
    stage.write_acknowledged(0)
    stage.nodes[0].hang_disk()
    stage.suppose(stage.leads(0), "node 0 leads on at first: the others commit")
    while stage.leads(0):
        stage.world.write(stage.nodes[0])
        stage.pass_time(0.002)
        _bounded(stage, 0)
    stage.claim(_node(stage, 0).metrics.leaderships_given_up == 1, "it lost leadership for another reason")
    stage.claim("bytes wait for its disk" in (_node(stage, 0).status().hindrance or ""), "it does not say why")
    _led_by_others(stage)
    stage.finish()


def idle_leader_disk_hangs(seed: int) -> None:
    """The same where hardly anything is written: the time that the disk does not answer is what tells."""
    stage = QuorumStage(seed, options=_OPTIONS)
    stage.lead(0)
    stage.nodes[0].hang_disk()
    stage.write_acknowledged(0)
    hung = stage.world.scheduler.now
    timeout = stage.nodes[0].config.timing.disk_timeout
    stage.wait("node 0 to give up", lambda: not stage.leads(0), 2 * timeout)
    took = stage.world.scheduler.now - hung
    stage.claim(0.8 * timeout < took < 1.3 * timeout, f"it gave up after {took:.1f} s")
    stage.claim(_node(stage, 0).metrics.leaderships_given_up == 1, "it lost leadership for another reason")
    _led_by_others(stage)
    stage.finish()


def _led_by_others(stage: QuorumStage) -> None:
    stage.wait("another leader", lambda: any(leader is not stage.nodes[0] for leader in stage.world.leaders()))
    stage.write_acknowledged(stage.nodes.index(stage.world.leaders()[0]))
    # Nobody else can win: node 0 stays what it is as long as its disk does.
    stage.crash(1)
    stage.pass_time(8.0)
    stage.claim(not stage.leads(0), "a node leads whose disk does not answer")
    _bounded(stage, 0)
    stage.nodes[0].wake_disk()
    stage.restart(1)


def no_room_to_lead(seed: int) -> None:
    """A node without room on its disk does not stand; when nobody has room nobody leads, and all stay."""
    stage = QuorumStage(seed, options=QUIET)
    stage.lead(0)
    stage.write_acknowledged(0)
    # Otherwise who has room later may have the shorter log.
    stage.wait("all to have it", lambda: stage.end_of(2) == stage.end_of(1) == stage.end_of(0))
    for node in stage.nodes[1:]:
        node.disk.capacity = node.disk.used + 100_000
    stage.crash(0)
    stage.pass_time(5.0)
    stage.claim(not stage.world.leaders(), "a node leads that has no room for what a leader writes")
    for index in (1, 2):
        stage.claim("are free on its disk" in (_node(stage, index).status().hindrance or ""), "it does not say why")
    stage.nodes[2].disk.capacity = None
    stage.wait("the node with room to lead", lambda: stage.world.leaders() == [stage.nodes[2]])
    stage.write_acknowledged(2)
    stage.nodes[1].disk.capacity = None
    stage.restart(0)
    stage.finish()


HANG_SCENARIOS: Final[dict[str, Callable[[int], None]]] = {
    "follower-disk-hangs": follower_disk_hangs,
    "leader-disk-hangs": leader_disk_hangs,
    "idle-leader-disk-hangs": idle_leader_disk_hangs,
    "voter-disk-hangs": voter_disk_hangs,
    "frozen-follower": frozen_follower,
    "frozen-follower-of-a-new-leader": frozen_follower_of_a_new_leader,
    "no-room-to-lead": no_room_to_lead,
}
