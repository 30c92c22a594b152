"""An image from files: a metadata directory, a segment or a checkpoint, ours or Kafka's, at any offset they reach.

This is for tools: it reads files that nobody is writing to. A running node replays its own log.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from pathlib import Path

from quorate.metadata_log.batches.batch import BatchHeader
from quorate.metadata_log.directory.reader import FileBatch, LogFile, find_files, iter_batches
from quorate.metadata_log.errors import CorruptBatch, MalformedData, StorageError
from quorate.snapshots.checkpoints.moments import Moment
from quorate.snapshots.checkpoints.whole_checkpoints import (
    PassedOver,
    TellPassedOver,
    first_whole,
    load_checkpoint,
    usable_at,
)
from quorate.snapshots.errors import ImageNotAvailable
from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.replay.joined_replay import JoinedReplay
from quorate.snapshots.replay.replay_state import ReplayState


def load_image(
    path: Path, at: Moment | int | None = None, tell: TellPassedOver = lambda passed_over: None
) -> MetadataImage:
    """The state at a moment. Inside a transaction: the state before it.

    A checkpoint of a directory that is not whole is passed over, for the next older one and the log behind it.

    Args:
        path: a metadata directory or its ``__cluster_metadata-0``; a segment (its directory is read up to the
            segment's end); or a checkpoint.
        at: a number is an offset; None = the end of what ``path`` holds.

    Raises:
        ImageNotAvailable: the files do not reach back, or not forward, to the moment, or what would do so is damaged.
        StorageError: nothing there, or damage: in the log, or in the one checkpoint that ``path`` is.
        ReplayError: a record cannot be replayed; says its offset.
    """
    moment = Moment(offset=at) if isinstance(at, int) else at
    files = find_files(path)
    if path.is_file():
        if files[0].is_checkpoint:
            return _checkpoint_at(files[0], moment)
        return _load(path, _beside(files[0]), moment, files[0], tell)
    return _load(path, files, moment, None, tell)


def batches_from_start(
    path: Path, tell: TellPassedOver = lambda passed_over: None
) -> tuple[ReplayState, Iterator[FileBatch]]:
    """The earliest state that files hold, and the batches that follow it, each checked to continue the one before.

    Raises:
        ImageNotAvailable: the log begins in the middle of history, and no whole checkpoint ends there.
        StorageError: nothing there, or damage, also while the batches are gone through.
    """
    files = find_files(path)
    segments = [file for file in files if not file.is_checkpoint]
    start = (segments[0].offset or 0) if segments else 0
    if not start:
        return ReplayState(), continuous_batches(path, segments, 0)
    passed = _Passed(tell)
    earliest = first_whole((file for file in files if file.is_checkpoint and (file.offset or 0) >= start), passed.add)
    if earliest is None:
        raise _begins_later(path, None, start, [], passed)
    return ReplayState(earliest.image), continuous_batches(path, segments, earliest.image.provenance.end_offset)


def continuous_batches(path: Path, segments: list[LogFile], start: int) -> Iterator[FileBatch]:
    """The batches of a directory's segments from an offset on, each checked to continue the one before.

    Raises:
        ImageNotAvailable: some are missing. StorageError: damage, also where a batch holds the offset.
    """
    due = start
    for batch in batches_behind(segments, start):
        _require_continuous(path, batch, due)
        due = batch.header.end_offset
        yield batch


def _checkpoint_at(file: LogFile, at: Moment | None) -> MetadataImage:
    image = load_checkpoint(file)
    covers = image.provenance
    if at is not None and not (
        at.reaches(covers.end_offset, covers.epoch, covers.log_time_ms)
        and not at.lies_beyond(covers.end_offset, covers.epoch, covers.log_time_ms, now_ms())
    ):
        raise ImageNotAvailable(
            f"{file.path}: a checkpoint holds the state at one offset, {covers.end_offset}, not at {at}"
        )
    return image


def now_ms() -> float:
    """Milliseconds since 1970 by the clock of the machine that reads a log: later times are yet to come."""
    return time.time() * 1000


def _beside(segment: LogFile) -> list[LogFile]:
    """A segment and the files of its directory that come before it."""
    if segment.offset is None:
        return [segment]
    files = find_files(segment.path.parent)
    return [file for file in files if file.is_checkpoint or (file.offset or 0) <= segment.offset]


class _Passed:
    """The checkpoints that were passed over."""

    def __init__(self, tell: TellPassedOver) -> None:
        self._tell = tell
        self.all: list[PassedOver] = []

    def add(self, one: PassedOver) -> None:
        self.all.append(one)
        self._tell(one)

    def __str__(self) -> str:
        """The end of a sentence on what cannot be had; empty where none was."""
        return "".join(f"; {one}" for one in self.all)


def _load(
    path: Path, files: list[LogFile], at: Moment | None, last: LogFile | None, tell: TellPassedOver
) -> MetadataImage:
    checkpoints = [file for file in files if file.is_checkpoint and file.offset is not None]
    segments = [file for file in files if not file.is_checkpoint]
    limit = _end_of(last) if at is None and last is not None else None
    passed = _Passed(tell)
    newest = first_whole(
        usable_at(
            (file for file in _newest_first(checkpoints) if limit is None or (file.offset or 0) <= limit),
            at,
            passed.add,
        ),
        passed.add,
    )
    state = ReplayState() if newest is None else ReplayState(newest.image)
    if newest is None and segments and segments[0].offset:
        raise _begins_later(path, at, segments[0].offset, checkpoints, passed)
    if newest is None and not segments and passed.all:
        raise ImageNotAvailable(f"{path}: no checkpoint is left that is whole, and there is no log{passed}")
    until = None if at is None else at.in_log(state.end_offset, headers_behind(segments, state.end_offset, at))
    if at is not None and until is not None and not state.end_offset:
        _require_begun(path, segments, at, until)
    if until is None:
        state = _replayed_to_end(path, state, segments, passed)
    else:
        batches = batches_behind(segments, state.end_offset)
        # What lies behind the moment is not replayed where that can be known: it may be damaged.
        while not until.is_reached_at(state.end_offset) and (batch := next(batches, None)) is not None:
            if until.is_before(batch.header):
                return state.stable
            _require_continuous(path, batch, state.end_offset, passed)
            state = _replayed(state, batch, until.offset)
    head = state.head.provenance
    reached = head.end_offset, head.epoch, head.log_time_ms
    if at is not None and at.lies_beyond(*reached, now_ms()):
        raise ImageNotAvailable(f"{path}: the log ends {at.shortfall(*reached)}{passed}")
    _require_reached(path, head.end_offset, passed)
    return state.stable


def _require_begun(path: Path, segments: Sequence[LogFile], at: Moment, until: Moment) -> None:
    """A time or an epoch from before the first record is that of no state; offset 0 is that of the empty one."""
    first = None if at.offset is not None else next(batches_behind(segments, 0), None)
    if first is not None and until.is_before(first.header):
        raise ImageNotAvailable(f"{path}: the log begins {at.lead(first.header)}")


def _newest_first(checkpoints: Sequence[LogFile]) -> list[LogFile]:
    return sorted(checkpoints, key=lambda file: (file.offset or 0, file.epoch or 0), reverse=True)


def _require_reached(path: Path, end_offset: int, passed: _Passed) -> None:
    """Require that the log has all that a damaged checkpoint covered: the newest state would be an older one without
    it.
    """
    covered = max((one.end_offset for one in passed.all), default=0)
    if covered > end_offset:
        raise ImageNotAvailable(
            f"{path}: records {end_offset} to {covered - 1} are in no file that is whole, so the newest state that can"
            f" be had is that at offset {end_offset}{passed}"
        )


def _end_of(segment: LogFile) -> int:
    end = segment.offset or 0
    for batch in iter_batches(segment):
        end = batch.header.end_offset
    return end


def batches_behind(segments: Sequence[LogFile], start: int) -> Iterator[FileBatch]:
    """The batches from an offset on; segments that end before it are not read."""
    for segment, following in zip_longest(segments, segments[1:]):
        if following is not None and following.offset is not None and following.offset <= start:
            continue
        yield from (batch for batch in iter_batches(segment) if batch.header.end_offset > start)


def headers_behind(segments: Sequence[LogFile], start: int, at: Moment) -> Iterator[BatchHeader]:
    """Of the batches from an offset on, for ``Moment.in_log``. Ends before damage behind a batch later than the moment.

    Raises:
        StorageError: damage where the time may be further on.
    """
    is_later = False
    try:
        for batch in batches_behind(segments, start):
            is_later = at.time_ms is not None and batch.header.timestamp > at.time_ms
            yield batch.header
    except StorageError:
        if not is_later:
            raise


def _require_continuous(path: Path, batch: FileBatch, due: int, passed: _Passed | None = None) -> None:
    base = batch.header.base_offset
    if base == due:
        return
    if base < due:
        raise CorruptBatch(
            str(batch.file.path), batch.position, base, f"offset {due} falls into a batch: no checkpoint ends there"
        )
    raise ImageNotAvailable(
        f"{path}: records {due} to {base - 1} are missing, before {batch.file.path.name}{passed or ''}"
    )


def _begins_later(
    path: Path, at: Moment | None, base: int, checkpoints: list[LogFile], passed: _Passed
) -> ImageNotAvailable:
    damaged = {one.path for one in passed.all}
    earliest = min((file.offset or 0 for file in checkpoints if str(file.path) not in damaged), default=None)
    if earliest is not None:
        reach = f"and its earliest checkpoint is the state at {earliest}"
    else:
        reach = "and no checkpoint is left that is whole" if damaged else "and there is no checkpoint"
    before = "" if at is None else f", after {at}"
    return ImageNotAvailable(
        f"{path}: the log begins at offset {base}, in the middle of history{before}, {reach}{passed}"
    )


def _replayed_to_end(path: Path, start: ReplayState, segments: list[LogFile], passed: _Passed) -> ReplayState:
    replay, due = JoinedReplay(start), start.end_offset
    try:
        try:
            for batch in batches_behind(segments, due):
                _require_continuous(path, batch, due, passed)
                due = batch.header.end_offset
                replay.add(batch.data)
        except (StorageError, ImageNotAvailable):
            replay.finish()
            raise
        return replay.finish()
    except MalformedData:
        # Of one of them: by itself it is found where it lies.
        state = start
        for batch in batches_behind(segments, start.end_offset):
            state = _replayed(state, batch)
        raise


def _replayed(state: ReplayState, batch: FileBatch, below: int | None = None) -> ReplayState:
    try:
        return state.replay_batch(batch.data, below=below)
    except MalformedData as error:
        raise CorruptBatch(str(batch.file.path), batch.position, batch.header.base_offset, str(error)) from error
