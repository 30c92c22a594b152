"""The checks of `quorate log verify`: every batch and record of a log, the joins between its files, and its replay."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from quorate.metadata_log.batches.columns import decode_batch
from quorate.metadata_log.directory.reader import FileBatch, LogFile, iter_batches
from quorate.metadata_log.errors import CorruptBatch, MalformedData, StorageError
from quorate.metadata_log.records.wire import Buffer
from quorate.snapshots.checkpoints.checkpoint import read_checkpoint
from quorate.snapshots.errors import ReplayError
from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.image_digest import digest_image
from quorate.snapshots.replay.replay_state import ReplayState


@dataclass(slots=True)
class LogVerdict:
    """The results. Each finding and note is a sentence that names its file and, where there is one, the place."""

    segments: int = 0
    checkpoints: int = 0
    batches: int = 0
    records: int = 0
    #: Offsets of the segments' records; the end is exclusive.
    first_offset: int | None = None
    end_offset: int | None = None
    #: Exclusive end of what was replayed; None = nothing was.
    replayed_to: int | None = None
    #: Checkpoints that were held against the log's own state at their offset.
    checkpoints_compared: int = 0
    #: What is wrong.
    findings: list[str] = field(default_factory=list)
    #: What was not judged, and what is worth knowing.
    notes: list[str] = field(default_factory=list)


class LogVerification:
    """Checks the files of one log, segments in order and then checkpoints. It goes on after each finding."""

    def __init__(self, files: list[LogFile], on_progress: Callable[[int], None], *, is_whole_log: bool) -> None:
        """Prepare; nothing is read yet.

        Args:
            files: as ``find_files`` orders them.
            on_progress: told how many more bytes have been checked.
            is_whole_log: whether the files should hold all that is needed for replay.
        """
        self.segments = [file for file in files if not file.is_checkpoint]
        self._checkpoints = [file for file in files if file.is_checkpoint]
        self._on_progress = on_progress
        self._is_whole_log = is_whole_log
        #: The states of the checkpoints that can be loaded.
        self.images: dict[Path, MetadataImage] = {}
        #: Of the checkpoints that were held against the log: whether they hold its state.
        self.same_as_log: dict[Path, bool] = {}
        #: The batch of a checkpoint that was read last, and the one that is being replayed.
        self._batch: FileBatch | None = None
        self._replayed: FileBatch | None = None
        #: The log's own state at the offsets of checkpoints.
        self._log_states: dict[int, MetadataImage] = {}
        self.verdict = LogVerdict(segments=len(self.segments), checkpoints=len(self._checkpoints))

    def run(self) -> LogVerdict:
        """Check everything.

        Raises:
            StorageError: a file cannot be read at all.
        """
        for file in self._checkpoints:
            self._check_checkpoint(file)
        if self.segments:
            self._check_segments()
        for file in self._checkpoints:
            self._compare(file)
        return self.verdict

    # --- checkpoints ---------------------------------------------------------------------------------

    def _check_checkpoint(self, file: LogFile) -> None:
        self._batch = self._replayed = None
        try:
            self.images[file.path] = read_checkpoint(self._contents(file), file.offset, file.epoch)
        except CorruptBatch as error:
            self.verdict.findings.append(str(error))
        except MalformedData as error:
            self._not_usable(file, error, self._batch)
        except ReplayError as error:
            self._not_usable(file, error, self._replayed)

    def _not_usable(self, file: LogFile, error: Exception, batch: FileBatch | None) -> None:
        self.verdict.findings.append(f"{file.path}: not a usable checkpoint: {error}{_place(batch)}")

    def _contents(self, file: LogFile) -> Iterator[Buffer]:
        for batch in iter_batches(file):
            self._count(batch)
            self._replayed, self._batch = self._batch, batch
            epoch = batch.header.epoch
            if file.epoch is not None and epoch != file.epoch:
                raise _damage(batch, f"epoch {epoch} in a checkpoint of epoch {file.epoch}")
            yield batch.data
        self._replayed = self._batch

    def _compare(self, file: LogFile) -> None:
        """Hold a checkpoint against what the log adds up to at the same offset."""
        image = self.images.get(file.path)
        from_log = None if file.offset is None else self._log_states.get(file.offset)
        if image is None or from_log is None:
            return
        self.verdict.checkpoints_compared += 1
        self.same_as_log[file.path] = digest_image(image).value == digest_image(from_log).value
        if not self.same_as_log[file.path]:
            self.verdict.findings.append(f"{file.path}: its state is not that of the log at offset {file.offset}")

    # --- segments ------------------------------------------------------------------------------------

    def _check_segments(self) -> None:
        state = self._start(self.segments[0])
        due: int | None = None
        epoch = 0
        for file in self.segments:
            if due is not None and file.offset != due:
                self.verdict.findings.append(f"{file.path}: begins at offset {file.offset} where {due} is due")
            due = file.offset
            try:
                for batch in iter_batches(file):
                    self._count(batch)
                    if batch.header.epoch < epoch:
                        raise _damage(batch, f"epoch {batch.header.epoch} after epoch {epoch}")
                    state = self._check_batch(batch, state)
                    due, epoch = batch.header.end_offset, batch.header.epoch
            except CorruptBatch as error:
                self.verdict.findings.append(str(error))
                due, state = None, None  # where the damage ends is not known
        if state is not None and state.in_transaction:
            self.verdict.notes.append(f"the transaction that began at offset {state.begin_offset} has not ended")

    def _start(self, first: LogFile) -> ReplayState | None:
        """The state that the log is replayed onto: the oldest checkpoint's at or behind its first offset."""
        usable = [file for file in self._checkpoints if file.path in self.images and file.offset is not None]
        if not first.offset and not any(file.offset == 0 for file in usable):
            return ReplayState()
        oldest = min((file.offset or 0 for file in usable if (file.offset or 0) >= (first.offset or 0)), default=None)
        if oldest is None:
            where = self.verdict.findings if self._is_whole_log else self.verdict.notes
            where.append(f"{first.path}: begins in the middle of history, and no checkpoint is there to replay it onto")
            return None
        if oldest != (first.offset or 0):
            self.verdict.notes.append(f"offsets below {oldest}, the oldest checkpoint's, were read but not replayed")
        newest_epoch = max((file for file in usable if file.offset == oldest), key=lambda file: file.epoch or 0)
        return ReplayState(self.images[newest_epoch.path])

    def _check_batch(self, batch: FileBatch, state: ReplayState | None) -> ReplayState | None:
        """Decode the batch, and replay it if the state so far is known; the state after it."""
        header = batch.header
        verdict = self.verdict
        verdict.first_offset = header.base_offset if verdict.first_offset is None else verdict.first_offset
        verdict.end_offset = header.end_offset
        try:
            if state is None or header.end_offset <= state.end_offset:
                _decode(batch)
                return state
            if header.base_offset != state.end_offset:
                _decode(batch)
                verdict.notes.append(f"{batch.file.path}: not replayed from offset {header.base_offset} on")
                return None
            state = state.replay_batch(batch.data)
        except MalformedData as error:
            raise _damage(batch, str(error)) from error
        except ReplayError as error:
            verdict.findings.append(
                f"{batch.file.path}: the record at offset {error.offset} (batch at byte {batch.position}) "
                f"cannot be replayed: {error.reason}"
            )
            return None
        verdict.replayed_to = header.end_offset
        if any(file.offset == header.end_offset for file in self._checkpoints) and not state.in_transaction:
            self._log_states[header.end_offset] = state.stable
        return state

    def _count(self, batch: FileBatch) -> None:
        self.verdict.batches += 1
        self.verdict.records += batch.header.record_count
        self._on_progress(batch.header.size)


def _decode(batch: FileBatch) -> None:
    for _ in decode_batch(batch.data):
        pass


def _place(batch: FileBatch | None) -> str:
    return "" if batch is None else f" (batch at byte {batch.position}, offset {batch.header.base_offset})"


def _damage(batch: FileBatch, reason: str) -> CorruptBatch:
    return CorruptBatch(str(batch.file.path), batch.position, batch.header.base_offset, reason)


def total_bytes(files: list[LogFile]) -> int:
    """Bytes of all files.

    Raises:
        StorageError: one of them cannot be looked at.
    """
    try:
        return sum(file.path.stat().st_size for file in files)
    except OSError as error:
        raise StorageError(f"{error.filename}: {error.strerror}") from error
