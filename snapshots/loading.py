"""An image from files: a metadata directory, a segment or a checkpoint, ours or Kafka's, at any offset they reach.

This is for tools: it reads files that nobody is writing to. A running node replays its own log.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import zip_longest
from pathlib import Path

from metadata_log.batch import iter_records
from metadata_log.errors import CorruptBatch, CorruptCheckpoint, MalformedData
from metadata_log.reader import FileBatch, LogFile, find_files, iter_batches
from metadata_log.records import SnapshotHeaderRecord
from metadata_log.wire import Buffer
from snapshots.checkpoint import read_checkpoint
from snapshots.errors import ImageNotAvailable, ReplayError
from snapshots.image import MetadataImage
from snapshots.moments import Moment
from snapshots.replay_state import ReplayState


def load_image(path: Path, at: Moment | int | None = None) -> MetadataImage:
    """The state at a moment. Inside a transaction: the state before it.

    Args:
        path: a metadata directory or its ``__cluster_metadata-0``; a segment (its directory is read up to the
            segment's end); or a checkpoint.
        at: a number is an offset; None = the end of what ``path`` holds.

    Raises:
        ImageNotAvailable: the files do not reach back, or not forward, to the moment.
        StorageError: nothing there, or damage (``CorruptBatch``, ``CorruptCheckpoint``).
        ReplayError: a record cannot be replayed; says its offset.
    """
    moment = Moment(offset=at) if isinstance(at, int) else at
    files = find_files(path)
    if path.is_file():
        if files[0].is_checkpoint:
            return _checkpoint_at(files[0], moment)
        return _load(path, _beside(files[0]), moment, files[0])
    return _load(path, files, moment, None)


def batches_from_start(path: Path) -> tuple[ReplayState, Iterator[FileBatch]]:
    """The earliest state that files hold, and the batches that follow it, each checked to continue the one before.

    Raises:
        ImageNotAvailable: the log begins in the middle of history, and no checkpoint ends there.
        StorageError: nothing there, or damage, also while the batches are gone through.
    """
    files = find_files(path)
    segments = [file for file in files if not file.is_checkpoint]
    start = (segments[0].offset or 0) if segments else 0
    if not start:
        return ReplayState(), _continuous(path, segments, 0)
    checkpoints = [file for file in files if file.is_checkpoint and (file.offset or 0) >= start]
    if not checkpoints:
        raise _begins_later(path, None, start, [])
    state = ReplayState(load_checkpoint(checkpoints[0]))
    return state, _continuous(path, segments, state.end_offset)


def _continuous(path: Path, segments: list[LogFile], start: int) -> Iterator[FileBatch]:
    due = start
    for batch in _tail(segments, start):
        _require_continuous(path, batch, due)
        due = batch.header.end_offset
        yield batch


def load_checkpoint(file: LogFile) -> MetadataImage:
    """The image in one checkpoint file.

    Raises:
        CorruptCheckpoint, CorruptBatch: it is not whole. ReplayError: a record cannot be replayed.
    """
    try:
        with _collector_resting():
            return read_checkpoint(_contents(file), file.offset, file.epoch)
    except MalformedData as error:
        raise CorruptCheckpoint(str(file.path), str(error)) from error
    except ReplayError as error:
        raise CorruptCheckpoint(str(file.path), f"cannot be replayed: {error}") from error


@contextmanager
def _collector_resting() -> Iterator[None]:
    """A load makes many objects and no cycles of them: looking for some would take a tenth of its time."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _contents(file: LogFile) -> Iterator[Buffer]:
    return (batch.data for batch in iter_batches(file))


def _checkpoint_at(file: LogFile, at: Moment | None) -> MetadataImage:
    image = load_checkpoint(file)
    covers = image.provenance
    if at is not None and not (
        at.reaches(covers.end_offset, covers.epoch, covers.log_time_ms)
        and not at.lies_beyond(covers.end_offset, covers.epoch)
    ):
        raise ImageNotAvailable(
            f"{file.path}: a checkpoint holds the state at one offset, {covers.end_offset}, not at {at}"
        )
    return image


def _beside(segment: LogFile) -> list[LogFile]:
    """A segment and the files of its directory that come before it."""
    if segment.offset is None:
        return [segment]
    files = find_files(segment.path.parent)
    return [file for file in files if file.is_checkpoint or (file.offset or 0) <= segment.offset]


def _load(path: Path, files: list[LogFile], at: Moment | None, last: LogFile | None) -> MetadataImage:
    checkpoints = [file for file in files if file.is_checkpoint and file.offset is not None]
    segments = [file for file in files if not file.is_checkpoint]
    newest = _newest_checkpoint(checkpoints, at, last)
    state = ReplayState() if newest is None else ReplayState(load_checkpoint(newest))
    if newest is None and segments and segments[0].offset:
        raise _begins_later(path, at, segments[0].offset, checkpoints)
    batches = _tail(segments, state.end_offset)
    # What lies behind the moment is not read where that can be known: it may be damaged.
    while not (at is not None and at.is_reached_at(state.end_offset)) and (batch := next(batches, None)) is not None:
        if at is not None and at.is_before(batch.header):
            return state.stable
        _require_continuous(path, batch, state.end_offset)
        state = _replayed(state, batch, at)
    head = state.head.provenance
    if at is not None and at.lies_beyond(head.end_offset, head.epoch):
        raise ImageNotAvailable(f"{path}: the log ends {at.shortfall(head.end_offset, head.epoch)}")
    return state.stable


def _newest_checkpoint(checkpoints: list[LogFile], at: Moment | None, last: LogFile | None) -> LogFile | None:
    """The checkpoint to start from; None = the log itself, from offset 0."""
    limit = _end_of(last) if at is None and last is not None else None
    by_age = sorted(checkpoints, key=lambda file: (file.offset or 0, file.epoch or 0), reverse=True)
    return next(
        (
            file
            for file in by_age
            if (limit is None or (file.offset or 0) <= limit) and (at is None or is_at_or_before(file, at))
        ),
        None,
    )


def is_at_or_before(checkpoint: LogFile, at: Moment) -> bool:
    """Whether a checkpoint file holds a state at a moment or before it.

    Raises:
        CorruptCheckpoint, CorruptBatch: its head cannot be read, where that is needed.
    """
    return at.reaches(
        checkpoint.offset or 0, checkpoint.epoch or 0, 0 if at.time_ms is None else _last_time(checkpoint)
    )


def _last_time(checkpoint: LogFile) -> int:
    """Time of the last batch that a checkpoint covers, in milliseconds since 1970."""
    for batch in iter_batches(checkpoint):
        for logged in iter_records(batch.data):
            if isinstance(logged.record, SnapshotHeaderRecord):
                return logged.record.last_contained_log_timestamp
        break
    raise CorruptCheckpoint(str(checkpoint.path), "no SnapshotHeader at the start")


def _end_of(segment: LogFile) -> int:
    end = segment.offset or 0
    for batch in iter_batches(segment):
        end = batch.header.end_offset
    return end


def _tail(segments: list[LogFile], start: int) -> Iterator[FileBatch]:
    """The batches from an offset on; segments that end before it are not read."""
    for segment, following in zip_longest(segments, segments[1:]):
        if following is not None and following.offset is not None and following.offset <= start:
            continue
        yield from (batch for batch in iter_batches(segment) if batch.header.end_offset > start)


def _require_continuous(path: Path, batch: FileBatch, due: int) -> None:
    base = batch.header.base_offset
    if base == due:
        return
    if base < due:
        raise CorruptBatch(
            str(batch.file.path), batch.position, base, f"offset {due} falls into a batch: no checkpoint ends there"
        )
    raise ImageNotAvailable(f"{path}: records {due} to {base - 1} are missing, before {batch.file.path.name}")


def _begins_later(path: Path, at: Moment | None, base: int, checkpoints: list[LogFile]) -> ImageNotAvailable:
    earliest = min((file.offset or 0 for file in checkpoints), default=None)
    reach = (
        "and there is no checkpoint" if earliest is None else f"and its earliest checkpoint is the state at {earliest}"
    )
    before = "" if at is None else f", after {at}"
    return ImageNotAvailable(f"{path}: the log begins at offset {base}, in the middle of history{before}, {reach}")


def _replayed(state: ReplayState, batch: FileBatch, at: Moment | None) -> ReplayState:
    try:
        return state.replay_batch(batch.data, below=None if at is None else at.offset)
    except MalformedData as error:
        raise CorruptBatch(str(batch.file.path), batch.position, batch.header.base_offset, str(error)) from error
