"""A node beside which others are not well: what is demanded of it, and of the faults that are made."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Final

import pytest

from quorate.metadata_log.batches.batch import build_batch, place_batch
from quorate.quorum.errors import ProtocolError
from quorate.quorum.messages.messages import Append, AppendReply, ChunkMessage, Message
from quorate.quorum.messages.wire import decode, encode
from quorate.quorum.node import QuorumNode
from quorate.quorum.transport.frames import FRAME_BYTES_MAX, FrameReader, framed
from quorate.scripts.simulation.quorum.checks import Violation
from quorate.scripts.simulation.quorum.damaged_frames import DamagedFrame, damaged
from quorate.scripts.simulation.quorum.minority import demand_a_write, with_a_sick_minority
from quorate.scripts.simulation.quorum.stage import QUIET, QuorumStage

SEED: Final = 1


def test_majority_that_acknowledges_nothing_is_found() -> None:
    stage = QuorumStage(SEED)
    stage.lead(0)
    stage.swallow = lambda source, target, message: isinstance(message, AppendReply)

    with pytest.raises(Violation, match=r"no write was acknowledged in 9\.5 s, though all are well"):
        demand_a_write(stage.world, "though all are well")


def test_faults_of_a_minority_befall_it_alone() -> None:
    """Else nothing could be demanded of the others."""
    stage = QuorumStage(SEED)
    stage.lead(0)
    before = {node.node_id: node.incarnation for node in stage.nodes}

    with_a_sick_minority(stage.world, writes=8)

    changed = [node.node_id for node in stage.nodes if node.incarnation != before[node.node_id]]
    assert len(changed) == 1


def test_node_that_a_refused_frame_changes_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def receive(self: QuorumNode, peer: int, payload: bytes) -> None:
        self._core.adopt_epoch(self.epoch + 1)
        raise ProtocolError("refused")

    monkeypatch.setattr(QuorumNode, "receive", receive)
    stage = QuorumStage(SEED, options=replace(QUIET, damage=1.0))
    monkeypatch.setattr("quorate.scripts.simulation.quorum.network.damaged", lambda rng, payload: read_whole(payload))

    with pytest.raises(Violation, match=r"node .* was changed by a frame that it refuses: refused"):
        stage.pass_time(5.0)


def read_whole(payload: bytes) -> DamagedFrame:
    """A frame that is read to its end, whatever becomes of it then."""
    frame = DamagedFrame(framed(payload))
    frame.is_nonsense = False
    return frame


@pytest.mark.parametrize(
    "message",
    [
        Append(3, 9, 0, 0, 0, place_batch(build_batch(b"x" * 200, 2, 5), 0, 3), ((3000, 7),), is_vouched=False),
        ChunkMessage(3, 20, 2, 0, 77, b"a piece of a checkpoint"),
        AppendReply(3, 9, 4, 4, is_voter=True),
    ],
)
def test_damaged_frames_are_told_from_sound_ones(message: Message) -> None:
    """Those that are nonsense by their form, the others by what they carry: in no case is it another message."""
    payload = encode(message)
    frames = [damaged(Random(seed), payload) for seed in range(200)]

    for frame in frames:
        if frame.is_nonsense:
            with pytest.raises(ProtocolError):
                read(frame)
        else:
            (found,) = read(frame)
            assert found != message
            assert _without_what_it_carries(found) == _without_what_it_carries(message)
    assert any(frame.is_nonsense for frame in frames)


def read(data: bytes) -> list[Message]:
    reader = FrameReader()
    reader.bytes_max = FRAME_BYTES_MAX
    return [decode(frame) for frame in reader.feed(data)]


def _without_what_it_carries(message: Message) -> Message:
    if isinstance(message, Append):
        return replace(message, batches=b"")
    return replace(message, data=b"") if isinstance(message, ChunkMessage) else message
