"""A checkpoint on its way from one node to another: offered, cut in chunks, put together again.

Two nodes write other bytes under one name (times, order), so an offer carries size and CRC of the whole file, and a
download goes on with another peer only if those agree.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from crc32c import crc32c

from quorate.metadata_log.checkpoints.checkpoint_files import (
    CheckpointId,
    CheckpointInfo,
    check_checkpoint,
    checkpoint_name,
    manifest_name,
    publish_checkpoint,
)
from quorate.metadata_log.checkpoints.checkpoint_manifest import decode_manifest
from quorate.metadata_log.disk import PART_SUFFIX, Disk, OpenMode, remove_file, taken_back
from quorate.metadata_log.errors import CorruptCheckpoint, CorruptState, InvariantViolation, StorageError


@dataclass(frozen=True, slots=True)
class OfferedCheckpoint:
    """A checkpoint that a peer may fetch, as a node tells the peer of it."""

    id: CheckpointId
    #: Bytes, and CRC-32C, of the whole file.
    size: int
    crc: int
    #: Content of the manifest file; None when there is none, as with Kafka's checkpoints.
    manifest: bytes | None
    #: What is wrong with the manifest that was there, which is left out of the offer.
    manifest_damage: CorruptState | None = None


@dataclass(frozen=True, slots=True)
class CheckpointChunk:
    """A piece of a checkpoint on its way."""

    id: CheckpointId
    position: int
    data: bytes
    #: CRC-32C of ``data``.
    crc: int

    @property
    def is_intact(self) -> bool:
        """Whether the data are what was sent."""
        return bool(crc32c(self.data) == self.crc)


class InvalidChunk(StorageError):
    """A chunk that is not the next one of a download, or was damaged on its way. The download is as before."""


class CheckpointDownload:
    """A checkpoint that arrives in pieces. Owned by the loop thread; one at a time in a directory.

    It outlives connections: whoever offers the same bytes may go on at ``position``. It does not outlive the process.
    """

    def __init__(self, disk: Disk, directory: str, offer: OfferedCheckpoint) -> None:
        self._disk = disk
        self._directory = directory
        self.offer = offer
        #: Where the next chunk begins; ``offer.size`` when all are there.
        self.position = 0

    @property
    def is_complete(self) -> bool:
        """Whether every byte has arrived; ``finish_job`` comes next."""
        return self.position == self.offer.size

    def can_continue(self, offer: OfferedCheckpoint) -> bool:
        """Whether what this offer names has the bytes of which a part is here already."""
        return (offer.id, offer.size, offer.crc) == (self.offer.id, self.offer.size, self.offer.crc)

    def chunk_job(self, chunk: CheckpointChunk) -> ReceiveChunkJob:
        """A job that writes a chunk; jobs of one download run in the order they were made.

        Raises:
            InvalidChunk: it is of another checkpoint, does not begin at ``position``, is empty, goes beyond the offered
                size, or its CRC does not hold.
        """
        end = chunk.position + len(chunk.data)
        if chunk.id != self.offer.id or chunk.position != self.position:
            raise InvalidChunk(
                f"a chunk at {chunk.position} of {checkpoint_name(chunk.id)}; due is {self.position} of "
                f"{checkpoint_name(self.offer.id)}"
            )
        if not chunk.data or end > self.offer.size:
            raise InvalidChunk(f"a chunk up to byte {end} from {self.position} on, {self.offer.size} are offered")
        if not chunk.is_intact:
            raise InvalidChunk(f"the CRC of the chunk at {chunk.position} does not match")
        self.position = end
        return ReceiveChunkJob(self._disk, f"{self._directory}/{self._part_name}", chunk.position, chunk.data)

    def finish_job(self) -> FinishDownloadJob:
        """A job that checks the whole and gives it its name. Report it to ``CheckpointStore.job_done``.

        Raises:
            InvariantViolation: bytes are missing.
        """
        if not self.is_complete:
            raise InvariantViolation(f"{self.position} of {self.offer.size} bytes of a checkpoint are there")
        return FinishDownloadJob(self._disk, self._directory, self._part_name, self.offer)

    def discard_job(self) -> DiscardDownloadJob:
        """A job that removes what has arrived; the download is over."""
        return DiscardDownloadJob(self._disk, f"{self._directory}/{self._part_name}")

    @property
    def _part_name(self) -> str:
        # Not the name that write_job uses: both may be busy with one checkpoint.
        return f"{checkpoint_name(self.offer.id)}.incoming{PART_SUFFIX}"


@dataclass(frozen=True, slots=True)
class ReceiveChunkJob:
    """See ``CheckpointDownload.chunk_job``."""

    disk: Disk
    path: str
    position: int
    data: bytes

    def run(self) -> Iterator[None]:
        """Do the work; see ``DiskJob.run``. Syncs nothing: an unfinished download is forgotten by a crash.

        Raises:
            NoRoom: the disk is full; what had arrived is removed.
        """
        return taken_back(self.disk, self._write(), (self.path,))

    def _write(self) -> Iterator[None]:
        if self.position == 0:
            yield from remove_file(self.disk, self.path)
        file = self.disk.open_file(self.path, OpenMode.CREATE if self.position == 0 else OpenMode.WRITE)
        try:
            yield
            file.pwrite(self.data, self.position)
            yield
        finally:
            file.close()


@dataclass(frozen=True, slots=True)
class DiscardDownloadJob:
    """See ``CheckpointDownload.discard_job``."""

    disk: Disk
    path: str

    def run(self) -> Iterator[None]:
        """Do the work; see ``DiskJob.run``."""
        yield from remove_file(self.disk, self.path)


@dataclass(slots=True)
class FinishDownloadJob:
    """See ``CheckpointDownload.finish_job``."""

    disk: Disk
    directory: str
    part_name: str
    offer: OfferedCheckpoint
    #: What was received; None until the job has run to its end.
    info: CheckpointInfo | None = field(default=None)
    #: What is wrong with the manifest that came with it, which is not kept then.
    manifest_damage: CorruptState | None = field(default=None)

    def run(self) -> Iterator[None]:
        """Do the work; see ``DiskJob.run``. A manifest that is not this checkpoint's is left out.

        Raises:
            CorruptCheckpoint: the file is no checkpoint of this name.
            NoRoom: the disk is full. The file is gone in all cases; fetch again.
        """
        parts = (self.part_name, manifest_name(self.offer.id) + PART_SUFFIX)
        return taken_back(self.disk, self._finish(), tuple(f"{self.directory}/{name}" for name in parts))

    def _finish(self) -> Iterator[None]:
        path = f"{self.directory}/{self.part_name}"
        file = self.disk.open_file(path, OpenMode.WRITE)
        try:
            yield
            file.sync()
            yield
        finally:
            file.close()
        try:
            info = check_checkpoint(self.disk, path, self.offer.id)
            if (info.size, info.crc) != (self.offer.size, self.offer.crc):
                raise CorruptCheckpoint(path, f"its CRC is {info.crc}, {self.offer.crc} was offered")
        except StorageError:
            self.disk.unlink(path)
            raise
        yield from publish_checkpoint(self.disk, self.directory, self.part_name, info, self._manifest(path, info))
        self.info = info

    def _manifest(self, path: str, info: CheckpointInfo) -> bytes | None:
        if self.offer.manifest is not None:
            try:
                decode_manifest(self.offer.manifest, path, info)
            except CorruptState as error:
                self.manifest_damage = error
                return None
        return self.offer.manifest
