"""When a checkpoint is written: after bytes, after a time, one at a time, never inside a transaction."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from quorate.controller.background.checkpoint_writer import (
    CheckpointLimits,
    CheckpointWriter,
    TakenCheckpoint,
    manifest_of,
)
from quorate.metadata_log.batches.batch import checked_header
from quorate.metadata_log.checkpoints.checkpoints import CheckpointContent
from quorate.metadata_log.errors import ApiError, CorruptCheckpoint, Overloaded, StorageError
from quorate.metadata_log.records.records import TopicRecord, VersionedRecord
from quorate.snapshots.checkpoints.checkpoint import read_checkpoint
from quorate.snapshots.checkpoints.loading import load_image
from quorate.snapshots.digest_memory import DigestMemory
from quorate.snapshots.image.image import EMPTY_IMAGE, MetadataImage
from quorate.snapshots.image.image_parts import Provenance
from quorate.snapshots.image_digest import digest_image
from quorate.snapshots.replay.replay import replay
from tests.default_parts import log_config
from tests.log_support import ModelledLog
from tests.unit.controller.manual_scheduler import ManualScheduler

Done = Callable[[StorageError | None], None]


class Told:
    """Who asked for a checkpoint, and what it was told."""

    def __init__(self) -> None:
        self.results: list[TakenCheckpoint | Exception] = []

    def complete(self, result: TakenCheckpoint) -> None:
        self.results.append(result)

    def fail(self, error: Exception) -> None:
        self.results.append(error)


class CountedPace:
    """``Pace`` that never waits."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    @contextmanager
    def working(self) -> Iterator[None]:
        self.calls.append("begin")
        try:
            yield
        finally:
            self.calls.append("end")

    def pause(self) -> None:
        self.calls.append("pause")


class Writing:
    """A writer over a log whose batches are applied as a test says."""

    def __init__(self, log_bytes: int = 1_000_000, interval_ms: float = 0, covered_offset: int = 0) -> None:
        self.scheduler = ManualScheduler()
        self.pace = CountedPace()
        self.log = ModelledLog(config=log_config())
        self.stable: MetadataImage = EMPTY_IMAGE
        self.applied_offset = 0
        self.covered_offset = covered_offset
        self.begun: list[tuple[int, Done]] = []
        self.reported: list[tuple[int, bool]] = []
        limits = CheckpointLimits(log_bytes, interval_ms)
        self.writer = CheckpointWriter(
            self,
            self.log.log,
            lambda: self.covered_offset,
            self.write,
            self.report,
            limits,
            self.scheduler,
            self.pace,
            DigestMemory(),
        )

    def write(self, end_offset: int, content: CheckpointContent, done: Done) -> None:
        self.begun.append((end_offset, done))
        self.chunks, self.describe = content.chunks, content.describe

    def report(self, end_offset: int, took_ms: float, error: StorageError | None) -> None:
        self.reported.append((end_offset, error is None))

    def apply(self, count: int = 1, *, in_transaction: bool = False) -> None:
        """Append and apply batches of one record; the state stays behind while a transaction is open."""
        for _ in range(count):
            self.log.append(epoch=1)
        self.applied_offset = self.log.log.end_offset
        if not in_transaction:
            topic = TopicRecord(f"topic-{self.applied_offset}", self.applied_offset.to_bytes(16, "big"))
            provenance = Provenance(self.applied_offset - 1, 1, 0)
            self.stable = replay(self.stable, [VersionedRecord(topic, 0)], provenance)
        self.writer.moved()

    def finish(self, error: StorageError | None = None) -> None:
        if error is None:
            self.covered_offset = self.begun[-1][0]
        self.begun[-1][1](error)

    def take(self) -> list[TakenCheckpoint | Exception]:
        """Ask for one; what is told, now or later."""
        told = Told()
        self.writer.take(told)
        return told.results

    @property
    def offsets(self) -> list[int]:
        return [offset for offset, _ in self.begun]


