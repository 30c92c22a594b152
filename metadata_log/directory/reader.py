"""Reading log and checkpoint files from outside: in order, in constant memory, every check made.

A file of either kind is record batches back to back; one batch at a time is held.
Damage is reported as ``CorruptBatch`` with file, position and offset.
This is for tools; a running node's log is ``segment_log.MetadataLog``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from quorate.metadata_log.batches.batch import HEADER_BYTES, BatchHeader, crc_ok, iter_records, parse_header
from quorate.metadata_log.checkpoints.checkpoint_files import checkpoint_id
from quorate.metadata_log.checkpoints.saved_checkpoint import SavedCheckpoint, read_trailer
from quorate.metadata_log.directory.directory import LOG_DIRECTORY_NAME
from quorate.metadata_log.errors import CorruptBatch, MalformedData, StorageError
from quorate.metadata_log.records.records import SnapshotHeaderRecord
from quorate.metadata_log.regular_files import reading
from quorate.metadata_log.segments.segment_files import segment_base


@dataclass(frozen=True, slots=True)
class LogFile:
    """One segment or checkpoint file."""

    path: Path
    is_checkpoint: bool
    #: First offset of a segment; the exclusive end offset of a checkpoint; None where the name does not tell.
    offset: int | None
    #: A checkpoint's epoch by its name.
    epoch: int | None
    #: Of a checkpoint that was saved out of a cluster, and has any name: what stands behind its batches.
    saved: SavedCheckpoint | None = None


@dataclass(frozen=True, slots=True)
class FileBatch:
    """One batch of a file."""

    file: LogFile
    position: int
    header: BatchHeader
    data: bytes


#: Told how far a file has been read, in bytes, by whoever shows that to a person; None: nobody wants to know.
_NOTE_READ: ContextVar[Callable[[LogFile, int], None] | None] = ContextVar("note_read", default=None)


@contextmanager
def noting_reads(note: Callable[[LogFile, int], None]) -> Iterator[None]:
    """While the block lasts, ``note`` is called for each batch that is read, with its file and where it ends in it.

    Whoever reads does not know: the files of one answer are gone through in many places.
    """
    before = _NOTE_READ.set(note)
    try:
        yield
    finally:
        _NOTE_READ.reset(before)


def classify(path: Path) -> LogFile:
    """The kind of a file by its name; a name of neither form is read as a segment of unknown start."""
    base = segment_base(path.name)
    if base is not None:
        return LogFile(path, False, base, None)
    checkpoint = checkpoint_id(path.name)
    if checkpoint is not None:
        return LogFile(path, True, checkpoint.end_offset, checkpoint.epoch)
    return LogFile(path, path.suffix == ".checkpoint", None, None)


def _classify_by_content(path: Path) -> LogFile:
    """As ``classify``; where the name does not tell, what stands in the file does.

    A checkpoint of another name would else be taken for a segment, and half of one for a whole log.
    """
    file = classify(path)
    if file.offset is not None:
        return file
    try:
        saved = read_trailer(str(path))
        if saved is not None:
            return LogFile(path, True, *saved.id, saved)
        return LogFile(path, file.is_checkpoint or _begins_as_checkpoint(path), None, None)
    except OSError as error:
        raise StorageError(f"{path}: {error.strerror}") from error


def _begins_as_checkpoint(path: Path) -> bool:
    with reading(str(path)) as stream:
        head = stream.read(HEADER_BYTES)
        try:
            header = parse_header(head)
            if not header.is_control:
                return False
            first = head + stream.read(header.size - HEADER_BYTES)
            return isinstance(next(iter_records(first)).record, SnapshotHeaderRecord)
        except (MalformedData, StopIteration):
            return False


def find_files(path: Path) -> list[LogFile]:
    """The files that a path stands for: itself, or a directory's segments and checkpoints in order of offset.

    A metadata directory, its ``__cluster_metadata-0`` or any directory that holds such files will do.

    Raises:
        StorageError: nothing there, or nothing in it; a saved checkpoint whose trailer is damaged.
    """
    if path.is_file():
        return [_classify_by_content(path)]
    if not path.is_dir():
        what = "neither a regular file nor a directory" if path.exists() else "no such file or directory"
        raise StorageError(f"{path}: {what}")
    inner = path / LOG_DIRECTORY_NAME
    directory = inner if inner.is_dir() else path
    files = [file for file in map(classify, directory.iterdir()) if file.offset is not None]
    if not files:
        # As of `quorate backup`: which of them is meant is for whoever asks to say.
        other = max((file.name for file in directory.glob("*.checkpoint")), default=None)
        hint = "" if other is None else f" named by its offset; a file is named by itself: {directory / other}"
        raise StorageError(f"{directory}: holds no segment (*.log) and no checkpoint (*.checkpoint){hint}")
    return sorted(files, key=lambda file: (file.is_checkpoint, file.offset, file.epoch or 0))


def iter_batches(file: LogFile) -> Iterator[FileBatch]:
    """The batches of one file, each checked: CRC, dense offsets, epochs that never fall.

    Raises:
        CorruptBatch: the first batch that fails a check; everything before it has been yielded.
        StorageError: the file cannot be read.
    """
    try:
        with reading(str(file.path)) as stream:
            yield from _stream_batches(file, stream)
    except OSError as error:
        raise StorageError(f"{file.path}: {error.strerror}") from error


def _stream_batches(file: LogFile, stream: BinaryIO) -> Iterator[FileBatch]:
    position = 0
    expected = 0 if file.is_checkpoint else file.offset
    epoch = 0
    note = _NOTE_READ.get()
    end = None if file.saved is None else file.saved.size
    while position != end and (head := stream.read(HEADER_BYTES)):
        try:
            header = parse_header(head)
        except MalformedData as error:
            raise CorruptBatch(str(file.path), position, expected, str(error)) from error
        stream.seek(-HEADER_BYTES, os.SEEK_CUR)  # one read of the whole batch costs less than joining two
        data = stream.read(header.size)
        reason = _complaint(header, data, expected, epoch)
        if reason is not None:
            raise CorruptBatch(str(file.path), position, expected, reason)
        if note is not None:
            note(file, position + header.size)
        yield FileBatch(file, position, header, data)
        position += header.size
        expected = header.end_offset
        epoch = header.epoch


def _complaint(header: BatchHeader, data: bytes, expected: int | None, epoch: int) -> str | None:
    if len(data) < header.size:
        return f"the batch is cut short: {header.size} bytes announced, {len(data)} there"
    if expected is not None and header.base_offset != expected:
        return f"base offset {header.base_offset} where {expected} is due"
    if header.epoch < epoch:
        return f"epoch {header.epoch} after epoch {epoch}"
    return None if crc_ok(data, 0, header) else "the CRC does not match"
