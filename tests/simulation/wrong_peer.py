"""A voter that says anything: well-formed messages with wild values, to nodes that must keep every promise.

What it never says is a lie that is a promise: that it votes for whom it did not, or holds durably what it does not; nor
does it lead an epoch with sound entries or commit what it was not told. No node can tell these from the truth, and
agreement among so many voters rests on that no voter does it.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Final

from crc32c import crc32c

from quorate.metadata_log.batches.batch import CRC_START, HEADER_BYTES, build_batch, control_batch, place_batch
from quorate.metadata_log.records.records import SnapshotHeaderRecord
from quorate.quorum.errors import ProtocolError
from quorate.quorum.messages import messages
from quorate.quorum.messages.messages import Message
from quorate.quorum.messages.wire import encode
from quorate.quorum.node import QuorumNode
from quorate.quorum.versions import NEWEST_VERSION
from quorate.scripts.simulation.quorum.host import SimulatedNode

_EPOCH_LIMIT: Final = 1 << 31


def _nothing_said() -> bytes:
    """A control batch with a CRC that is right, of a record that cannot be read."""
    batch = bytearray(control_batch([(SnapshotHeaderRecord(), 0)], 0))
    batch[HEADER_BYTES:] = b"\xff" * (len(batch) - HEADER_BYTES)
    batch[CRC_START - 4 : CRC_START] = crc32c(batch[CRC_START:]).to_bytes(4, "big")
    return bytes(batch)


_NOTHING_SAID: Final = _nothing_said()


class WrongPeer:
    """Speaks to nodes as ``peer``, on a connection that it makes anew whenever they close it."""

    def __init__(self, rng: Random, peer: SimulatedNode) -> None:
        self._rng = rng
        self._peer = peer
        self._makers: tuple[Callable[[QuorumNode], Message], ...] = (
            self._append,
            self._reply,
            self._of_a_candidate,
            self._of_a_voter,
            self._short,
            self._of_a_checkpoint,
        )
        #: Messages that were refused, and that were taken.
        self.refused = self.taken = 0

    def speak_to(self, target: SimulatedNode) -> None:
        """One message."""
        node = target.node
        if node is None or target.is_frozen:
            return
        message = self._rng.choice(self._makers)(node)
        if not _is_promise(message, node):
            target.call(lambda node: self._say(node, message))

    def _say(self, node: QuorumNode, message: Message) -> None:
        try:
            payload = encode(message)
        except OverflowError:
            return
        try:
            node.receive(self._peer.node_id, payload)
        except ProtocolError:
            self.refused += 1
            node.disconnected(self._peer.node_id)
            is_voter = self._rng.random() < 0.5
            node.connected(self._peer.node_id, self._peer.directory_id, is_voter=is_voter, version=NEWEST_VERSION)
        else:
            self.taken += 1

    # --- values --------------------------------------------------------------------------------------

    def _epoch(self, node: QuorumNode) -> int:
        own = node.epoch
        return self._rng.choice(
            (own, own, own, own + 1, own - 1, 0, own + 900, own + 2_000_000, _EPOCH_LIMIT - 1, own | _EPOCH_LIMIT)
        )

    def _offset(self, node: QuorumNode) -> int:
        status = node.status()
        near = self._rng.choice((0, status.log_start_offset, status.high_watermark, status.log_end_offset))
        return self._rng.choice((near, near, near + 1, near - 1, near + 1_000, 1 << 31, 1 << 61, 1 << 63))

    def _round(self, node: QuorumNode) -> int:
        last = node._replication.round
        return self._rng.choice((last, last, 1, 0, last + 1, 1 << 40))

    def _is(self) -> bool:
        return self._rng.random() < 0.5

    def _bytes(self, node: QuorumNode, offset: int, epoch: int) -> bytes:
        """No batch, or one that is damaged, or a sound one that no leader would write there."""
        kind = self._rng.randrange(5)
        if kind == 0:
            return b""
        if kind == 1:
            return self._rng.randbytes(self._rng.randrange(1, 200))
        if kind == 2 and 0 <= offset < 1 << 62 and 0 <= epoch < _EPOCH_LIMIT:
            # Right but for its place.
            return place_batch(build_batch(b"x", 1, 0), offset + self._rng.choice((1, 7)), epoch)
        if kind == 3 and 0 <= offset < 1 << 62 and 0 <= epoch < _EPOCH_LIMIT:
            # A control batch of one record that says nothing.
            return place_batch(_NOTHING_SAID, offset, epoch)
        entries = node._journal
        batch = bytearray(entries.read(entries.last_index) if len(entries) > 1 else b"\0" * 61)
        batch[self._rng.randrange(len(batch))] ^= 1 << self._rng.randrange(8)
        return bytes(batch)

    # --- messages ------------------------------------------------------------------------------------

    def _append(self, node: QuorumNode) -> Message:
        epoch, prev_end, prev_epoch = self._epoch(node), self._offset(node), self._epoch(node)
        batches = self._bytes(node, prev_end, epoch)
        pairs = tuple((self._offset(node), self._offset(node)) for _ in range(self._rng.randrange(3)))
        round_, mark = self._round(node), self._offset(node)
        return messages.Append(epoch, round_, prev_end, prev_epoch, mark, batches, pairs, is_vouched=self._is())

    def _reply(self, node: QuorumNode) -> Message:
        epoch, round_, end = self._epoch(node), self._round(node), self._offset(node)
        if self._is():
            return messages.AppendReply(epoch, round_, end, self._offset(node), is_voter=self._is())
        if self._is():
            return messages.AppendConflict(epoch, round_, end, is_voter=self._is())
        return messages.CheckpointProgress(epoch, round_, end, is_voter=self._is())

    def _of_a_candidate(self, node: QuorumNode) -> Message:
        epoch, last_epoch, end = self._epoch(node), self._epoch(node), self._offset(node)
        if self._is():
            return messages.Vote(epoch, last_epoch, end)
        return messages.PreVote(epoch, self._round(node), last_epoch, end)

    def _of_a_voter(self, node: QuorumNode) -> Message:
        if self._is():
            return messages.VoteReply(self._epoch(node), is_granted=self._is())
        return messages.PreVoteReply(self._epoch(node), self._round(node), is_granted=self._is(), has_leader=self._is())

    def _short(self, node: QuorumNode) -> Message:
        epoch = self._epoch(node)
        return self._rng.choice(
            (
                messages.Commit(epoch, self._offset(node)),
                messages.StaleEpoch(epoch),
                messages.EndEpoch(epoch),
            )
        )

    def _of_a_checkpoint(self, node: QuorumNode) -> Message:
        epoch, end, last_epoch, position = (
            self._epoch(node),
            self._offset(node),
            self._epoch(node),
            self._offset(node),
        )
        crc = self._rng.choice((0, 1, 1 << 32))
        kind = self._rng.randrange(3)
        if kind == 0:
            size = self._rng.choice((0, 1, 500, 1 << 61))
            manifest = self._rng.choice((b"", b"junk"))
            return messages.CheckpointOffer(epoch, self._round(node), end, last_epoch, size, crc, manifest)
        if kind == 1:
            return messages.ChunkRequest(epoch, end, last_epoch, position)
        return messages.ChunkMessage(epoch, end, last_epoch, position, crc, self._rng.randbytes(self._rng.randrange(3)))


def _is_promise(message: Message, node: QuorumNode) -> bool:
    """Whether a message would be a promise of a voter that it does not keep."""
    if isinstance(message, messages.VoteReply):
        return message.is_granted and message.epoch == node.epoch
    if isinstance(message, messages.AppendReply):
        return message.epoch == node.epoch and message.acked_end > node.high_watermark
    if isinstance(message, messages.Append | messages.Commit):
        return message.high_watermark > node.high_watermark
    return False
