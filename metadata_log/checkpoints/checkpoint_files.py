"""Checkpoint files by name, and what makes one usable. Their content is opaque here but for its frame.

A checkpoint ``<end offset>-<epoch>.checkpoint`` holds the state before its (exclusive) end offset, as record batches
between a SnapshotHeader and a SnapshotFooter. Rules: Kafka's ``Snapshots`` and ``RecordsSnapshotReader``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from crc32c import crc32c

from quorate.metadata_log.batches.batch import BatchHeader, HeaderFields, iter_records
from quorate.metadata_log.disk import Disk, DiskFile, OpenMode, remove_file, replace_file
from quorate.metadata_log.errors import CorruptCheckpoint, MalformedData
from quorate.metadata_log.records.records import SnapshotFooterRecord, SnapshotHeaderRecord
from quorate.metadata_log.segments.segment_scan import scan_batches

_CHECKPOINT_NAME: Final = re.compile(r"(\d{20})-(\d{10})\.checkpoint")
MANIFEST_SUFFIX: Final = ".manifest"


class CheckpointId(NamedTuple):
    """The end offset and epoch of the log that a checkpoint covers. Ordered by offset, then epoch."""

    #: Exclusive.
    end_offset: int
    #: Epoch of the batch that ends there.
    epoch: int


#: The voter set that a fresh cluster is formatted with. It holds no state, and is never sent to another node.
BOOTSTRAP_ID: Final = CheckpointId(0, 0)


@dataclass(frozen=True, slots=True)
class CheckpointInfo:
    """A checkpoint that passed every check."""

    id: CheckpointId
    #: Bytes of the file.
    size: int
    #: Milliseconds since 1970: time of the last batch it covers, of the bootstrap checkpoint when it was made.
    last_contained_timestamp: int
    #: CRC-32C of the whole file. Nodes write checkpoints of one name with other bytes; this tells them apart.
    crc: int

    @classmethod
    def of_bytes(cls, checkpoint: CheckpointId, data: bytes, last_contained_timestamp: int) -> CheckpointInfo:
        """Of a checkpoint that was made just now."""
        return cls(checkpoint, len(data), last_contained_timestamp, crc32c(data))


def checkpoint_name(checkpoint: CheckpointId) -> str:
    """Kafka's file name."""
    return f"{checkpoint.end_offset:020d}-{checkpoint.epoch:010d}.checkpoint"


def manifest_name(checkpoint: CheckpointId) -> str:
    """Our file beside it."""
    return f"{checkpoint.end_offset:020d}-{checkpoint.epoch:010d}{MANIFEST_SUFFIX}"


def checkpoint_id(name: str) -> CheckpointId | None:
    """The id in a file name, None for names of other files."""
    match = _CHECKPOINT_NAME.fullmatch(name)
    return CheckpointId(int(match[1]), int(match[2])) if match else None


def list_checkpoints(disk: Disk, directory: str) -> list[CheckpointId]:
    """Every checkpoint there by name, valid or not, ascending."""
    found = (checkpoint_id(name) for name in disk.list_directory(directory))
    return sorted(checkpoint for checkpoint in found if checkpoint is not None)


@dataclass(frozen=True, slots=True)
class CheckpointSurvey:
    """The checkpoints in a directory. Both lists ascend."""

    usable: tuple[CheckpointInfo, ...]
    #: Damaged ones, which are neither loaded nor sent; they stay for whoever looks into it.
    damaged: tuple[CorruptCheckpoint, ...]


def survey_checkpoints(disk: Disk, directory: str) -> CheckpointSurvey:
    """Check every checkpoint there."""
    usable = []
    damaged = []
    for checkpoint in list_checkpoints(disk, directory):
        try:
            usable.append(check_checkpoint(disk, f"{directory}/{checkpoint_name(checkpoint)}", checkpoint))
        except CorruptCheckpoint as error:
            damaged.append(error)
    return CheckpointSurvey(tuple(usable), tuple(damaged))


def check_checkpoint(
    disk: Disk, path: str, checkpoint: CheckpointId, pause: Callable[[], None] = lambda: None
) -> CheckpointInfo:
    """Check a whole file: every CRC, offsets from 0 on, one epoch, header first and footer last.

    Args:
        pause: called after every batch.

    Raises:
        CorruptCheckpoint: one of these does not hold.
    """
    file = disk.open_file(path, OpenMode.READ)
    try:
        return _check_file(file, path, checkpoint, pause)
    finally:
        file.close()


def _check_file(file: DiskFile, path: str, checkpoint: CheckpointId, pause: Callable[[], None]) -> CheckpointInfo:
    batches = _Batches(pause)
    bad = scan_batches(file, 0, checkpoint.epoch, batches.visit)
    if bad is not None:
        raise CorruptCheckpoint(path, bad.reason, bad.position)
    if batches.first is None or batches.last is None:
        raise CorruptCheckpoint(path, "the file is empty")
    if batches.last.epoch != checkpoint.epoch:
        raise CorruptCheckpoint(path, f"a batch has epoch {batches.last.epoch}, the name says {checkpoint.epoch}")
    header = _control_record(file, path, 0, batches.first, 0)
    if not isinstance(header, SnapshotHeaderRecord):
        raise CorruptCheckpoint(path, "it does not begin with a SnapshotHeader")
    footer = _control_record(file, path, batches.last_position, batches.last, -1)
    if not isinstance(footer, SnapshotFooterRecord):
        raise CorruptCheckpoint(path, "it does not end with a SnapshotFooter")
    return CheckpointInfo(checkpoint, file.size(), header.last_contained_log_timestamp, batches.crc)


class _Batches:
    """First and last batch of a file, and the CRC of all of it, as a scan meets them."""

    def __init__(self, pause: Callable[[], None]) -> None:
        self._pause = pause
        self.first: BatchHeader | None = None
        self.last: BatchHeader | None = None
        self.last_position = 0
        self.crc = 0

    def visit(self, position: int, fields: HeaderFields, batch: memoryview) -> None:
        self.last = BatchHeader._make(fields)
        self.first = self.first or self.last
        self.last_position = position
        self.crc = crc32c(batch, self.crc)
        self._pause()


def _control_record(file: DiskFile, path: str, position: int, header: BatchHeader, index: int) -> object:
    """The record with this index in a batch, None when the batch holds data."""
    if not header.is_control:
        return None
    try:
        return list(iter_records(file.pread(header.size, position)))[index].record
    except MalformedData as error:
        raise CorruptCheckpoint(path, str(error), position) from error


def publish_checkpoint(
    disk: Disk, directory: str, part_name: str, info: CheckpointInfo, manifest: bytes | None
) -> Iterator[None]:
    """Give a synced and checked file its name, after its manifest: what has the name is whole, manifest included."""
    if manifest is not None:
        yield from replace_file(disk, directory, manifest_name(info.id), manifest)
    else:
        yield from remove_file(disk, f"{directory}/{manifest_name(info.id)}")
    disk.rename(f"{directory}/{part_name}", f"{directory}/{checkpoint_name(info.id)}")
    yield
    disk.sync_directory(directory)
    yield
