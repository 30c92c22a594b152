"""The log in memory and on a disk without faults."""

import sys
from itertools import pairwise

import pytest

from quorate.metadata_log.checkpoints.checkpoint_files import CheckpointId
from quorate.metadata_log.errors import CorruptBatch, InvariantViolation
from quorate.metadata_log.log.segment_log import BatchRef, EpochEnd, MetadataLog, OffsetOutOfRange
from tests.default_parts import log_config
from tests.log_support import DIRECTORY, ModelledLog, contents, finish, flush, make_batch


@pytest.fixture
def modelled() -> ModelledLog:
    """Batches 0..3 (epoch 1), 3..4 (1), 4..6 (3), 6..9 (3); nothing flushed."""
    modelled = ModelledLog()
    modelled.append(3, epoch=1)
    modelled.append(1)
    modelled.append(2, epoch=3)
    modelled.append(3)
    return modelled


def test_log_when_new_is_empty_and_durable() -> None:
    log = ModelledLog().log
    assert (log.start_offset, log.end_offset, log.durable_end, log.commit) == (0, 0, 0, 0)
    assert (log.start_epoch, log.last_epoch, log.entry_count, log.is_damaged) == (0, 0, 0, False)
    assert log.flush_job() is None


def test_append_is_seen_at_once_and_durable_after_its_job(modelled: ModelledLog) -> None:
    log = modelled.log
    assert (log.end_offset, log.durable_end, log.entry_count) == (9, 0, 4)
    modelled.flush()
    assert log.durable_end == 9
    modelled.check_memory()


def test_entry_says_where_a_batch_lies(modelled: ModelledLog) -> None:
    data = modelled.history.batches[2].data
    assert modelled.log.entry(2) == BatchRef(base_offset=4, end_offset=6, epoch=3, size=len(data))
    assert modelled.log.read(2) == data
    with pytest.raises(IndexError):
        modelled.log.entry(4)


def test_positions_find_batches_by_end_and_by_content(modelled: ModelledLog) -> None:
    log = modelled.log
    assert [log.position_of_end(offset) for offset in range(11)] == [
        None, None, None, 0, 1, None, 2, None, None, 3, None,
    ]  # fmt: skip
    assert [log.position_containing(offset) for offset in range(9)] == [0, 0, 0, 1, 2, 2, 3, 3, 3]
    for offset in (-1, 9):
        with pytest.raises(OffsetOutOfRange):
            log.position_containing(offset)


def test_epochs_are_told_by_offset_and_by_end(modelled: ModelledLog) -> None:
    log = modelled.log
    assert [log.epoch_at(offset) for offset in (0, 2, 3, 4, 6, 9, 10)] == [0, None, 1, 1, 3, 3, None]
    assert log.holds(4, 1)
    assert not log.holds(4, 3)
    assert [log.end_of_epoch(epoch) for epoch in (0, 1, 2, 3, 9)] == [
        EpochEnd(0, 0), EpochEnd(1, 4), EpochEnd(1, 4), EpochEnd(3, 9), EpochEnd(3, 9),
    ]  # fmt: skip
    assert [log.start_of_epoch_at(index) for index in range(4)] == [0, 0, 2, 2]


@pytest.mark.parametrize(
    "batch",
    [
        pytest.param(make_batch(8, 3).data, id="overlaps"),
        pytest.param(make_batch(10, 3).data, id="leaves-a-gap"),
        pytest.param(make_batch(9, 2).data, id="epoch-falls"),
        pytest.param(make_batch(9, 3).data[:-1], id="cut-short"),
        pytest.param(make_batch(9, 3).data + b"x", id="trailing-bytes"),
        pytest.param(make_batch(9, 3).data[:57] + bytes(4) + make_batch(9, 3).data[61:], id="no-records"),
        pytest.param(b"", id="empty"),
    ],
)
def test_append_of_what_does_not_continue_the_log_changes_nothing(modelled: ModelledLog, batch: bytes) -> None:
    with pytest.raises(InvariantViolation):
        modelled.log.append(batch)
    modelled.check_memory()


def test_truncate_is_seen_at_once_and_lowers_what_is_durable(modelled: ModelledLog) -> None:
    modelled.flush()
    modelled.truncate(4)
    modelled.check_memory()
    modelled.append(1, epoch=4)
    modelled.check_memory()
    modelled.flush()
    modelled.disk.kill()
    modelled.reopen()
    assert modelled.log.end_offset == 5


def test_truncate_while_a_job_is_out_holds_back_what_it_made_durable(modelled: ModelledLog) -> None:
    def truncate_and_go_on() -> None:
        modelled.truncate(4)
        modelled.append(9, epoch=5)

    modelled.flush_with(truncate_and_go_on)
    assert modelled.log.durable_end == 4
    modelled.flush()
    assert modelled.log.durable_end == 13


@pytest.mark.parametrize("offset", [5, 10, 3], ids=["inside-a-batch", "beyond-the-end", "below-the-commit"])
def test_truncate_to_an_illegal_offset_changes_nothing(modelled: ModelledLog, offset: int) -> None:
    modelled.commit(4)
    with pytest.raises(InvariantViolation):
        modelled.log.truncate_to(offset)
    modelled.check_memory()


