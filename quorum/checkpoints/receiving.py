"""The follower's side of a checkpoint's way from the leader.

It asks for one chunk at a time and goes on where it is, whoever offers the same bytes; for one again only when none has
come for longer than the last one took. A checkpoint is installed once the file is durable under its name, and only
forward. A chunk without bytes says that it is not to be had there (any more).
"""

from __future__ import annotations

import logging
import math
from typing import Final

from quorate.metadata_log.checkpoints.checkpoint_files import CheckpointId, CheckpointInfo
from quorate.metadata_log.checkpoints.checkpoint_transfer import (
    CheckpointChunk,
    CheckpointDownload,
    InvalidChunk,
    OfferedCheckpoint,
)
from quorate.metadata_log.checkpoints.checkpoints import CheckpointStore
from quorate.metadata_log.disk import Disk
from quorate.metadata_log.errors import StorageError
from quorate.quorum.checkpoints.bulk_queue import BulkQueue
from quorate.quorum.checkpoints.own_checkpoints import Checkpoint
from quorate.quorum.messages.messages import CheckpointOffer, CheckpointProgress, ChunkMessage, ChunkRequest
from quorate.quorum.messages.outbox import Channel, Outbox

#: Seconds until a chunk that has not come is asked for again: twice what the last one took, then doubled, from the
#: first to the last. On a slow link it may still be on its way, and every request would bring it once more.
_ASK_AGAIN_MIN: Final = 1.0
_ASK_AGAIN_MAX: Final = 600.0

#: Seconds between two attempts to receive a checkpoint that could not be kept: doubled from the first to the last.
_REST_MIN: Final = 1.0
_REST_MAX: Final = 60.0

logger = logging.getLogger(__name__)


class CheckpointReceiver:
    """See the module."""

    def __init__(self, disk: Disk, directory: str, store: CheckpointStore, bulk: BulkQueue, outbox: Outbox) -> None:
        self._disk = disk
        self._directory = directory
        self._store = store
        self._bulk = bulk
        self._outbox = outbox
        self._download: CheckpointDownload | None = None
        #: Who offered it last: (peer, epoch).
        self._source: tuple[int, int] | None = None
        #: When the chunk that is due was asked for, first and last, and how long it is waited for.
        self._due_since = self._asked_at = -math.inf
        self._patience = _ASK_AGAIN_MIN
        #: After one that could not be kept none is begun until then; and how long the next such rest is.
        self._rests_until = -math.inf
        self._rest = _REST_MIN
        #: Whether a chunk or the whole file is being written.
        self._is_writing = False
        self._received: CheckpointInfo | None = None

    def on_offer(self, peer: int, message: CheckpointOffer, now: float, *, is_voter: bool) -> None:
        """The leader offers a checkpoint that this node needs: begin, or go on."""
        checkpoint = CheckpointId(message.end_offset, message.last_epoch)
        offer = OfferedCheckpoint(checkpoint, message.size, message.crc, message.manifest or None)
        download = self._download
        if download is None and now < self._rests_until:
            self._outbox.put(peer, CheckpointProgress(message.epoch, message.round, 0, is_voter))
            return
        if download is None or (not download.can_continue(offer) and not self._is_writing):
            self._drop_download()
            download = self._download = CheckpointDownload(self._disk, self._directory, offer)
        if self._source != (peer, message.epoch):
            self._source = (peer, message.epoch)
            self._asked_at, self._patience = -math.inf, _ASK_AGAIN_MIN
        progress = CheckpointProgress(message.epoch, message.round, download.position, is_voter)
        self._outbox.put(peer, progress)
        if download.can_continue(offer) and not self._is_writing and now >= self._asked_at + self._patience:
            if self._asked_at > -math.inf:
                self._patience = min(2 * self._patience, _ASK_AGAIN_MAX)
            self._ask(download, now)

    def on_chunk(self, peer: int, chunk: ChunkMessage, now: float) -> None:
        """The next bytes, if they are; anything else is asked for again at a later offer."""
        download = self._download
        if download is None or self._is_writing or download.is_complete or self._source != (peer, chunk.epoch):
            return
        piece = CheckpointChunk(CheckpointId(chunk.end_offset, chunk.last_epoch), chunk.position, chunk.data, chunk.crc)
        if not piece.data and piece.id == download.offer.id:
            # It is gone there: what is offered next is begun anew.
            self._drop_download()
            return
        try:
            job = download.chunk_job(piece)
        except InvalidChunk:
            return
        self._is_writing = True
        self._patience = min(max(_ASK_AGAIN_MIN, 2 * (now - self._due_since)), _ASK_AGAIN_MAX)
        self._asked_at = -math.inf
        self._bulk.submit(job, lambda error: self._chunk_written(download, now, error))

    def take_received(self) -> Checkpoint | None:
        """A checkpoint that became durable since the last call."""
        received, self._received = self._received, None
        return None if received is None else Checkpoint(self._store, received)

    def _failed(self, error: StorageError, now: float) -> None:
        """Begin anew after all that had arrived is gone: not at once, and later each time."""
        self._download = None
        self._asked_at = -math.inf
        self._rests_until = now + self._rest
        logger.error("a checkpoint that is being received cannot be kept, again in %g s: %s", self._rest, error)
        self._rest = min(2 * self._rest, _REST_MAX)

    def _drop_download(self) -> None:
        download, self._download = self._download, None
        self._asked_at = -math.inf
        if download is not None:
            self._bulk.submit(download.discard_job(), lambda error: None)

    def _chunk_written(self, download: CheckpointDownload, now: float, error: StorageError | None) -> None:
        """``now``: when it came."""
        self._is_writing = False
        if error is not None:
            self._failed(error, now)
            return
        if not download.is_complete:
            self._ask(download, now)
            return
        self._is_writing = True
        job = download.finish_job()

        def finished(error: StorageError | None) -> None:
            self._is_writing = False
            self._download = None
            self._asked_at = -math.inf
            if error is not None:
                self._failed(error, now)
            else:
                self._store.job_done(job)
                if job.manifest_damage is not None:
                    logger.error("a checkpoint was received without its manifest: %s", job.manifest_damage)
                self._rest = _REST_MIN
                self._received = job.info

        self._bulk.submit(job, finished)

    def _ask(self, download: CheckpointDownload, now: float) -> None:
        if self._asked_at == -math.inf:
            self._due_since = now
        self._asked_at = now
        if self._source is not None:
            peer, epoch = self._source
            self._outbox.put(peer, ChunkRequest(epoch, *download.offer.id, download.position), Channel.BULK)