@pytest.fixture
def batch_bytes() -> int:
    log = ModelledLog()
    log.append(epoch=1)
    return log.log.entry(0).size


def test_checkpoint_is_written_after_so_many_bytes_of_log(batch_bytes: int) -> None:
    writing = Writing(log_bytes=3 * batch_bytes)
    writing.apply(2)
    assert writing.offsets == []
    writing.apply()
    assert writing.offsets == [3]
    writing.finish()
    writing.apply(2)
    assert writing.offsets == [3]
    writing.apply()
    assert writing.offsets == [3, 6]
    assert writing.reported == [(3, True)]


def test_manifest_of_the_next_checkpoint_is_that_of_the_whole_state(batch_bytes: int) -> None:
    writing = Writing(log_bytes=3 * batch_bytes)
    for topics in (1, 2):
        writing.apply(3)
        assert b"".join(writing.chunks)
        assert writing.describe() == manifest_of(digest_image(writing.stable))
        assert writing.describe().record_counts == {"TOPIC_RECORD": topics}
        writing.finish()


def test_checkpoint_at_start_counts_only_what_the_newest_one_does_not_cover(batch_bytes: int) -> None:
    writing = Writing(log_bytes=3 * batch_bytes, covered_offset=5)
    writing.apply(7)
    assert writing.offsets == []
    writing.apply()
    assert writing.offsets == [8]


def test_checkpoint_waits_for_the_one_before(batch_bytes: int) -> None:
    writing = Writing(log_bytes=batch_bytes)
    writing.apply()
    writing.apply()
    assert writing.offsets == [1]
    writing.finish()
    writing.apply()
    assert writing.offsets == [1, 3]


def test_checkpoint_is_written_after_a_time_only_if_there_is_something_new() -> None:
    writing = Writing(interval_ms=1_000)
    writing.apply()
    assert writing.offsets == []
    writing.scheduler.advance(1_000)
    writing.apply()
    assert writing.offsets == [2]
    writing.finish()
    writing.scheduler.advance(5_000)
    writing.writer.moved()
    assert writing.offsets == [2]


def test_checkpoint_is_not_written_inside_a_transaction(batch_bytes: int) -> None:
    writing = Writing(log_bytes=batch_bytes)
    writing.apply(in_transaction=True)
    writing.apply(in_transaction=True)
    assert writing.offsets == []
    writing.apply()
    assert writing.offsets == [3]


def test_checkpoint_that_failed_is_reported_and_tried_again_later(batch_bytes: int) -> None:
    writing = Writing(log_bytes=batch_bytes)
    writing.apply()
    writing.finish(CorruptCheckpoint("file", "not whole"))
    assert writing.reported == [(1, False)]
    writing.apply()
    assert writing.offsets == [1], "not at once"
    writing.scheduler.advance(10_001)
    writing.apply()
    assert writing.offsets == [1, 3]
    writing.finish(CorruptCheckpoint("file", "not whole"))
    writing.scheduler.advance(10_001)
    writing.apply()
    assert writing.offsets == [1, 3], "later each time"
    writing.scheduler.advance(10_001)
    writing.apply()
    assert writing.offsets == [1, 3, 5]


def test_checkpoint_that_rotted_is_written_anew_as_soon_as_something_is_applied() -> None:
    writing = Writing()
    writing.apply()
    assert writing.offsets == []
    writing.writer.renew()
    assert writing.offsets == [1]
    writing.finish()
    writing.apply()
    assert writing.offsets == [1], "one is enough"


def test_checkpoint_that_is_asked_for_is_told_of_when_it_is_durable() -> None:
    writing = Writing()
    writing.apply(2)
    told = writing.take()
    assert (writing.offsets, told, writing.writer.writing_offset) == ([2], [], 2)
    writing.apply()
    writing.finish()
    assert (told, writing.writer.writing_offset) == ([TakenCheckpoint(2, is_written=True)], None)


