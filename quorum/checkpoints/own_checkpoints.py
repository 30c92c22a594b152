"""The checkpoints of a node's own directory: the newest one, writing another, and removing what need not be kept."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Final

from quorate.metadata_log.batches.batch import iter_records
from quorate.metadata_log.checkpoints.checkpoint_files import BOOTSTRAP_ID, CheckpointId, CheckpointInfo
from quorate.metadata_log.checkpoints.checkpoint_manifest import CheckpointManifest
from quorate.metadata_log.checkpoints.checkpoints import CheckpointContent, CheckpointStore
from quorate.metadata_log.checkpoints.retention import RetentionConfig, superseded
from quorate.metadata_log.disk import Disk, OpenMode
from quorate.metadata_log.errors import StorageError
from quorate.metadata_log.log.segment_log import MetadataLog
from quorate.metadata_log.records.records import VotersRecord
from quorate.quorum.checkpoints.bulk_queue import BulkQueue

#: Bytes of a checkpoint's beginning that hold its first batch: header, kraft.version and voters.
_FIRST_BATCH_BYTES: Final = 64 * 1024


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
        """The counts of its writer; None when it has no manifest, as Kafka's have none."""
        return self._store.manifest(self.info.id)


class OwnCheckpoints:
    """See the module."""

    def __init__(
        self,
        disk: Disk,
        store: CheckpointStore,
        bulk: BulkQueue,
        kept_for_others: Callable[[float], Collection[CheckpointId]],
    ) -> None:
        """``kept_for_others(now)``: those that are on their way to other nodes."""
        self._disk = disk
        self._store = store
        self._bulk = bulk
        self._kept_for_others = kept_for_others

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
        kept = self._kept_for_others(now)
        old = superseded(self._store.infos, log.segments, now_ms, retention)
        gone = [checkpoint for checkpoint in old if checkpoint not in kept]
        if not gone:
            return log.start_offset
        self._bulk.submit(self._store.delete_job(gone), lambda error: None)
        return min(info.id.end_offset for info in self._store.infos)
