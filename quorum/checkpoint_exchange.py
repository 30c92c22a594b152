"""Checkpoints between nodes: a leader offers, a follower pulls, on a connection of its own.

An offer takes the place of a heartbeat: it carries epoch and round and is answered. The follower asks for one chunk
at a time and goes on where it is, whoever offers the same bytes. A checkpoint is installed once the file is durable
under its name, and only forward.

However slow the link, a transfer comes to its end: what a follower was offered first it is offered until it has it,
and it is kept until then, newer ones or not, as long as the follower gets on with it: asks for bytes it never asked
for. One that does not, as for want of room, has nothing kept for it. A chunk is asked for again only when none has
come for longer than the last one took. A chunk without bytes says that the checkpoint is not to be had (any more).
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from crc32c import crc32c

from metadata_log.batch import iter_records
from metadata_log.checkpoint_files import BOOTSTRAP_ID, CheckpointId, CheckpointInfo
from metadata_log.checkpoint_manifest import CheckpointManifest
from metadata_log.checkpoint_transfer import CheckpointChunk, CheckpointDownload, InvalidChunk
from metadata_log.checkpoint_transfer import CheckpointOffer as StoredOffer
from metadata_log.checkpoints import CheckpointContent, CheckpointStore, PositionOutOfRange, UnknownCheckpoint
from metadata_log.disk import Disk, OpenMode
from metadata_log.errors import CorruptCheckpoint, StorageError
from metadata_log.records import VotersRecord
from metadata_log.retention import RetentionConfig, superseded
from metadata_log.segment_log import MetadataLog
from quorum.bulk_queue import BulkQueue
from quorum.config import QuorumConfig
from quorum.messages import CheckpointOffer, CheckpointProgress, Chunk, ChunkRequest
from quorum.outbox import Channel, Outbox

#: Seconds without progress for which a follower's checkpoint is kept: the first; or as many times as long as its last
#: chunk took (the requests before it may have brought others more than once), up to the last.
_SENDING_MIN: Final = 60.0
_SENDING_PACES: Final = 10.0
_SENDING_MAX: Final = 3600.0
#: Seconds until a chunk that has not come is asked for again: twice what the last one took, then doubled, from the
#: first to the last. On a slow link it may still be on its way, and every request would bring it once more.
_ASK_AGAIN_MIN: Final = 1.0
_ASK_AGAIN_MAX: Final = 600.0

#: Seconds between two attempts to receive a checkpoint that could not be kept: doubled from the first to the last.
_REST_MIN: Final = 1.0
_REST_MAX: Final = 60.0

logger = logging.getLogger(__name__)

#: Bytes of a checkpoint's beginning that hold its first batch: header, kraft.version and voters.
_FIRST_BATCH_BYTES = 64 * 1024


class Checkpoint:
    """A durable checkpoint of this node's directory; see ``SnapshotReader``."""

    def __init__(self, store: CheckpointStore, info: CheckpointInfo) -> None:
        self._store = store
        self.info = info

    @property
    def end_offset(self) -> int:
        return self.info.id.end_offset

    @property
    def epoch(self) -> int:
        return self.info.id.epoch

    @property
    def path(self) -> str:
        return self._store.path(self.info.id)

    def read(self) -> bytes:
        """The whole file."""
        return self._store.read(self.info.id)

    def manifest(self) -> CheckpointManifest | None:
        """What its writer counted; None when it has no manifest, as Kafka's have none."""
        return self._store.manifest(self.info.id)


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


