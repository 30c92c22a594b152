"""The one rule on checkpoints that are not whole, for every tool: a broken or half-written one is never used.

The next one in order is, and the log behind it; whoever asked is told which were passed over, and why. A running node
keeps the same rule when it opens its log (``metadata_log.checkpoints.checkpoint_files.survey_checkpoints``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from quorate.metadata_log.batches.batch import iter_records
from quorate.metadata_log.cycle_collector import collector_resting
from quorate.metadata_log.directory.reader import LogFile, iter_batches
from quorate.metadata_log.errors import CorruptBatch, CorruptCheckpoint, MalformedData, StorageError
from quorate.metadata_log.records.records import SnapshotHeaderRecord
from quorate.metadata_log.records.wire import Buffer
from quorate.snapshots.checkpoints.checkpoint import read_checkpoint
from quorate.snapshots.checkpoints.moments import Moment
from quorate.snapshots.errors import ReplayError
from quorate.snapshots.image.image import MetadataImage


@dataclass(frozen=True, slots=True)
class PassedOver:
    """A checkpoint that would have been the one to take, and is not whole."""

    path: str
    #: Exclusive end of what it was to cover, by its name.
    end_offset: int
    #: Byte position of what is wrong; None where it is not at one place.
    position: int | None
    reason: str

    def __str__(self) -> str:
        at = "" if self.position is None else f" at byte {self.position}"
        return f"{self.path}: passed over, it is damaged{at}: {self.reason}"


#: Is told of every checkpoint that is passed over, in the order in which they are.
TellPassedOver = Callable[[PassedOver], None]


class WholeCheckpoint(NamedTuple):
    """A checkpoint, and the state in it."""

    file: LogFile
    image: MetadataImage


def first_whole(files: Iterable[LogFile], tell: TellPassedOver) -> WholeCheckpoint | None:
    """The first of these checkpoints that is whole; None where none is."""
    for file in files:
        try:
            return WholeCheckpoint(file, load_checkpoint(file))
        except StorageError as error:
            tell(_passed_over(file, error))
    return None


def usable_at(files: Iterable[LogFile], at: Moment | None, tell: TellPassedOver) -> Iterator[LogFile]:
    """Those of the checkpoints that hold a state at a moment (None: any) or before it."""
    for file in files:
        try:
            is_wanted = at is None or is_at_or_before(file, at)
        except StorageError as error:
            tell(_passed_over(file, error))
        else:
            if is_wanted:
                yield file


def _passed_over(file: LogFile, error: StorageError) -> PassedOver:
    if isinstance(error, CorruptBatch | CorruptCheckpoint):
        return PassedOver(str(file.path), file.offset or 0, error.position, error.reason)
    return PassedOver(str(file.path), file.offset or 0, None, str(error))


def load_checkpoint(file: LogFile) -> MetadataImage:
    """The image in one checkpoint file.

    Raises:
        CorruptCheckpoint, CorruptBatch: it is not whole. StorageError: it cannot be read.
    """
    contents = _Contents(file)
    try:
        with collector_resting():
            return read_checkpoint(contents.batches(), file.offset, file.epoch)
    except MalformedData as error:
        raise CorruptCheckpoint(str(file.path), str(error), contents.position) from error
    except ReplayError as error:
        raise CorruptCheckpoint(str(file.path), f"cannot be replayed: {error}", contents.position_before) from error


class _Contents:
    """A checkpoint's batches, and how far they were read."""

    def __init__(self, file: LogFile) -> None:
        self._file = file
        #: Of the batch at hand, and of the one before; behind the last one the end of the file.
        self.position = self.position_before = 0

    def batches(self) -> Iterator[Buffer]:
        end = 0
        for batch in iter_batches(self._file):
            self._go_to(batch.position)
            end = batch.position + batch.header.size
            epoch = batch.header.epoch
            # No CRC covers it.
            if self._file.epoch is not None and epoch != self._file.epoch:
                reason = f"a batch has epoch {epoch}, the name says {self._file.epoch}"
                raise CorruptCheckpoint(str(self._file.path), reason, batch.position)
            yield batch.data
        self._go_to(end)

    def _go_to(self, position: int) -> None:
        self.position_before, self.position = self.position, position


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
    try:
        for batch in iter_batches(checkpoint):
            for logged in iter_records(batch.data):
                if isinstance(logged.record, SnapshotHeaderRecord):
                    return logged.record.last_contained_log_timestamp
            break
    except MalformedData as error:
        raise CorruptCheckpoint(str(checkpoint.path), str(error), 0) from error
    raise CorruptCheckpoint(str(checkpoint.path), "no SnapshotHeader at the start", 0)
