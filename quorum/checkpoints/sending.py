"""The leader's side of a checkpoint's way to a follower.

An offer takes the place of a heartbeat: it carries epoch and round and is answered. The follower asks for one chunk
at a time. However slow the link, a transfer comes to its end: what a follower was offered first it is offered until it
has it, and it is kept until then, newer ones or not, as long as the follower gets on with it: asks for bytes it never
asked for. One that does not, as for want of room, has nothing kept for it. A chunk without bytes says that the
checkpoint is not to be had (any more).
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from crc32c import crc32c

from quorate.metadata_log.checkpoints.checkpoint_files import BOOTSTRAP_ID, CheckpointId
from quorate.metadata_log.checkpoints.checkpoint_transfer import CheckpointChunk, OfferedCheckpoint
from quorate.metadata_log.checkpoints.checkpoints import CheckpointStore, PositionOutOfRange, UnknownCheckpoint
from quorate.metadata_log.errors import CorruptCheckpoint
from quorate.quorum.checkpoints.bulk_queue import BulkQueue
from quorate.quorum.messages.messages import ChunkMessage, ChunkRequest
from quorate.quorum.messages.outbox import Channel, Outbox

#: Seconds without progress for which a follower's checkpoint is kept: the first; or as many times as long as its last
#: chunk took (the requests before it may have brought others more than once), up to the last.
_SENDING_MIN: Final = 60.0
_SENDING_PACES: Final = 10.0
_SENDING_MAX: Final = 3600.0

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class _Sending:
    """A checkpoint on its way to one follower."""

    id: CheckpointId
    #: When the follower asked for more of it than ever before, at first: when it was offered.
    progressed_at: float
    #: The highest position asked for; and for how long it is kept after ``progressed_at``.
    position: int = -1
    patience: float = _SENDING_MIN
    #: Up to where it was read in one go from its beginning, and the CRC-32C of that; -1: not from its beginning.
    read_to: int = 0
    crc: int = 0

    def is_kept(self, now: float) -> bool:
        """Whether the follower gets on with it, as far as can be told."""
        return now - self.progressed_at < self.patience

    def asked(self, position: int, now: float) -> None:
        """The follower has asked for what begins at ``position``; only what it never asked for is progress."""
        if position > self.position:
            pace = _SENDING_PACES * (now - self.progressed_at)
            self.patience = min(max(_SENDING_MIN, pace), _SENDING_MAX)
            self.position, self.progressed_at = position, now


class CheckpointSender:
    """See the module."""

    def __init__(self, store: CheckpointStore, bulk: BulkQueue, outbox: Outbox, chunk_bytes: int) -> None:
        """``chunk_bytes``: the most that one chunk carries."""
        #: Told of a checkpoint that was found damaged while it was read for sending, and has been set aside.
        self.on_damaged: Callable[[CheckpointId], None] = lambda checkpoint: None
        self._store = store
        self._bulk = bulk
        self._outbox = outbox
        self._chunk_bytes = chunk_bytes
        self._offers: dict[CheckpointId, OfferedCheckpoint] = {}
        #: What each follower is being sent.
        self._sending: dict[int, _Sending] = {}

    def kept(self, now: float) -> set[CheckpointId]:
        """The checkpoints on their way to followers that get on with them."""
        return {sending.id for sending in self._sending.values() if sending.is_kept(now)}

    def offer(self, peer: int, now: float) -> OfferedCheckpoint | None:
        """The checkpoint for a follower that is behind the log's start: the one it is being sent, or the newest."""
        sending = self._sending.get(peer)
        if sending is None or not sending.is_kept(now) or not self._store.has(sending.id):
            newest = self._store.latest
            if newest is None or newest.id == BOOTSTRAP_ID:
                return None
            if sending is None or sending.id != newest.id:
                sending = self._sending[peer] = _Sending(newest.id, now)
        if sending.id not in self._offers:
            self._offers = {kept: offer for kept, offer in self._offers.items() if self._store.has(kept)}
            offer = self._offers[sending.id] = self._store.offer(sending.id)
            if offer.manifest_damage is not None:
                logger.error("a checkpoint is offered without its manifest: %s", offer.manifest_damage)
        return self._offers[sending.id]

    def received(self, peer: int) -> None:
        """A follower follows the log again."""
        self._sending.pop(peer, None)

    def on_request(self, peer: int, request: ChunkRequest, leading_epoch: int | None, now: float) -> None:
        """A follower asks for the next chunk."""
        if leading_epoch != request.epoch:
            return
        checkpoint = CheckpointId(request.end_offset, request.last_epoch)
        sending = self._sending.get(peer)
        if sending is not None and sending.id == checkpoint:
            sending.asked(request.position, now)
        try:
            chunk = self._store.read_chunk(checkpoint, request.position, self._chunk_bytes)
        except (UnknownCheckpoint, PositionOutOfRange):
            chunk = None
        except CorruptCheckpoint as error:
            self._set_aside(checkpoint, error.reason)
            chunk = None
        if chunk is None or not self._is_sound_so_far(peer, chunk):
            chunk = CheckpointChunk(checkpoint, request.position, b"", 0)
            if sending is not None and sending.id == checkpoint:
                self._sending.pop(peer, None)
        reply = ChunkMessage(request.epoch, *checkpoint, chunk.position, chunk.crc, chunk.data)
        self._outbox.put(peer, reply, Channel.BULK)

    def _is_sound_so_far(self, peer: int, chunk: CheckpointChunk) -> bool:
        """Whether what was read of a file from its beginning to its end has the CRC of what was written.

        Who goes on with what another node sent has it checked at its own end only, and begins again if it is wrong.
        """
        offer, sending = self._offers.get(chunk.id), self._sending.get(peer)
        if offer is None or sending is None or sending.id != chunk.id:
            return True
        if chunk.position == 0:
            sending.read_to = sending.crc = 0
        if chunk.position != sending.read_to:
            sending.read_to = -1 if chunk.position > sending.read_to else sending.read_to
            return True
        sending.crc = crc32c(chunk.data, sending.crc)
        sending.read_to += len(chunk.data)
        if sending.read_to < offer.size or sending.crc == offer.crc:
            return True
        self._set_aside(chunk.id, "its CRC is not that of what was written")
        return False

    def _set_aside(self, checkpoint: CheckpointId, reason: str) -> None:
        path = self._store.path(checkpoint)
        logger.error("%s has rotted on this disk: %s; set aside, another is sent", path, reason)
        self._offers.pop(checkpoint, None)
        self._sending = {peer: sending for peer, sending in self._sending.items() if sending.id != checkpoint}
        self._bulk.submit(self._store.set_aside_job(checkpoint), lambda error: self.on_damaged(checkpoint))
