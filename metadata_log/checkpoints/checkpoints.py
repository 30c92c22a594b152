"""The checkpoints of one log directory: written, received, sent, removed. What is in them is other people's business.

The loop thread owns a ``CheckpointStore``; its jobs run on a thread of their own (a large file's syncs must not stand
before the log's) and are reported back with ``job_done``. Order of a job: the file under a ``.part`` name, synced; the
manifest, durable; the rename; the directory. So a checkpoint that has its name is whole, and so is its manifest.

Taking one: ``write_job``. Installing one: ``checkpoint_transfer.CheckpointDownload``, then
``MetadataLog.install_checkpoint``, then the state. Removing: ``retention.superseded``, ``delete_job``, then
``MetadataLog.delete_prefix``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from crc32c import crc32c

from quorate.metadata_log.checkpoints.checkpoint_files import (
    BOOTSTRAP_ID,
    CheckpointId,
    CheckpointInfo,
    CheckpointSurvey,
    check_checkpoint,
    checkpoint_name,
    manifest_name,
    publish_checkpoint,
)
from quorate.metadata_log.checkpoints.checkpoint_manifest import CheckpointManifest, decode_manifest, encode_manifest
from quorate.metadata_log.checkpoints.checkpoint_transfer import CheckpointChunk, FinishDownloadJob, OfferedCheckpoint
from quorate.metadata_log.disk import DAMAGED_SUFFIX, PART_SUFFIX, Disk, OpenMode, read_file, remove_file, taken_back
from quorate.metadata_log.errors import CorruptCheckpoint, CorruptState, InvariantViolation, StorageError

#: Bytes of a checkpoint between two syncs. A sync makes the file system's journal wait for all data before it, and the
#: log's own syncs with it: many small waits instead of one long.
_SYNC_BYTES: Final = 4 * 1024 * 1024


class UnknownCheckpoint(StorageError):
    """A checkpoint that this node does not have (any more), or never sends."""

    def __init__(self, checkpoint: CheckpointId) -> None:
        super().__init__(f"there is no checkpoint {checkpoint_name(checkpoint)} to be had here")
        self.checkpoint = checkpoint


class PositionOutOfRange(StorageError):
    """A byte position outside a checkpoint."""

    def __init__(self, checkpoint: CheckpointId, position: int, size: int) -> None:
        super().__init__(f"{checkpoint_name(checkpoint)} has {size} bytes; position {position} is not within")
        self.checkpoint = checkpoint
        self.position = position
        self.size = size


@dataclass(frozen=True, slots=True)
class CheckpointContent:
    """The content of a checkpoint to be written. All of it is called on the thread of the job that writes it."""

    #: The file's bytes, one chunk after the other.
    chunks: Iterable[bytes]
    #: Asked once the chunks are through and have been found sound.
    describe: Callable[[], CheckpointManifest]
    #: Called between pieces of the job's own work: may wait.
    pause: Callable[[], None] = lambda: None


class CheckpointStore:
    """See the module's rules."""

    def __init__(self, disk: Disk, directory: str, survey: CheckpointSurvey) -> None:
        """``survey`` is ``MetadataLog.checkpoints_at_open``: opening the log has checked every file already."""
        self._disk = disk
        self._directory = directory
        self._infos = {info.id: info for info in survey.usable}

    @property
    def infos(self) -> tuple[CheckpointInfo, ...]:
        """The usable checkpoints, ascending, the bootstrap one (0-0) included."""
        return tuple(sorted(self._infos.values(), key=lambda info: info.id))

    @property
    def latest(self) -> CheckpointInfo | None:
        """The newest usable one, None when there is none."""
        return max(self._infos.values(), key=lambda info: info.id, default=None)

    def has(self, checkpoint: CheckpointId) -> bool:
        """Whether there is a usable one of this name."""
        return checkpoint in self._infos

    def covered_offset(self) -> int:
        """(Exclusive) end of what the newest usable one covers; 0 when there is none."""
        latest = self.latest
        return 0 if latest is None else latest.id.end_offset

    def path(self, checkpoint: CheckpointId) -> str:
        return f"{self._directory}/{checkpoint_name(checkpoint)}"

    def read(self, checkpoint: CheckpointId) -> bytes:
        """The whole file.

        Raises:
            UnknownCheckpoint: there is no usable one of this name.
        """
        if checkpoint not in self._infos:
            raise UnknownCheckpoint(checkpoint)
        return read_file(self._disk, self.path(checkpoint))

    def manifest(self, checkpoint: CheckpointId) -> CheckpointManifest | None:
        """Its manifest, None when it has none.

        Raises:
            CorruptState: the manifest is damaged, or is not this checkpoint's. The checkpoint itself may be sound.
        """
        path = f"{self._directory}/{manifest_name(checkpoint)}"
        if checkpoint not in self._infos or not self._disk.exists(path):
            return None
        return decode_manifest(read_file(self._disk, path), path, self._infos[checkpoint])

    # --- sending -------------------------------------------------------------------------------------

    def offer(self, checkpoint: CheckpointId) -> OfferedCheckpoint:
        """The description of it for a peer. A manifest that has rotted is left out: the checkpoint may be sound without
        it.

        ``manifest_damage`` of the offer says what is wrong with it then.

        Raises:
            UnknownCheckpoint: there is no usable one of this name, or it is the bootstrap one, which says nothing of
                the log.
        """
        info = self._served(checkpoint)
        path = f"{self._directory}/{manifest_name(checkpoint)}"
        manifest = read_file(self._disk, path) if self._disk.exists(path) else None
        if manifest is not None:
            try:
                decode_manifest(manifest, path, info)
            except CorruptState as error:
                return OfferedCheckpoint(checkpoint, info.size, info.crc, None, error)
        return OfferedCheckpoint(checkpoint, info.size, info.crc, manifest)

    def read_chunk(self, checkpoint: CheckpointId, position: int, size_max: int) -> CheckpointChunk:
        """At most ``size_max`` bytes from ``position`` on; the last chunk is the one that reaches the offered size.

        Raises:
            UnknownCheckpoint: as ``offer``; it may have been removed since.
            PositionOutOfRange: ``position`` is not within the file.
            CorruptCheckpoint: the file has lost its end.
        """
        info = self._served(checkpoint)
        if not 0 <= position < info.size:
            raise PositionOutOfRange(checkpoint, position, info.size)
        file = self._disk.open_file(self.path(checkpoint), OpenMode.READ)
        size = min(size_max, info.size - position)
        try:
            data = file.pread(size, position)
        finally:
            file.close()
        if len(data) < size:
            reason = f"the file ends there, {info.size} bytes were written"
            raise CorruptCheckpoint(self.path(checkpoint), reason, position + len(data))
        return CheckpointChunk(checkpoint, position, data, crc32c(data))

    def _served(self, checkpoint: CheckpointId) -> CheckpointInfo:
        info = self._infos.get(checkpoint)
        if info is None or checkpoint == BOOTSTRAP_ID:
            raise UnknownCheckpoint(checkpoint)
        return info

    # --- jobs ----------------------------------------------------------------------------------------

    def write_job(self, checkpoint: CheckpointId, content: CheckpointContent) -> WriteCheckpointJob:
        """A job that writes a checkpoint.

        The caller has seen to it that the log holds (end offset, epoch) and that it is committed there.
        """
        return WriteCheckpointJob(self._disk, self._directory, checkpoint, content)

    def delete_job(self, checkpoints: Iterable[CheckpointId]) -> DeleteCheckpointsJob:
        """A job that removes checkpoints. They are forgotten here at once.

        Raises:
            InvariantViolation: the newest is among them.
        """
        ids = tuple(sorted(checkpoints))
        latest = self.latest
        if latest is not None and latest.id in ids:
            raise InvariantViolation(f"the newest checkpoint, {checkpoint_name(latest.id)}, must stay")
        for checkpoint in ids:
            self._infos.pop(checkpoint, None)
        return DeleteCheckpointsJob(self._disk, self._directory, ids)

    def set_aside_job(self, checkpoint: CheckpointId) -> SetAsideJob:
        """A job that takes its name from a checkpoint that has rotted, and keeps its bytes. It is forgotten at once."""
        self._infos.pop(checkpoint, None)
        return SetAsideJob(self._disk, self._directory, checkpoint)

    def job_done(self, job: WriteCheckpointJob | FinishDownloadJob) -> None:
        """Take notice of a checkpoint that is durable now."""
        if job.info is None:
            raise InvariantViolation("a checkpoint was reported whose job did not run to its end")
        self._infos[job.info.id] = job.info