def test_truncate_to_the_end_stages_nothing(modelled: ModelledLog) -> None:
    modelled.flush()
    modelled.log.truncate_to(9)
    assert not modelled.log.has_staged


def test_one_job_is_out_at_a_time(modelled: ModelledLog) -> None:
    job = modelled.log.flush_job()
    assert job is not None
    modelled.append()
    assert modelled.log.flush_job() is None
    finish(job.run())
    modelled.log.job_done(job)
    with pytest.raises(InvariantViolation):
        modelled.log.job_done(job)
    assert modelled.log.durable_end == 9
    assert modelled.log.flush_job() is not None


def test_flush_of_many_batches_syncs_once(modelled: ModelledLog) -> None:
    modelled = ModelledLog(config=log_config())
    for _ in range(100):
        modelled.append()
    modelled.flush()
    calls: list[str] = []
    modelled.disk.on_call = lambda operation, path: calls.append(operation)
    for _ in range(100):
        modelled.append()
    modelled.flush()
    assert calls == ["pwrite", "sync", "pwrite"]


def test_commit_beyond_the_end_is_refused(modelled: ModelledLog) -> None:
    modelled.log.note_commit(6)
    modelled.log.note_commit(3)
    assert modelled.log.commit == 6
    with pytest.raises(InvariantViolation):
        modelled.log.note_commit(10)


def test_delete_prefix_renumbers_entries_and_removes_whole_segments() -> None:
    modelled = ModelledLog()
    for _ in range(12):
        modelled.append(epoch=2)
    modelled.flush()
    modelled.commit(11)
    modelled.checkpoint(CheckpointId(7, 2))
    kept = tuple(s for s, following in pairwise(modelled.log.segments) if following[0] > 7)
    kept += modelled.log.segments[-1:]
    assert modelled.log.delete_prefix(7) == 7
    assert (modelled.log.start_offset, modelled.log.start_epoch, modelled.log.entry_count) == (7, 2, 5)
    assert modelled.log.entry(0).base_offset == 7
    modelled.flush()
    assert modelled.log.segments == kept
    assert len(kept) < 4
    assert modelled.log.delete_prefix(7) == 0
    modelled.check_memory()


@pytest.mark.parametrize("offset", [5, 6], ids=["inside-a-batch", "not-committed"])
def test_delete_prefix_to_an_illegal_offset_changes_nothing(modelled: ModelledLog, offset: int) -> None:
    modelled.commit(4)
    with pytest.raises(InvariantViolation):
        modelled.log.delete_prefix(offset)
    modelled.check_memory()


def test_install_of_a_checkpoint_that_the_log_holds_keeps_the_tail(modelled: ModelledLog) -> None:
    modelled.install(CheckpointId(4, 1))
    assert (modelled.log.end_offset, modelled.log.commit) == (9, 4)
    modelled.check_memory()


@pytest.mark.parametrize("checkpoint", [CheckpointId(6, 2), CheckpointId(5, 3), CheckpointId(70, 3)])
def test_install_of_a_checkpoint_that_differs_drops_the_log(modelled: ModelledLog, checkpoint: CheckpointId) -> None:
    modelled.flush()
    modelled.install(checkpoint)
    modelled.check_memory()
    log = modelled.log
    assert (log.start_offset, log.start_epoch, log.last_epoch) == (*checkpoint, checkpoint.epoch)
    assert log.commit == log.durable_end == log.end_offset == checkpoint.end_offset
    modelled.flush()
    assert log.segments == ()


def test_install_while_a_job_is_out_forgets_what_it_wrote(modelled: ModelledLog) -> None:
    modelled.flush_with(lambda: modelled.install(CheckpointId(5, 7)))
    modelled.check_memory()
    assert modelled.log.durable_end == 5


def test_install_of_a_checkpoint_behind_the_commit_that_differs_is_refused(modelled: ModelledLog) -> None:
    modelled.commit(6)
    with pytest.raises(InvariantViolation):
        modelled.log.install_checkpoint(6, 2)
    modelled.check_memory()


def test_old_batches_leave_memory_and_are_read_from_disk() -> None:
    modelled = ModelledLog(config=log_config(segment_bytes=2_000, resident_bytes=500))
    for _ in range(60):
        modelled.append(2)
    modelled.flush()
    reads: list[str] = []
    modelled.disk.on_call = lambda operation, path: reads.append(operation)
    assert contents(modelled.log) == list(modelled.history.batches)
    size = sys.getsizeof(modelled.history.batches[0].data) + 8
    assert reads.count("pread") == 60 - 500 // size
    # One handle is enough to read a segment in order.
    assert reads.count("open") == len(modelled.log.segments) - 1


def test_segment_that_is_made_anew_is_not_read_by_an_old_handle() -> None:
    modelled = ModelledLog(config=log_config(segment_bytes=50, resident_bytes=0))
    for epoch in (1, 2):
        for _ in range(3):
            modelled.append(epoch=epoch)
        modelled.flush()
        assert modelled.log.read(2) == modelled.history.batches[2].data
        modelled.truncate(0)


