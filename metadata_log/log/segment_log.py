"""The log of this node, ``__cluster_metadata``: a window of batches in memory over segment files on disk.

The loop thread owns a ``MetadataLog``. Appending, truncating and dropping change what it says at once and *stage* the
same for the disk; ``flush_job`` hands everything staged to the disk thread as one job; ``job_done`` moves
``durable_end``. One job is out at a time: jobs run in order, and a sync covers all that queued up behind the last one.

Offsets are record offsets; every end is exclusive. Entries are numbered from 0 at ``start_offset`` and renumbered by
``delete_prefix`` and ``install_checkpoint``: whoever keeps an index across those keeps the returned count too.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from dataclasses import dataclass
from typing import Final

from quorate.metadata_log.batches.batch import HEADER_BYTES, LOG_OVERHEAD_BYTES, checked_header
from quorate.metadata_log.batches.batch_run import BatchRun
from quorate.metadata_log.checkpoints.checkpoint_files import CheckpointSurvey
from quorate.metadata_log.disk import Disk
from quorate.metadata_log.errors import CorruptBatch, InvariantViolation, MalformedData, StorageError
from quorate.metadata_log.log.beginning import Beginning
from quorate.metadata_log.log.flush import CutTail, DiskStep, DropLog, DropPrefix, FlushJob, StartSegment, WriteBatches
from quorate.metadata_log.log.log_index import BatchRef, EpochEnd, LogIndex, OffsetOutOfRange
from quorate.metadata_log.log.recovery import Recovered, TornTail, recover
from quorate.metadata_log.log.recovery_verdict import Damage
from quorate.metadata_log.segments.mark import Mark
from quorate.metadata_log.segments.segment_reader import SegmentReader

__all__ = ["BatchRef", "Damage", "DamagedLog", "EpochEnd", "FlushJob", "LogConfig", "MetadataLog", "OffsetOutOfRange"]

# Base offset, length, epoch and record count in the header of a batch: an append looks at nothing else.
_PLACEMENT: Final = struct.Struct(">qii41xi")


@dataclass(frozen=True, slots=True)
class LogConfig:
    """Bounds on the log's use of disk and memory."""

    #: A segment is closed before the batch that would make it larger. Deletion works on whole segments, so this is
    #: also how much is kept at least; Kafka's default is 1 GiB beside 100 MiB of retention.
    segment_bytes: int
    #: Memory for recent batches; older ones are read from disk. What is not yet written stays anyway.
    resident_bytes: int


class DamagedLog(StorageError):
    """The log is damaged and nothing may be done with it; ``damage`` says where."""

    def __init__(self, damage: Damage) -> None:
        super().__init__(str(damage))
        self.damage = damage