@dataclass(slots=True)
class WriteCheckpointJob:
    """See ``CheckpointStore.write_job``."""

    disk: Disk
    directory: str
    checkpoint: CheckpointId
    content: CheckpointContent
    #: What was written; None until the job has run to its end.
    info: CheckpointInfo | None = field(default=None)

    def run(self) -> Iterator[None]:
        """Do the work; see ``DiskJob.run``.

        Raises:
            CorruptCheckpoint: what was written is no checkpoint. NoRoom: the disk is full. Nothing has its name then.
        """
        names = (checkpoint_name(self.checkpoint), manifest_name(self.checkpoint))
        parts = tuple(f"{self.directory}/{name}{PART_SUFFIX}" for name in names)
        return taken_back(self.disk, self._write(), parts)

    def _write(self) -> Iterator[None]:
        name = checkpoint_name(self.checkpoint) + PART_SUFFIX
        yield from remove_file(self.disk, f"{self.directory}/{name}")
        file = self.disk.open_file(f"{self.directory}/{name}", OpenMode.CREATE)
        try:
            yield
            position = unsynced = 0
            for chunk in self.content.chunks:
                file.pwrite(chunk, position)
                position += len(chunk)
                unsynced += len(chunk)
                yield
                if unsynced >= _SYNC_BYTES:
                    file.sync()
                    unsynced = 0
                    yield
            file.sync()
            yield
        finally:
            file.close()
        content = self.content
        info = check_checkpoint(self.disk, f"{self.directory}/{name}", self.checkpoint, content.pause)
        yield from publish_checkpoint(self.disk, self.directory, name, info, encode_manifest(content.describe(), info))
        self.info = info