def test_truncate_is_durable_before_anything_is_written_in_its_place(modelled: ModelledLog) -> None:
    modelled = ModelledLog(config=log_config())
    for _ in range(4):
        modelled.append()
    modelled.flush()
    modelled.truncate(2)
    modelled.append(epoch=5)
    calls: list[str] = []
    modelled.disk.on_call = lambda operation, path: calls.append(f"{operation} {path.rpartition('/')[2][-4:]}")
    modelled.flush()
    assert calls == [
        "pwrite mark", "sync mark", "truncate .log", "sync .log", "pwrite .log", "sync .log", "pwrite mark",
    ]  # fmt: skip


def test_batches_not_yet_written_stay_in_memory_beyond_the_budget() -> None:
    modelled = ModelledLog(config=log_config(resident_bytes=0))
    for _ in range(10):
        modelled.append()
    modelled.disk.on_call = lambda operation, path: pytest.fail(f"{operation} {path}")
    assert contents(modelled.log) == list(modelled.history.batches)


def test_read_of_a_batch_that_rotted_on_disk_says_where() -> None:
    modelled = ModelledLog(config=log_config(resident_bytes=0))
    for _ in range(3):
        modelled.append()
    modelled.flush()
    size = len(modelled.history.batches[0].data)
    path = f"{DIRECTORY}/{0:020d}.log"
    modelled.disk.flip_bit(path, size + 62, 0)
    assert modelled.log.read(0) == modelled.history.batches[0].data
    with pytest.raises(CorruptBatch) as caught:
        modelled.log.read(1)
    assert (caught.value.path, caught.value.position, caught.value.offset) == (path, size, 1)


@pytest.mark.parametrize("position", [7, 15], ids=["base-offset", "epoch"])
def test_read_of_a_batch_whose_uncovered_fields_rotted_says_where(position: int) -> None:
    modelled = ModelledLog(config=log_config(resident_bytes=0))
    modelled.append()
    modelled.flush()
    modelled.disk.flip_bit(f"{DIRECTORY}/{0:020d}.log", position, 3)
    with pytest.raises(CorruptBatch):
        modelled.log.read(0)


def test_segment_rolls_before_it_would_grow_too_large() -> None:
    modelled = ModelledLog(config=log_config(segment_bytes=1_000))
    for _ in range(50):
        modelled.append()
    modelled.flush()
    assert len(modelled.log.segments) > 3
    assert all(size <= 1_000 for _, size in modelled.log.segments)
    assert modelled.log.file_bytes == sum(len(batch.data) for batch in modelled.history.batches)
    for base, size in modelled.log.segments:
        assert len(modelled.disk.durable_content(f"{DIRECTORY}/{base:020d}.log")) == size


def test_batch_larger_than_a_segment_gets_one_of_its_own() -> None:
    modelled = ModelledLog(config=log_config(segment_bytes=50))
    modelled.append()
    modelled.append()
    modelled.flush()
    assert [base for base, _ in modelled.log.segments] == [0, 1]


def test_leader_epoch_checkpoint_is_written_anew_at_open(modelled: ModelledLog) -> None:
    modelled.flush()
    modelled.disk.kill()
    modelled.disk.put(f"{DIRECTORY}/leader-epoch-checkpoint", b"nonsense")
    modelled.reopen()
    assert modelled.disk.durable_content(f"{DIRECTORY}/leader-epoch-checkpoint") == b"0\n2\n1 0\n3 4\n"


def test_leftovers_are_removed_at_open(modelled: ModelledLog) -> None:
    leftovers = ["quorum-state.part", f"{9:020d}-{1:010d}.checkpoint.incoming.part", f"{9:020d}-{1:010d}.manifest"]
    modelled.disk.kill()
    for name in leftovers:
        modelled.disk.put(f"{DIRECTORY}/{name}", b"half")
    modelled.reopen()
    assert not set(leftovers) & set(modelled.disk.list_directory(DIRECTORY))


def test_closed_log_gives_its_handles_back_and_can_be_opened_again(modelled: ModelledLog) -> None:
    modelled.flush()
    modelled.log.close()
    modelled.reopen()
    flush(modelled.log)
    assert modelled.log.end_offset == 9


def test_log_in_a_directory_that_is_missing_cannot_be_opened() -> None:
    with pytest.raises(FileNotFoundError):
        MetadataLog.open(ModelledLog().disk, "/elsewhere", log_config())


def test_bytes_below_an_offset_run_over_segments_from_the_batch_that_holds_it() -> None:
    modelled = ModelledLog(config=log_config(segment_bytes=400))
    for _ in range(20):
        modelled.append(3)
    log, batches = modelled.log, modelled.history.batches
    assert len(log.segments) > 3
    for batch in batches:
        before = sum(len(other.data) for other in batches if other.end_offset <= batch.base_offset)
        assert [log.bytes_below(offset) for offset in range(batch.base_offset, batch.end_offset)] == [before] * 3
    assert log.bytes_below(log.end_offset) == log.file_bytes