class MetadataLog(LogIndex):
    """See the module's rules. Not thread-safe: the loop thread's. Made by ``open``. Lookups: ``LogIndex``."""

    def __init__(self, recovered: Recovered, config: LogConfig) -> None:
        super().__init__(recovered.entries, recovered.start_offset, recovered.start_epoch)
        self._config = config
        self._files = recovered.files
        self._reader = SegmentReader(recovered.files.disk, recovered.files.directory)
        self._beginning: Beginning | None = None
        #: (base offset, bytes) of every segment file, ascending; staged changes included.
        self._segments: list[tuple[int, int]] = recovered.segments
        self._commit = recovered.commit
        # Of a damaged log nothing is vouched for.
        self._durable_end = recovered.start_offset if recovered.damage else recovered.entries.end_offset
        self._staged: list[DiskStep] = []
        self._job: FlushJob | None = None
        #: Bytes of batches that are staged, and that are in the job that is out.
        self._staged_bytes = self._job_bytes = 0
        #: Why the log cannot be used, None when it can. See ``is_damaged``.
        self.damage: Damage | None = recovered.damage
        #: The torn tail that was cut when the log was opened, for whoever reports it; None when there was none.
        self.torn_tail: TornTail | None = recovered.torn_tail
        #: (end offset, epoch) of the checkpoint for which the whole log was dropped at open, None when none was.
        self.dropped_for: tuple[int, int] | None = recovered.dropped_for
        #: Base offsets of the control batches that the log held at open: few, and rarely looked for.
        self.control_batches_at_open: list[int] = recovered.controls
        #: The checkpoints found at open; ``checkpoints.CheckpointStore`` keeps count of them from there.
        self.checkpoints_at_open: CheckpointSurvey = recovered.checkpoints

    @classmethod
    def open(cls, disk: Disk, directory: str, config: LogConfig) -> MetadataLog:
        """Recover the log in ``directory`` (``.../__cluster_metadata-0``, ours or Kafka's), which must exist.

        Everything it returns is durable. A torn tail is cut, left-over ``.part`` files go, a log that a newer
        checkpoint has overtaken is dropped, ``leader-epoch-checkpoint`` and the mark are written anew.
        A damaged log is left untouched and returned with ``damage`` set. Blocks; runs before the loop does.

        Raises:
            OSError: the disk failed.
        """
        return cls(recover(disk, directory), config)

    # --- what it is ----------------------------------------------------------------------------------

    @property
    def is_damaged(self) -> bool:
        """Whether what was promised is gone or wrong.

        Such a node does not vote, lead or serve. Its log can be read up to the damage, for diagnosis; every change
        raises ``DamagedLog``. ``quarantine.set_aside`` moves the damaged files away, and the election state with them,
        so that the node may open again as a non-voter and recover from its peers.
        """
        return self.damage is not None

    @property
    def durable_end(self) -> int:
        """Exclusive end of what a crash cannot take: what this node may acknowledge. Never above ``end_offset``."""
        return self._durable_end

    @property
    def unwritten_bytes(self) -> int:
        """Bytes of batches in memory that no finished job has brought to the disk, truncated ones included."""
        return self._staged_bytes + self._job_bytes

    @property
    def commit(self) -> int:
        """Exclusive end of what is noted as committed. At open a lower bound of what was."""
        return self._commit

    @property
    def file_bytes(self) -> int:
        """Bytes of all segments, staged changes included."""
        return sum(size for _, size in self._segments)

    @property
    def segments(self) -> tuple[tuple[int, int], ...]:
        """(base offset, bytes) of the segments, ascending. The first may begin below ``start_offset``."""
        return tuple(self._segments)

    @property
    def beginning(self) -> Beginning | None:
        """The batches from offset 0 to ``start_offset`` while their segment is there; None too where both are one."""
        return self._beginning

    def bytes_below(self, offset: int) -> int:
        """Bytes of the segments before the batch that holds ``offset``; of all of them where that is the log's end."""
        if offset >= self.end_offset:
            return self.file_bytes
        index = self.position_containing(offset)
        number = bisect_right(self._segments, (self._entries.base_of(index), 1 << 62)) - 1
        return sum(size for _, size in self._segments[:number]) + self._entries.position_of(index)

    def read(self, index: int) -> bytes:
        """The bytes of an entry: from memory, else from disk with every check made.

        Raises:
            CorruptBatch: what is on disk is not what was written.
            OSError: the disk failed.
        """
        data = self._entries.resident(index)
        return self._read_file(index) if data is None else data

    def read_run(self, first: int, stop: int) -> bytes:
        """The bytes of the entries ``first <= index < stop``, back to back. Raises as ``read``."""
        data = self._entries.resident_run(first, stop)
        return b"".join([self.read(index) for index in range(first, stop)]) if data is None else data

    def _read_file(self, index: int) -> bytes:
        ref = self.entry(index)
        base = self._segment_of(ref.base_offset)
        position = self._entries.position_of(index)
        data = self._reader.read(base, position, ref.size)
        try:
            header = checked_header(data)
        except MalformedData as error:
            raise CorruptBatch(self._files.path(base), position, ref.base_offset, str(error)) from error
        if (header.base_offset, header.end_offset, header.epoch, header.size) != ref:
            raise CorruptBatch(self._files.path(base), position, ref.base_offset, f"{header} where {ref} was written")
        return data

    # --- changes -------------------------------------------------------------------------------------

    def append(self, batch: bytes) -> int:
        """Append a placed batch and return the new end offset. In memory at once; durable after a flush.

        The caller has built it, or has checked what it received (``batch.checked_header``): the CRC is not looked at.

        Raises:
            InvariantViolation: it does not continue the log, its epoch falls, or its length is not what it says.
        """
        if self.damage is not None:
            raise DamagedLog(self.damage)
        entries = self._entries
        size = len(batch)
        placement: tuple[int, int, int, int]
        placement = _PLACEMENT.unpack_from(batch) if size >= HEADER_BYTES else (0, 0, 0, 0)
        base_offset, length, epoch, count = placement
        if (
            base_offset != entries.end_offset
            or length + LOG_OVERHEAD_BYTES != size
            or count < 1
            or epoch < entries.last_epoch_or(self._start_epoch)
        ):
            raise InvariantViolation(
                f"append of {size} bytes at offset {base_offset}, epoch {epoch}, with {count} records, to a log that "
                f"ends at {self.end_offset}, epoch {self.last_epoch}"
            )
        end_offset = base_offset + count
        entries.add_resident(end_offset, epoch, self._stage_write(batch, size), batch)
        return end_offset

    def append_run(self, run: BatchRun) -> None:
        """Append batches that were received and checked together (``batch_run.split_run``); as ``append`` of each.

        Raises:
            InvariantViolation: they do not continue the log, or their epoch falls.
        """
        self._check_usable()
        if run.base_offset != self.end_offset or run.epochs[0] < self.last_epoch:
            raise InvariantViolation(
                f"append of {len(run)} batches at offset {run.base_offset}, epoch {run.epochs[0]}, to a log that "
                f"ends at {self.end_offset}, epoch {self.last_epoch}"
            )
        if self._segments and self._segments[-1][1] + run.size <= self._config.segment_bytes:
            self._entries.add_resident_run(self._stage_write(run.data, run.size), run)
        else:
            for batch in run.batches:
                self.append(batch)

    def truncate_to(self, offset: int) -> None:
        """Remove everything from ``offset`` on. In memory at once, staged for the disk.

        Raises:
            InvariantViolation: no batch ends there, or something committed would go.
        """
        self._check_usable()
        epoch = self.epoch_at(offset)
        if epoch is None or offset < self._commit:
            raise InvariantViolation(
                f"truncation to {offset} of a log {self._start_offset}..{self.end_offset}, committed to {self._commit}"
            )
        if offset == self.end_offset:
            return
        first_gone = self._entries.starting_at(offset)
        position = self._entries.position_of(first_gone)
        cut = None
        unlinked = []
        while self._segments and self._segments[-1][0] >= offset:
            unlinked.append(self._segments.pop()[0])
        if self._segments and (not unlinked or unlinked[-1] != offset):
            cut = (self._segments[-1][0], position)
            self._segments[-1] = cut
        self._entries.truncate(first_gone)
        self._reader.forget()
        self._durable_end = min(self._durable_end, offset)
        if self._job is not None:
            lowest = self._job.truncated_to
            self._job.truncated_to = offset if lowest is None else min(lowest, offset)
        self._staged.append(CutTail(Mark(offset, epoch, self._commit), tuple(unlinked), cut))

    def delete_prefix(self, offset: int) -> int:
        """Move the log's start up to ``offset``, where a durable checkpoint ends, and return how many entries went.

        Segments that lie wholly before it are removed; the rest of their bytes stays in the file, as with Kafka.

        Raises:
            InvariantViolation: no batch ends there, or it is not committed.
        """
        self._check_usable()
        if offset <= self._start_offset:
            return 0
        epoch = self.epoch_at(offset)
        if epoch is None or offset > self._commit:
            raise InvariantViolation(f"log start {offset} is no committed end of a batch ({self._commit} is committed)")
        count = self._entries.starting_at(offset)
        unlinked = []
        # A segment ends where the next begins; the newest one stays.
        while len(self._segments) > 1 and self._segments[1][0] <= offset:
            unlinked.append(self._segments.pop(0)[0])
        self._beginning = self._longer_beginning(offset, count)
        self._entries.drop_first(count)
        self._start_offset = offset
        self._start_epoch = epoch
        if unlinked:
            self._reader.forget()
            self._staged.append(DropPrefix(tuple(unlinked)))
        return count

    def install_checkpoint(self, end_offset: int, epoch: int) -> bool:
        """Take notice of a checkpoint that is durable in this directory; everything it covers is committed.

        Returns whether the log holds (``end_offset``, ``epoch``) and keeps its tail. If not, the whole log is dropped
        and begins, empty and durable, where the checkpoint ends.

        Raises:
            InvariantViolation: the log was committed up to there and differs. A checkpoint only goes forward.
        """
        self._check_usable()
        if self.holds(end_offset, epoch):
            self.note_commit(end_offset)
            return True
        if end_offset <= self._commit:
            raise InvariantViolation(
                f"checkpoint {end_offset}-{epoch} does not fit a log that is committed to {self._commit}"
            )
        unlinked = tuple(base for base, _ in reversed(self._segments))
        self._segments.clear()
        self._entries.truncate(0)
        self._entries.end_offset = end_offset
        self._reader.forget()
        self._beginning = None
        self._start_offset = self._commit = self._durable_end = end_offset
        self._start_epoch = epoch
        if self._job is not None:
            self._job.is_superseded = True
        self._staged.append(DropLog(Mark(end_offset, epoch, end_offset), unlinked))
        return False

    def note_commit(self, offset: int) -> None:
        """Remember that everything before ``offset`` is committed; a lower one is ignored. Goes into the next mark.

        Raises:
            InvariantViolation: it is beyond the log's end.
        """
        if offset > self.end_offset:
            raise InvariantViolation(f"commit {offset} is beyond the log's end {self.end_offset}")
        self._commit = max(self._commit, offset)

    # --- the disk ------------------------------------------------------------------------------------

    def flush_job(self) -> FlushJob | None:
        """A job over everything staged so far, in order; None when nothing is, or while the job before is out."""
        self._check_usable()
        if not self._staged or self._job is not None:
            return None
        mark = Mark(self.end_offset, self.last_epoch, min(self._commit, self.end_offset))
        self._job = FlushJob(self._files, self._staged, mark)
        self._staged = []
        self._job_bytes, self._staged_bytes = self._staged_bytes, 0
        return self._job

    @property
    def has_staged(self) -> bool:
        """Whether something waits for a flush."""
        return bool(self._staged)

    def job_done(self, job: FlushJob) -> None:
        """Take notice that a job ran to its end: ``durable_end`` moves, unless a truncation since says otherwise."""
        if job is not self._job:
            raise InvariantViolation("a flush job was reported that is not the one that is out")
        self._job = None
        self._job_bytes = 0
        if job.is_superseded:
            return
        reached = job.durable_end if job.truncated_to is None else min(job.durable_end, job.truncated_to)
        self._durable_end = max(self._durable_end, reached)
        self._entries.evict(self._config.resident_bytes, self._durable_end)

    def close(self) -> None:
        """Give all handles back. No job may be running; what is staged is lost, as in a crash."""
        self._reader.forget()
        self._files.close()
        self._files.mark.close()

    # --- inside --------------------------------------------------------------------------------------

    def _check_usable(self) -> None:
        if self.damage is not None:
            raise DamagedLog(self.damage)

    def _longer_beginning(self, offset: int, count: int) -> Beginning | None:
        """The beginning once the first ``count`` entries, to ``offset``, are part of it."""
        beginning = Beginning(self._reader) if self._start_offset == 0 else self._beginning
        # What is not written yet is in memory alone, and that forgets it.
        if beginning is None or self._segments[0][0] > 0 or offset > self._durable_end:
            return None
        beginning.take(self._entries, count)
        return beginning

    def _segment_of(self, offset: int) -> int:
        """Base of the segment that holds a batch starting at ``offset``."""
        return self._segments[bisect_right(self._segments, (offset, 1 << 62)) - 1][0]

    def _stage_write(self, data: bytes, size: int) -> int:
        """Stage ``data`` behind the log's last byte and return its position. Rolls when it would not fit."""
        self._staged_bytes += size
        segments, staged = self._segments, self._staged
        base, position = segments[-1] if segments else (self.end_offset, 0)
        if not segments or (position and position + size > self._config.segment_bytes):
            base, position = self.end_offset, 0
            segments.append((base, size))
            staged.append(StartSegment(base))
        else:
            segments[-1] = (base, position + size)
        last = staged[-1] if staged else None
        if isinstance(last, WriteBatches) and last.base == base and last.end_position == position:
            last.chunks.append(data)
            last.end_position = position + size
        else:
            staged.append(WriteBatches(base, position, [data], position + size))
        return position
