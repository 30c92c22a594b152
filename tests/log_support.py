"""What the tests of the log on disk share: small batches, checkpoints, and a log whose disk may crash at any call."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from random import Random
from typing import NamedTuple

from quorate.metadata_log.batches.batch import build_batch, control_batch, place_batch
from quorate.metadata_log.checkpoints.checkpoint_files import CheckpointId, checkpoint_id, checkpoint_name
from quorate.metadata_log.disk import replace_file
from quorate.metadata_log.log.segment_log import LogConfig, MetadataLog
from quorate.metadata_log.records.records import SnapshotFooterRecord, SnapshotHeaderRecord
from quorate.metadata_log.segments.mark import MARK_NAME
from quorate.scripts.simulation.machine.memory_disk import CrashPolicy, MemoryDisk

DIRECTORY = "/node/__cluster_metadata-0"
#: Three or four small batches to a segment, so that short workloads roll.
SMALL_SEGMENTS = LogConfig(segment_bytes=400, resident_bytes=300)


class Batch(NamedTuple):
    """A batch as the model remembers it."""

    base_offset: int
    end_offset: int
    epoch: int
    data: bytes


def make_batch(base_offset: int, epoch: int, count: int = 1, filling: bytes = b"") -> Batch:
    """A placed batch with an opaque body; ``filling`` makes batches at one place differ."""
    data = place_batch(build_batch(b"body" + filling, count, timestamp=1_000), base_offset, epoch)
    return Batch(base_offset, base_offset + count, epoch, data)


def checkpoint_bytes(checkpoint: CheckpointId, filling: bytes = b"state") -> bytes:
    """A valid checkpoint with opaque content."""
    parts = [
        control_batch([(SnapshotHeaderRecord(last_contained_log_timestamp=1_000), 0)], 1_000),
        build_batch(filling, 2, 1_000),
        control_batch([(SnapshotFooterRecord(), 0)], 1_000),
    ]
    placed = [place_batch(part, base, checkpoint.epoch) for part, base in zip(parts, (0, 1, 3), strict=True)]
    return b"".join(placed)


def finish(steps: Iterable[None]) -> None:
    """Run steps to their end."""
    for _ in steps:
        pass


def flush(log: MetadataLog) -> None:
    """Make everything staged durable."""
    job = log.flush_job()
    if job is not None:
        finish(job.run())
        log.job_done(job)


def contents(log: MetadataLog) -> list[Batch]:
    """Every batch the log says it has, read back."""
    refs = [log.entry(index) for index in range(log.entry_count)]
    return [Batch(ref.base_offset, ref.end_offset, ref.epoch, log.read(i)) for i, ref in enumerate(refs)]


class Crash(BaseException):
    """The process ends at this disk call. Not an Exception: nothing may handle it."""


class History(NamedTuple):
    """A log as the model sees it: everything since it was begun, prefixes deleted since included."""

    #: 0, or the end of the checkpoint that took the place of an earlier log.
    origin: int
    origin_epoch: int
    batches: tuple[Batch, ...]

    @property
    def end_offset(self) -> int:
        return self.batches[-1].end_offset if self.batches else self.origin

    @property
    def last_epoch(self) -> int:
        return self.batches[-1].epoch if self.batches else self.origin_epoch

    def cut(self, offset: int) -> History:
        return self._replace(batches=tuple(batch for batch in self.batches if batch.end_offset <= offset))

    def epoch_at(self, offset: int) -> int | None:
        if offset == self.origin:
            return self.origin_epoch
        return next((batch.epoch for batch in self.batches if batch.end_offset == offset), None)

    def describe(self) -> str:
        return f"{self.origin}/{self.origin_epoch}: {[(b.base_offset, b.epoch) for b in self.batches]}"


class ModelledLog:
    """A log on a disk in memory, run beside a list of batches that says what it must hold.

    Every public method does the same to both. After a crash, ``reopen`` compares what was recovered with what was
    promised: ``may_be`` are the histories of which a crash may leave a prefix, ``promised`` the end it must reach.
    """

    def __init__(self, seed: int = 0, config: LogConfig = SMALL_SEGMENTS) -> None:
        self.disk = MemoryDisk(Random(seed))
        self.config = config
        self.disk.put(f"{DIRECTORY}/partition.metadata", b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ")
        self.history = History(0, 0, ())
        self.may_be = [self.history]
        self.promised = 0
        self.committed = 0
        #: Written so far, durable or not.
        self.checkpoints: set[CheckpointId] = set()
        #: What of the log of now the job that is out makes durable.
        self._reached = self.history
        self._filling = 0
        self.log = MetadataLog.open(self.disk, DIRECTORY, config)

    def append(self, count: int = 1, epoch: int | None = None, filling: bytes = b"") -> None:
        self._filling += 1
        epoch = self.history.last_epoch if epoch is None else epoch
        batch = make_batch(self.history.end_offset, epoch, count, str(self._filling).encode() * 3 + filling)
        self._remember(self.history._replace(batches=(*self.history.batches, batch)))
        assert self.log.append(batch.data) == batch.end_offset

    def truncate(self, offset: int) -> None:
        self._remember(self.history.cut(offset))
        self.promised = min(self.promised, offset)
        self._reached = self._reached.cut(offset)
        self.log.truncate_to(offset)

    def commit(self, offset: int) -> None:
        self.committed = max(self.committed, offset)
        self.log.note_commit(offset)

    def flush(self) -> None:
        self.flush_with(lambda: None)

    def flush_with(self, meanwhile: Callable[[], None]) -> None:
        """Flush, and do something on the loop thread while the job is out."""
        job = self.log.flush_job()
        if job is None:
            return
        at_capture = self._reached = self.history
        meanwhile()
        finish(job.run())
        self.log.job_done(job)
        if self.history is at_capture:
            self.may_be = [self.history]
        self.promised = max(self.promised, self._reached.end_offset)

    def checkpoint(self, checkpoint: CheckpointId) -> None:
        """Write a checkpoint file, durably."""
        self.checkpoints.add(checkpoint)
        finish(replace_file(self.disk, DIRECTORY, checkpoint_name(checkpoint), checkpoint_bytes(checkpoint)))

    def install(self, checkpoint: CheckpointId) -> None:
        self.committed = max(self.committed, checkpoint.end_offset)
        is_held = self.history.epoch_at(checkpoint.end_offset) == checkpoint.epoch
        if not is_held:
            # Once its file is durable, the checkpoint alone is what a crash leaves of an older or other history.
            self.may_be.append(History(*checkpoint, ()))
            self.promised = min(self.promised, checkpoint.end_offset)
        self.checkpoint(checkpoint)
        assert self.log.install_checkpoint(*checkpoint) == is_held
        if not is_held:
            self.history = self._reached = History(*checkpoint, ())
            self.may_be = [self.history]
            self.promised = checkpoint.end_offset

    def delete_prefix(self, offset: int) -> None:
        """Write a checkpoint at ``offset``, remove the older ones, then what they and it make superfluous."""
        self.checkpoint(CheckpointId(offset, self.history.epoch_at(offset) or 0))
        for name in self.disk.list_directory(DIRECTORY):
            old = checkpoint_id(name)
            if old is not None and old.end_offset < offset:
                self.disk.unlink(f"{DIRECTORY}/{name}")
        self.disk.sync_directory(DIRECTORY)
        self.log.delete_prefix(offset)

    def reopen(self) -> None:
        """Open what the crash left, and compare it with what was promised."""
        self.disk.on_call = lambda operation, path: None
        self.log = MetadataLog.open(self.disk, DIRECTORY, self.config)
        self.check_recovered()

    def reopen_only(self) -> None:
        """Open what the crash left; to be crashed in the middle."""
        self.log = MetadataLog.open(self.disk, DIRECTORY, self.config)

    def check_recovered(self) -> None:
        """What was recovered is a prefix of what may be, reaches what was promised, and makes up no commit."""
        log = self.log
        assert not log.is_damaged, f"damaged: {log.damage}"
        open_handles = self.disk.open_handles
        assert open_handles.count(f"{DIRECTORY}/{MARK_NAME}") == 1, open_handles
        assert len(open_handles) <= 2, f"the mark, and the segment that is written: {open_handles}"
        assert log.end_offset >= self.promised, f"{self.promised} was promised, the log ends at {log.end_offset}"
        assert log.durable_end == log.end_offset
        assert log.commit <= self.committed, f"{self.committed} is committed, the log says {log.commit}"
        for history in reversed(self.may_be):
            if self.is_prefix_of(history):
                self.history = history.cut(log.end_offset)
                self.may_be = [self.history]
                self.promised = log.end_offset
                return
        found = History(log.start_offset, log.start_epoch, tuple(contents(log)))
        allowed = "\n".join(history.describe() for history in self.may_be)
        raise AssertionError(f"recovered {found.describe()}, which is a prefix of none of\n{allowed}")

    def is_prefix_of(self, history: History) -> bool:
        """Whether the log is this history from some legal start up to some batch's end."""
        log = self.log
        start = CheckpointId(log.start_offset, log.start_epoch)
        if history.epoch_at(start.end_offset) != start.epoch or history.epoch_at(log.end_offset) is None:
            return False
        if start.end_offset != history.origin and start not in self.checkpoints:
            return False
        inside = [b for b in history.batches if start.end_offset <= b.base_offset and b.end_offset <= log.end_offset]
        return contents(log) == inside

    def check_memory(self) -> None:
        """The log says at this moment what the model says."""
        assert self.is_prefix_of(self.history), "the log in memory differs from the model"
        assert self.log.end_offset == self.history.end_offset
        assert self.log.last_epoch == self.history.last_epoch
        assert self.log.durable_end == self.promised
        self._check_beginning()

    def _check_beginning(self) -> None:
        """What lies before the log's start, where it says that it has it."""
        beginning = self.log.beginning
        if beginning is None:
            return
        assert beginning.end_offset == self.log.start_offset > self.history.origin == 0
        before = [batch for batch in self.history.batches if batch.end_offset <= beginning.end_offset]
        assert beginning.read_from(0, 1 << 30).data == b"".join(batch.data for batch in before)
        assert [beginning.epoch_at(batch.end_offset) for batch in before] == [batch.epoch for batch in before]

    def _remember(self, history: History) -> None:
        self.history = history
        self.may_be.append(history)


