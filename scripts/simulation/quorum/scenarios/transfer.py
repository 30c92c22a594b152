"""Named scenarios of checkpoints on their way to a follower that is behind the leader's log."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from quorate.metadata_log.checkpoints.checkpoint_files import CheckpointId
from quorate.metadata_log.checkpoints.checkpoint_manifest import CheckpointManifest
from quorate.metadata_log.checkpoints.checkpoints import CheckpointContent
from quorate.metadata_log.errors import NoRoom, StorageError
from quorate.quorum.messages.messages import ChunkMessage, Message
from quorate.quorum.messages.wire import encode
from quorate.quorum.node import QuorumNode
from quorate.scripts.simulation.quorum.host import DIRECTORY
from quorate.scripts.simulation.quorum.stage import QUIET, QuorumStage

_OPTIONS: Final = replace(QUIET, retention_bytes=2_500, chunk_bytes=64, segment_bytes=500)
#: Seconds for one chunk over the slow link, and between two checkpoints. A transfer takes some ten chunks.
_CHUNK_SECONDS: Final = 0.1
_CHECKPOINT_SECONDS: Final = 0.6


def _node(stage: QuorumStage, index: int) -> QuorumNode:
    node = stage.nodes[index].node
    assert node is not None
    return node


def _behind(stage: QuorumStage) -> None:
    """Node 2 is down, and the log of the others begins behind its end."""
    stage.lead(0)
    stage.crash(2)
    for _ in range(40):
        stage.write_acknowledged(0)
    for _ in range(3):
        stage.write_acknowledged(0)
        for index in (0, 1):
            stage.world.take_checkpoint(stage.nodes[index])
        stage.pass_time(0.2)
    stage.suppose(_node(stage, 0).status().log_start_offset > 40, "the leader's log begins behind the follower's end")


def slow_transfer(seed: int) -> None:
    """A transfer takes longer than the leader takes to its next checkpoint: it comes to its end all the same."""
    stage = QuorumStage(seed, options=_OPTIONS)
    _behind(stage)
    world, sent = stage.world, list[CheckpointId]()

    def slow(source: int, target: int, message: Message) -> bool:
        if target != 2 or not isinstance(message, ChunkMessage):
            return False
        sent.append(CheckpointId(message.end_offset, message.last_epoch))
        payload, peer = encode(message), stage.nodes[source].node_id
        arrive = lambda: stage.nodes[2].call(lambda node: node.receive(peer, payload))  # noqa: E731  # named for what it does
        world.scheduler.after(_CHUNK_SECONDS, arrive)
        return True

    def again() -> None:
        if not world.is_healed:
            world.write(stage.nodes[0])
            world.take_checkpoint(stage.nodes[0])
            world.scheduler.after(_CHECKPOINT_SECONDS, again)

    stage.swallow = slow
    stage.restart(2)
    again()
    stage.wait(
        "the follower to have a checkpoint and to follow",
        lambda: stage.nodes[2].node is not None and _node(stage, 2).applied_end >= _node(stage, 0).high_watermark - 10,
        10.0,
    )
    stage.suppose(len(sent) * _CHUNK_SECONDS > _CHECKPOINT_SECONDS, "the transfer took longer than a checkpoint")
    stage.claim(len(set(sent)) == 1, f"{len(set(sent))} checkpoints were begun")
    stage.swallow = lambda source, target, message: False
    stage.finish()


def rotten_checkpoint(seed: int) -> None:
    """A bit of the leader's checkpoint flips while it runs: the leader finds it, and the follower gets a sound one."""
    stage = QuorumStage(seed, options=_OPTIONS)
    _behind(stage)
    disk = stage.nodes[0].disk
    path = next(path for path in reversed(disk.paths()) if path.startswith(DIRECTORY) and path.endswith(".checkpoint"))
    disk.flip_bit(path, len(disk.content(path)) // 2, 3)
    damaged: list[CheckpointId] = []

    def replaced(checkpoint: CheckpointId) -> None:
        damaged.append(checkpoint)
        stage.world.write(stage.nodes[0])
        stage.world.scheduler.after(0.1, stage.world.take_checkpoint, stage.nodes[0])

    _node(stage, 0).on_damaged_checkpoint(replaced)
    installed = stage.world.checkpoints_installed
    stage.restart(2)
    stage.wait("the follower to have a checkpoint", lambda: stage.world.checkpoints_installed > installed)
    stage.claim(len(damaged) == 1, f"the leader found {len(damaged)} damaged checkpoints")
    stage.claim(path not in disk.paths() and f"{path}.damaged" in disk.paths(), "it was not set aside")
    stage.claim(not [path for path in stage.nodes[2].disk.paths() if path.endswith(".part")], "a torn download is left")
    stage.finish()


def checkpoint_without_room(seed: int) -> None:
    """There is room for the log and not for a checkpoint: the node goes on, and writes one when there is room."""
    stage = QuorumStage(seed, options=_OPTIONS)
    stage.lead(0)
    for _ in range(20):
        stage.write_acknowledged(0)
    owner, outcomes = stage.nodes[0], list[StorageError | None]()
    assert owner.machine is not None
    content = CheckpointContent(owner.machine.checkpoint_content(), lambda: CheckpointManifest({}, b""))
    owner.disk.capacity = owner.disk.used + 300
    _node(stage, 0).write_checkpoint(owner.machine.applied_end, content, outcomes.append)
    stage.wait("the outcome", lambda: bool(outcomes))
    stage.claim(isinstance(outcomes[0], NoRoom), f"it ended with {outcomes[0]!r}")
    stage.claim(not [path for path in owner.disk.paths() if path.endswith(".part")], "a torn file is left")
    stage.write_acknowledged(0)
    stage.claim(stage.leads(0), "a checkpoint cost an election")
    owner.disk.capacity = None
    before = len(owner.disk.paths())
    stage.world.take_checkpoint(owner)
    stage.wait("a checkpoint", lambda: len(owner.disk.paths()) > before)
    stage.finish()


TRANSFER_SCENARIOS: Final[dict[str, Callable[[int], None]]] = {
    "slow-transfer": slow_transfer,
    "rotten-checkpoint": rotten_checkpoint,
    "checkpoint-without-room": checkpoint_without_room,
}