class CheckpointExchange:
    """Both sides of the transfer, and the writing of own checkpoints."""

    def __init__(
        self, config: QuorumConfig, disk: Disk, store: CheckpointStore, bulk: BulkQueue, outbox: Outbox, directory: str
    ) -> None:
        #: Told of a checkpoint that was found damaged while it was read for sending, and has been set aside.
        self.on_damaged: Callable[[CheckpointId], None] = lambda checkpoint: None
        self._config = config
        self._disk = disk
        self._directory = directory
        self._store = store
        self._bulk = bulk
        self._outbox = outbox
        self._offers: dict[CheckpointId, StoredOffer] = {}
        #: What each follower is being sent.
        self._sending: dict[int, _Sending] = {}
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

    # --- what is there -------------------------------------------------------------------------------

    def newest(self) -> Checkpoint | None:
        """The newest checkpoint that holds state; the bootstrap one holds none."""
        latest = self._store.latest
        return None if latest is None or latest.id == BOOTSTRAP_ID else Checkpoint(self._store, latest)

    def voters_in(self, checkpoint: Checkpoint) -> VotersRecord | None:
        """The voter set at the head of a checkpoint, None when it has none."""
        file = self._disk.open_file(checkpoint.path, OpenMode.READ)
        try:
            head = file.pread(_FIRST_BATCH_BYTES, 0)
        finally:
            file.close()
        found = [logged.record for logged in iter_records(head) if isinstance(logged.record, VotersRecord)]
        return found[-1] if found else None

    # --- own checkpoints -----------------------------------------------------------------------------

    def write(
        self,
        checkpoint: CheckpointId,
        content: CheckpointContent,
        done: Callable[[StorageError | None], None],
    ) -> None:
        """Write a checkpoint of the own state; ``done`` on the loop thread once it is durable."""
        job = self._store.write_job(checkpoint, content)

        def written(error: StorageError | None) -> None:
            if error is None:
                self._store.job_done(job)
            done(error)

        self._bulk.submit(job, written)

    def retire(self, log: MetadataLog, now_ms: int, now: float, retention: RetentionConfig) -> int:
        """Remove what need not be kept, nor is being sent; returns where the log may begin afterwards."""
        kept = {sending.id for sending in self._sending.values() if sending.is_kept(now)}
        old = superseded(self._store.infos, log.segments, now_ms, retention)
        gone = [checkpoint for checkpoint in old if checkpoint not in kept]
        for checkpoint in gone:
            self._offers.pop(checkpoint, None)
        if gone:
            self._bulk.submit(self._store.delete_job(gone), lambda error: None)
            return min(info.id.end_offset for info in self._store.infos)
        return log.start_offset

    # --- the leader's side ---------------------------------------------------------------------------

    def offer(self, peer: int, now: float) -> StoredOffer | None:
        """The checkpoint for a follower that is behind the log's start: the one it is being sent, or the newest."""
        sending = self._sending.get(peer)
        if sending is None or not sending.is_kept(now) or not self._store.has(sending.id):
            newest = self.newest()
            if newest is None:
                return None
            if sending is None or sending.id != newest.info.id:
                sending = self._sending[peer] = _Sending(newest.info.id, now)
        if sending.id not in self._offers:
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
            chunk = self._store.read_chunk(checkpoint, request.position, self._config.limits.chunk_bytes)
        except (UnknownCheckpoint, PositionOutOfRange):
            chunk = None
        except CorruptCheckpoint as error:
            self._set_aside(checkpoint, error.reason)
            chunk = None
        if chunk is None or not self._is_sound_so_far(peer, chunk):
            chunk = CheckpointChunk(checkpoint, request.position, b"", 0)
            if sending is not None and sending.id == checkpoint:
                self._sending.pop(peer, None)
        reply = Chunk(request.epoch, *checkpoint, chunk.position, chunk.crc, chunk.data)
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

    # --- the follower's side -------------------------------------------------------------------------

    def on_offer(self, peer: int, message: CheckpointOffer, now: float, *, is_voter: bool) -> None:
        """The leader offers a checkpoint that this node needs: begin, or go on."""
        checkpoint = CheckpointId(message.end_offset, message.last_epoch)
        offer = StoredOffer(checkpoint, message.size, message.crc, message.manifest or None)
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

    def on_chunk(self, peer: int, chunk: Chunk, now: float) -> None:
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
        """What had arrived is gone: begin anew, not at once, and later each time."""
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
