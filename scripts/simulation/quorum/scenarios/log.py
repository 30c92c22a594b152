"""Named scenarios of the log on its disk: crashes in the middle of a change, and flushes that come too late."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from quorate.quorum.messages.messages import ChunkMessage
from quorate.scripts.simulation.machine.memory_disk import CrashPolicy
from quorate.scripts.simulation.quorum.host import SimulatedNode
from quorate.scripts.simulation.quorum.stage import QUIET, QuorumStage

#: A power cut keeps what was synced and nothing else.
_OPTIONS: Final = replace(QUIET, crash_policy=CrashPolicy.NOTHING)
_SMALL_SEGMENTS: Final = replace(_OPTIONS, segment_bytes=500, chunk_bytes=64, retention_bytes=0)
#: How many times slower a disk is made, so that whatever does not wait for it comes first.
_SLOW: Final = 100.0
#: Bytes of a checkpoint that arrive before its leader dies: a few chunks.
_PART_BYTES: Final = 200


class _Calls:
    """The calls of a node's disk since this was made: (operation, path)."""

    def __init__(self, node: SimulatedNode) -> None:
        self._made: list[tuple[str, str]] = []
        trouble = node.disk.on_call

        def called(operation: str, path: str) -> None:
            trouble(operation, path)
            self._made.append((operation, path))

        node.disk.on_call = called

    def of_segments(self, *operations: str) -> bool:
        """Whether these were made of segments or their directory, in this order, others perhaps in between."""
        wanted = list(operations)
        for operation, path in self._made:
            if wanted and operation == wanted[0] and (operation == "sync_directory" or path.endswith(".log")):
                del wanted[0]
        return not wanted


def crash_behind_a_cut(seed: int) -> None:
    """An ex-leader cuts the tail that nobody else has, and ends right behind that: nothing promised is missing."""
    for options, cut, sync in (
        (_OPTIONS, "truncate", "sync"),
        (_SMALL_SEGMENTS, "unlink", "sync_directory"),
    ):
        for is_power_cut in (False, True):
            stage = QuorumStage(seed, options=options)
            _lead_alone(stage, writes=12)
            _lead_on(stage)
            _crash_behind(stage, (cut, sync) if is_power_cut else (cut,), is_power_cut=is_power_cut)


def crash_behind_a_dropped_log(seed: int) -> None:
    """A checkpoint takes the place of a longer log that went another way, and the node ends as its segments go."""
    for is_power_cut in (False, True):
        stage = QuorumStage(seed, options=_SMALL_SEGMENTS)
        _lead_alone(stage, writes=80)
        _lead_on(stage)
        _cut_behind_checkpoints(stage, 1, (1, 2))
        node = stage.nodes[1].node
        assert node is not None
        stage.suppose(node.log_end_offset < stage.end_of(0), "the ex-leader's log is longer than the leader's")
        calls = ("unlink", "sync_directory") if is_power_cut else ("unlink",)
        _crash_behind(stage, calls, is_power_cut=is_power_cut)


def failed_sync_of_a_follower(seed: int) -> None:
    """A follower's sync fails, it starts again, and reads in the page cache what never came to its disk."""
    stage = QuorumStage(seed)
    stage.lead(0)
    stage.write_acknowledged(0)
    stage.crash(2)
    follower = stage.nodes[1]
    segment = next(path for path in reversed(follower.disk.paths()) if path.endswith(".log"))
    follower.is_disk_failure_expected = True
    follower.disk.fail_next_sync(segment)
    first = follower.incarnation
    end = stage.write(0)
    stage.wait("the follower to start again", lambda: follower.incarnation > first + 1 and follower.node is not None)
    stage.suppose(stage.end_of(1) == end, "the follower reads what it could not sync")
    count = len(stage.world.checks.acknowledged)
    stage.world.write_until(count + 1)
    stage.wait("an acknowledgement", lambda: len(stage.world.checks.acknowledged) > count)
    stage.restart(2)
    stage.finish()


def flush_behind_a_truncation(seed: int) -> None:
    """A flush of what was cut meanwhile comes to its end: it says nothing of what took its place."""
    stage = QuorumStage(seed)
    stage.lead(0)
    stage.write_acknowledged(0)
    stage.wait("all to have it", lambda: stage.end_of(2) == stage.end_of(1) == stage.end_of(0))
    stage.cut((0,), (1, 2))
    stage.nodes[0].hang_disk()
    for _ in range(40):
        stage.write(0)
    flushed_end = stage.end_of(0)
    _lead_on(stage)
    # From here on a commit needs the disk of node 0.
    stage.nodes[2].hang_disk()
    end = stage.write(1)
    stage.mend()
    stage.wait("node 0 to follow", lambda: stage.end_of(0) == stage.end_of(1))
    stage.nodes[0].wake_disk()
    stage.wait("the flush, and what took its place", lambda: end in stage.world.checks.acknowledged)
    stage.suppose(stage.end_of(1) < flushed_end - 10, "the deposed leader's log was longer")
    stage.nodes[0].hang_disk()
    while stage.end_of(1) < flushed_end - 10:
        stage.write(1)
    stage.wait("node 0 to have them in memory", lambda: stage.end_of(0) == stage.end_of(1))
    stage.pass_time(0.1)
    stage.suppose(not _is_flushed(stage, 0), "they wait for its disk")
    stage.nodes[0].wake_disk()
    stage.nodes[2].wake_disk()
    stage.finish()