def test_checkpoint_that_is_asked_for_twice_is_written_once() -> None:
    writing = Writing()
    writing.apply()
    writing.take()
    writing.finish()
    assert writing.take() == [TakenCheckpoint(1, is_written=False)]
    assert writing.offsets == [1]


def test_checkpoint_that_is_asked_for_counts_as_the_last_one(batch_bytes: int) -> None:
    writing = Writing(log_bytes=3 * batch_bytes)
    writing.apply(2)
    writing.take()
    writing.finish()
    writing.apply(2)
    assert writing.offsets == [2]
    writing.apply()
    assert writing.offsets == [2, 5]


def test_checkpoint_is_refused_before_anything_was_applied() -> None:
    with pytest.raises(ApiError, match="applied nothing") as refused:
        Writing().take()
    assert refused.value.details == {"reason": "nothing-applied"}


def test_checkpoint_is_refused_inside_a_transaction() -> None:
    writing = Writing()
    writing.apply(2)
    writing.apply(in_transaction=True)
    with pytest.raises(ApiError, match="that began at offset 2 is open") as refused:
        writing.take()
    assert refused.value.details == {"reason": "open-transaction"}
    writing.apply()
    writing.take()
    assert writing.offsets == [4]


def test_checkpoint_is_refused_while_one_is_being_written() -> None:
    writing = Writing()
    writing.apply()
    told = writing.take()
    writing.apply()
    with pytest.raises(Overloaded, match="state at offset 1 is being written"):
        writing.take()
    writing.finish()
    assert told == [TakenCheckpoint(1, is_written=True)]


def test_checkpoint_that_is_asked_for_and_fails_is_told_of() -> None:
    writing = Writing()
    writing.apply()
    told = writing.take()
    error = CorruptCheckpoint("file", "not whole")
    writing.finish(error)
    assert told == [error]
    writing.take()
    assert writing.offsets == [1, 1]


def test_checkpoint_is_worked_at_in_pieces(kafka_data: Path) -> None:
    writing = Writing()
    writing.stable = load_image(kafka_data / "static" / "m2" / "log")
    writing.writer._begin()
    assert writing.pace.calls == []
    assert b"".join(writing.chunks)
    begin, *pauses, end = writing.pace.calls
    assert (begin, end, set(pauses)) == ("begin", "end", {"pause"})


def test_pace_ends_with_writing_that_breaks_off(kafka_data: Path) -> None:
    writing = Writing()
    writing.stable = load_image(kafka_data / "static" / "m2" / "log")
    writing.writer._begin()
    chunks = iter(writing.chunks)
    next(chunks)
    del chunks
    writing.chunks = ()
    assert writing.pace.calls[-1] == "end"


def test_manifest_counts_the_records_that_a_checkpoint_has(kafka_data: Path) -> None:
    image = load_image(kafka_data / "static" / "m2" / "log")
    manifest = manifest_of(digest_image(image))
    assert manifest.record_counts["TOPIC_RECORD"] == 76
    assert manifest.record_counts["PARTITION_RECORD"] == 3061
    assert manifest.record_counts["REGISTER_BROKER_RECORD"] == 4
    assert manifest.digest == digest_image(image).value


def batches_in(data: bytes) -> Iterator[bytes]:
    start = 0
    while start < len(data):
        end = start + checked_header(data, start).size
        yield data[start:end]
        start = end


def test_what_is_written_is_read_back_as_the_same_state(kafka_data: Path) -> None:
    writing = Writing()
    writing.stable = load_image(kafka_data / "static" / "m2" / "log")
    written: list[bytes] = []
    writing.writer._write = lambda _, content, done: written.extend(content.chunks)
    writing.writer._begin()
    provenance = writing.stable.provenance
    again = read_checkpoint(batches_in(b"".join(written)), provenance.end_offset, provenance.epoch)
    assert digest_image(again).value == digest_image(writing.stable).value