@dataclass(frozen=True, slots=True)
class DeleteCheckpointsJob:
    """See ``CheckpointStore.delete_job``. Oldest first."""

    disk: Disk
    directory: str
    checkpoints: tuple[CheckpointId, ...]

    def run(self) -> Iterator[None]:
        """Do the work; see ``DiskJob.run``."""
        for checkpoint in self.checkpoints:
            # The manifest last: without its checkpoint it is swept away at the next open.
            yield from remove_file(self.disk, f"{self.directory}/{checkpoint_name(checkpoint)}")
            yield from remove_file(self.disk, f"{self.directory}/{manifest_name(checkpoint)}")
            self.disk.sync_directory(self.directory)
            yield


@dataclass(frozen=True, slots=True)
class SetAsideJob:
    """See ``CheckpointStore.set_aside_job``."""

    disk: Disk
    directory: str
    checkpoint: CheckpointId

    def run(self) -> Iterator[None]:
        """Do the work; see ``DiskJob.run``."""
        path = f"{self.directory}/{checkpoint_name(self.checkpoint)}"
        self.disk.rename(path, f"{path}{DAMAGED_SUFFIX}")
        yield
        yield from remove_file(self.disk, f"{self.directory}/{manifest_name(self.checkpoint)}")
        self.disk.sync_directory(self.directory)
        yield