def flush_behind_a_checkpoint(seed: int) -> None:
    """The same where a checkpoint takes the place of the whole log, on a node without a vote."""
    stage = QuorumStage(seed, 5, _SMALL_SEGMENTS)
    stage.lead(0)
    stage.write_acknowledged(0)
    stage.cut((0, 4), (1, 2, 3))
    stage.world.wipe(stage.nodes[4])
    stage.restart(4)
    wiped = stage.nodes[4]
    stage.wait("the wiped node", lambda: stage.end_of(4) == stage.end_of(0) and _is_flushed(stage, 4), 0.5)
    wiped.hang_disk(is_bulk_hung=False)
    for _ in range(80):
        stage.write(0)
    flushed_end = stage.end_of(0)
    stage.wait("it to have the deposed leader's tail", lambda: stage.end_of(4) == flushed_end, 0.5)
    _lead_on(stage)
    _cut_behind_checkpoints(stage, 1, (1, 2, 3))
    stage.suppose(stage.end_of(1) < flushed_end, "the tail is longer than the leader's log")
    installed = stage.world.checkpoints_installed
    stage.mend()
    stage.wait("checkpoints in its place", lambda: stage.world.checkpoints_installed == installed + 2)
    wiped.wake_disk()
    stage.wait("it to vote again", lambda: not stage.world.amnesiac)
    stage.suppose(stage.end_of(1) < flushed_end, "the tail is still longer than the leader's log")
    # From here on a commit needs the disk of the node whose flush came late.
    for index in (0, 3):
        stage.nodes[index].hang_disk()
    wiped.disk_slowness = _SLOW
    stage.write_acknowledged(1)
    for index in (0, 3):
        stage.nodes[index].wake_disk()
    stage.finish()


def leader_gone_in_a_transfer(seed: int) -> None:
    """The leader dies in the middle of a checkpoint that nobody else has: another is begun, and no part of it stays."""
    stage = QuorumStage(seed, options=_SMALL_SEGMENTS)
    stage.lead(0)
    stage.crash(2)
    for _ in range(25):
        stage.write_acknowledged(0)
    _cut_behind_checkpoints(stage, 0, (0, 1))
    stage.write_acknowledged(0)
    stage.pass_time(0.2)
    stage.world.take_checkpoint(stage.nodes[1])
    follower = stage.nodes[2]
    stage.swallow = lambda source, target, message: (
        source == 0 and isinstance(message, ChunkMessage) and message.position > _PART_BYTES
    )
    stage.restart(2)
    stage.wait("a part of the checkpoint", lambda: bool(_parts(follower)))
    stage.pass_time(0.1)
    stage.crash(0)
    stage.wait("node 1 to lead", lambda: stage.leads(1))
    stage.restart(0)
    stage.finish()
    stage.claim(not _parts(follower), f"{_parts(follower)} are left")


def _lead_alone(stage: QuorumStage, writes: int) -> None:
    """Node 0 leads, is cut off, and has so much that nobody else will have, promised by its mark."""
    stage.lead(0)
    stage.write_acknowledged(0)
    stage.wait("all to have it", lambda: stage.end_of(2) == stage.end_of(1) == stage.end_of(0))
    stage.cut((0,), (1, 2))
    for _ in range(writes):
        stage.write(0)
    stage.wait("its disk", lambda: _is_flushed(stage, 0))
    # A start writes the mark durably.
    stage.crash(0)
    stage.restart(0)


def _lead_on(stage: QuorumStage) -> None:
    """Node 1 leads all but those that are cut off."""
    # A heartbeat that is on its way would call the election off.
    stage.pass_time(0.01)
    while stage.world.leaders()[-1:] != [stage.nodes[1]]:
        stage.stand(1)
        stage.pass_time(0.1)
    stage.write_acknowledged(1)


def _cut_behind_checkpoints(stage: QuorumStage, leader: int, nodes: tuple[int, ...]) -> None:
    """The log of these nodes begins with a checkpoint of what the leader writes now."""
    for _ in range(3):
        for _ in range(8):
            stage.write_acknowledged(leader)
        stage.pass_time(0.2)
        for index in nodes:
            stage.world.take_checkpoint(stage.nodes[index])
        stage.pass_time(0.2)
    node = stage.nodes[leader].node
    assert node is not None
    stage.suppose(node.status().log_start_offset > 20, "the leader's log begins with a checkpoint")


def _crash_behind(stage: QuorumStage, operations: tuple[str, ...], *, is_power_cut: bool) -> None:
    """Node 0 follows node 1, and ends as soon as its disk has done this to its segments; then all converges."""
    calls = _Calls(stage.nodes[0])
    stage.mend()
    stage.wait(f"{operations[-1]} of a segment", lambda: calls.of_segments(*operations))
    stage.crash(0, is_power_cut=is_power_cut)
    stage.restart(0)
    stage.finish()


def _is_flushed(stage: QuorumStage, index: int) -> bool:
    storage = stage.nodes[index].storage
    return storage is not None and storage.log.unwritten_bytes == 0


def _parts(node: SimulatedNode) -> list[str]:
    return [path for path in node.disk.paths() if path.endswith(".incoming.part")]


LOG_SCENARIOS: Final[dict[str, Callable[[int], None]]] = {
    "crash-behind-a-cut": crash_behind_a_cut,
    "crash-behind-a-dropped-log": crash_behind_a_dropped_log,
    "failed-sync-of-a-follower": failed_sync_of_a_follower,
    "flush-behind-a-truncation": flush_behind_a_truncation,
    "flush-behind-a-checkpoint": flush_behind_a_checkpoint,
    "leader-gone-in-a-transfer": leader_gone_in_a_transfer,
}