def crash_at_every_call(
    workload: Callable[[ModelledLog], None], policy: CrashPolicy | None, seeds: Iterable[int] = (0,)
) -> Iterator[tuple[int, ModelledLog]]:
    """Run a workload with a crash at its first disk call, its second, and so on; yield each reopened log.

    ``policy`` None kills the process only. Ends when the workload is done before its crash.
    """
    for seed in seeds:
        call = 0
        is_done = False
        while not is_done:
            call += 1
            modelled = ModelledLog(seed)
            is_done = not run_until(modelled, workload, call)
            if policy is None:
                modelled.disk.kill()
            else:
                modelled.disk.power_cut(policy)
            yield call, modelled


def run_until(modelled: ModelledLog, workload: Callable[[ModelledLog], None], call: int) -> bool:
    """Run a workload up to its disk call number ``call``; whether it got there."""
    left = call

    def count(operation: str, path: str) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            raise Crash(f"{operation} {path}")

    modelled.disk.on_call = count
    try:
        workload(modelled)
    except Crash:
        return True
    return False


def fail_at(modelled: ModelledLog, workload: Callable[[ModelledLog], None], call: int, error: int) -> str | None:
    """Run a workload whose disk call number ``call`` fails; what failed, None when the workload was done before.

    A sync that fails also takes pages with it: the cache shows them, and no later sync brings them to the disk.
    """
    left = call
    failed: str | None = None

    def count(operation: str, path: str) -> None:
        nonlocal left, failed
        left -= 1
        if left:
            return
        failed = f"{operation} {path}"
        if operation.startswith("sync"):
            modelled.disk.fail_next_sync(path)
        else:
            raise OSError(error, "injected", path)

    modelled.disk.on_call = count
    try:
        workload(modelled)
    except OSError:
        if failed is None:
            raise
    else:
        assert failed is None, f"{failed} failed, and nobody heard of it"
    return failed
