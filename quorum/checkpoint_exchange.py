"""Checkpoints between nodes: a leader offers, a follower pulls, on a connection of its own.

An offer takes the place of a heartbeat: it carries epoch and round and is answered. The follower asks for one chunk
at a time and goes on where it is, whoever offers the same bytes. A checkpoint is installed once the file is durable
under its name, and only forward.
"""

from __future__ import annotations

from collections.abc import Callable

from metadata_log.batch import iter_records
from metadata_log.checkpoint_files import BOOTSTRAP_ID, CheckpointId, CheckpointInfo
from metadata_log.checkpoint_manifest import CheckpointManifest
from metadata_log.checkpoint_transfer import CheckpointChunk, CheckpointDownload, InvalidChunk
from metadata_log.checkpoint_transfer import CheckpointOffer as StoredOffer
from metadata_log.checkpoints import CheckpointContent, CheckpointStore, PositionOutOfRange, UnknownCheckpoint
from metadata_log.disk import Disk, OpenMode
from metadata_log.errors import StorageError
from metadata_log.records import VotersRecord
from metadata_log.retention import RetentionConfig, superseded
from metadata_log.segment_log import MetadataLog
from quorum.bulk_queue import BulkQueue
from quorum.config import QuorumConfig
from quorum.messages import CheckpointOffer, CheckpointProgress, Chunk, ChunkRequest
from quorum.outbox import Channel, Outbox

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


class CheckpointExchange:
    """Both sides of the transfer, and the writing of own checkpoints."""

    def __init__(
        self, config: QuorumConfig, disk: Disk, store: CheckpointStore, bulk: BulkQueue, outbox: Outbox, directory: str
    ) -> None:
        self._config = config
        self._disk = disk
        self._directory = directory
        self._store = store
        self._bulk = bulk
        self._outbox = outbox
        self._offered: StoredOffer | None = None
        self._download: CheckpointDownload | None = None
        #: Who offered it last: (peer, epoch).
        self._source: tuple[int, int] | None = None
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

    def retire(self, log: MetadataLog, now_ms: int, retention: RetentionConfig) -> int:
        """Remove what need not be kept; returns where the log may begin afterwards."""
        gone = superseded(self._store.infos, log.segments, now_ms, retention)
        if gone:
            self._bulk.submit(self._store.delete_job(gone), lambda error: None)
            return min(info.id.end_offset for info in self._store.infos)
        return log.start_offset

    # --- the leader's side ---------------------------------------------------------------------------

    def offer(self) -> StoredOffer | None:
        """The newest checkpoint for a follower that is behind the log's start."""
        newest = self.newest()
        if newest is None:
            return None
        if self._offered is None or self._offered.id != newest.info.id:
            self._offered = self._store.offer(newest.info.id)
        return self._offered

    def on_request(self, peer: int, request: ChunkRequest, leading_epoch: int | None) -> None:
        """A follower asks for the next chunk."""
        if leading_epoch != request.epoch:
            return
        checkpoint = CheckpointId(request.end_offset, request.last_epoch)
        try:
            chunk = self._store.read_chunk(checkpoint, request.position, self._config.limits.chunk_bytes)
        except (UnknownCheckpoint, PositionOutOfRange):
            # It was superseded: the next offer names another.
            return
        reply = Chunk(request.epoch, *checkpoint, chunk.position, chunk.crc, chunk.data)
        self._outbox.put(peer, reply, Channel.BULK)

    # --- the follower's side -------------------------------------------------------------------------

    def on_offer(self, peer: int, message: CheckpointOffer, *, is_voter: bool) -> None:
        """The leader offers a checkpoint that this node needs: begin, or go on."""
        checkpoint = CheckpointId(message.end_offset, message.last_epoch)
        offer = StoredOffer(checkpoint, message.size, message.crc, message.manifest or None)
        download = self._download
        if download is None or (not download.can_continue(offer) and not self._is_writing):
            download = self._download = CheckpointDownload(self._disk, self._directory, offer)
        self._source = (peer, message.epoch)
        progress = CheckpointProgress(message.epoch, message.round, download.position, is_voter)
        self._outbox.put(peer, progress)
        if download.can_continue(offer) and not self._is_writing:
            self._ask(download)

    def on_chunk(self, peer: int, chunk: Chunk) -> None:
        """The next bytes, if they are; anything else is asked for again at the next offer."""
        download = self._download
        if download is None or self._is_writing or download.is_complete or self._source != (peer, chunk.epoch):
            return
        piece = CheckpointChunk(CheckpointId(chunk.end_offset, chunk.last_epoch), chunk.position, chunk.data, chunk.crc)
        try:
            job = download.chunk_job(piece)
        except InvalidChunk:
            return
        self._is_writing = True
        self._bulk.submit(job, lambda error: self._chunk_written(download))

    def take_received(self) -> Checkpoint | None:
        """A checkpoint that became durable since the last call."""
        received, self._received = self._received, None
        return None if received is None else Checkpoint(self._store, received)

    def _chunk_written(self, download: CheckpointDownload) -> None:
        self._is_writing = False
        if not download.is_complete:
            self._ask(download)
            return
        self._is_writing = True
        job = download.finish_job()

        def finished(error: StorageError | None) -> None:
            self._is_writing = False
            self._download = None
            if error is None:
                self._store.job_done(job)
                self._received = job.info

        self._bulk.submit(job, finished)

    def _ask(self, download: CheckpointDownload) -> None:
        if self._source is not None:
            peer, epoch = self._source
            self._outbox.put(peer, ChunkRequest(epoch, *download.offer.id, download.position), Channel.BULK)
