"""Crashes between any two disk calls: what was promised is there, nothing has a gap, and nothing is made up."""

import itertools
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from quorate.metadata_log.checkpoints.checkpoint_files import CheckpointId, checkpoint_name
from quorate.metadata_log.disk import RealDisk, replace_file
from quorate.metadata_log.log.segment_log import FlushJob, MetadataLog
from quorate.scripts.simulation.machine.memory_disk import CrashPolicy
from tests.default_parts import log_config
from tests.guards.patching import patching
from tests.log_support import (
    DIRECTORY,
    ModelledLog,
    checkpoint_bytes,
    contents,
    crash_at_every_call,
    finish,
    flush,
    make_batch,
    run_until,
)

Workload = Callable[[ModelledLog], None]

POLICIES = [
    pytest.param(None, 1, id="killed"),
    pytest.param(CrashPolicy.NOTHING, 1, id="nothing-kept"),
    pytest.param(CrashPolicy.EVERYTHING, 1, id="everything-kept"),
    pytest.param(CrashPolicy.PREFIX, 3, id="prefix-kept"),
    pytest.param(CrashPolicy.TORN, 3, id="torn"),
    pytest.param(CrashPolicy.MIXED, 3, id="mixed"),
    pytest.param(CrashPolicy.PAGES, 3, id="pages"),
]


def append_and_roll(modelled: ModelledLog) -> None:
    for round_number in range(4):
        for count in (1, 3, 2):
            modelled.append(count)
        modelled.flush_with(modelled.append)
        modelled.commit(min(modelled.promised, 3 * round_number))
    modelled.flush()


def truncate_within_a_segment(modelled: ModelledLog) -> None:
    for _ in range(3):
        modelled.append(2, epoch=1)
    modelled.commit(2)
    modelled.flush()
    modelled.truncate(4)
    modelled.append(1, epoch=3)
    modelled.flush()
    modelled.append(4)
    modelled.flush()


def truncate_over_segments(modelled: ModelledLog) -> None:
    for _ in range(11):
        modelled.append(1, epoch=1)
    modelled.flush()
    modelled.append(1)
    modelled.flush_with(lambda: modelled.truncate(2))
    modelled.append(5, epoch=2)
    modelled.append(1)
    modelled.flush()
    modelled.truncate(0)
    modelled.append(7, epoch=4)
    modelled.flush()


def delete_a_prefix(modelled: ModelledLog) -> None:
    for _ in range(11):
        modelled.append(1, epoch=1)
    modelled.commit(10)
    modelled.flush()
    modelled.delete_prefix(6)
    modelled.append(1, epoch=2)
    modelled.flush()
    modelled.delete_prefix(10)
    modelled.append(2)
    modelled.flush()


def install_over_a_diverging_log(modelled: ModelledLog) -> None:
    for _ in range(9):
        modelled.append(1, epoch=1)
    modelled.commit(2)
    modelled.flush()
    modelled.append(1)
    modelled.flush_with(lambda: modelled.install(CheckpointId(5, 3)))
    modelled.append(2, epoch=3)
    modelled.flush()
    modelled.append(1, epoch=4)
    modelled.flush()


def install_beyond_the_end(modelled: ModelledLog) -> None:
    modelled.append(2, epoch=1)
    modelled.flush()
    modelled.install(CheckpointId(40, 2))
    modelled.append(2)
    modelled.flush()
    modelled.install(CheckpointId(42, 2))
    modelled.append(3, epoch=5)
    modelled.flush()


def install_twice_before_a_flush(modelled: ModelledLog) -> None:
    """The mark speaks of the first checkpoint while the second is there already, and the old log too."""
    modelled.append(5, epoch=1)
    modelled.flush()
    modelled.install(CheckpointId(2, 3))
    modelled.install(CheckpointId(4, 5))
    modelled.append(2, epoch=6)
    modelled.flush()


WORKLOADS = [
    append_and_roll,
    truncate_within_a_segment,
    truncate_over_segments,
    delete_a_prefix,
    install_over_a_diverging_log,
    install_beyond_the_end,
    install_twice_before_a_flush,
]


@pytest.mark.parametrize(("policy", "seeds"), POLICIES)
@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda workload: str(workload.__name__))
def test_log_after_a_crash_at_any_disk_call_keeps_what_was_promised(
    workload: Workload, policy: CrashPolicy | None, seeds: int
) -> None:
    for call, modelled in crash_at_every_call(workload, policy, range(seeds)):
        try:
            modelled.reopen()
            # What was recovered is durable, and goes on.
            modelled.append(2)
            modelled.flush()
            modelled.disk.power_cut(CrashPolicy.NOTHING)
            modelled.reopen()
            modelled.check_memory()
            modelled.log.close()
            assert not modelled.disk.open_handles
        except Exception as error:
            error.add_note(f"crash at disk call {call}, files {modelled.disk.paths()}")
            raise


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda workload: str(workload.__name__))
def test_log_after_a_second_crash_while_it_recovers_keeps_what_was_promised(workload: Workload) -> None:
    for call in itertools.count(1, 4):
        for second in itertools.count(1):
            modelled = ModelledLog(call)
            if not run_until(modelled, workload, call):
                return
            modelled.disk.power_cut(CrashPolicy.MIXED)
            has_crashed = run_until(modelled, ModelledLog.reopen_only, second)
            modelled.disk.power_cut(CrashPolicy.MIXED)
            try:
                modelled.reopen()
            except Exception as error:
                error.add_note(f"crash at disk call {call}, and at {second} of the recovery")
                raise
            if not has_crashed:
                break


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda workload: str(workload.__name__))
def test_job_stands_still_between_any_two_changes_of_the_disk(workload: Workload) -> None:
    """A simulator that runs jobs step by step can delay or crash between them."""
    modelled = ModelledLog()
    changes: list[str] = []

    def note(operation: str, path: str) -> None:
        if operation in ("pwrite", "sync", "truncate", "rename", "unlink", "sync_directory", "mkdir"):
            changes.append(f"{operation} {path}")

    def watch(job: FlushJob) -> Iterator[None]:
        changes.clear()
        for _ in original(job):
            assert len(changes) <= 1
            changes.clear()
            yield
        assert changes == []

    original = FlushJob.run
    modelled.disk.on_call = note
    with patching() as patch:
        patch.setattr(FlushJob, "run", watch)
        workload(modelled)


def test_pages_written_back_in_any_order_are_a_torn_tail() -> None:
    """A file system that orders nothing leaves holes in the last write: it is cut at the first."""
    outcomes: Counter[bool] = Counter()
    for seed in range(150):
        modelled = ModelledLog(seed, log_config(segment_bytes=100_000))
        for _ in range(3):
            modelled.append(filling=bytes([seed]) * 3_000)
        modelled.flush()
        for _ in range(4):
            modelled.append(filling=bytes([seed]) * 3_000)
        run_until(modelled, ModelledLog.flush, 2)
        modelled.disk.power_cut(CrashPolicy.PAGES)
        path = f"{DIRECTORY}/{0:020d}.log"
        size = len(modelled.disk.durable_content(path))
        modelled.reopen()
        assert modelled.log.end_offset >= 3
        torn = modelled.log.torn_tail
        outcomes[torn is not None and bool(modelled.history.batches) and torn.size > 3_200 and size > 20_000] += 1
    assert set(outcomes) == {True, False}, "holes and other ends must occur for this test to say anything"


def test_log_on_a_real_disk_keeps_what_was_flushed(tmp_path: Path) -> None:
    disk = RealDisk()
    config = log_config(segment_bytes=2_000, resident_bytes=1_000)
    log = MetadataLog.open(disk, str(tmp_path), config)
    batches = [make_batch(offset, epoch=1 + offset // 50) for offset in range(100)]
    for batch in batches:
        log.append(batch.data)
    flush(log)
    log.note_commit(90)
    log.truncate_to(95)
    later = make_batch(95, 9)
    log.append(later.data)
    flush(log)
    checkpoint = CheckpointId(80, 2)
    finish(replace_file(disk, str(tmp_path), checkpoint_name(checkpoint), checkpoint_bytes(checkpoint)))
    log.delete_prefix(80)
    flush(log)
    log.append(make_batch(96, 9).data)
    log.close()
    again = MetadataLog.open(disk, str(tmp_path), config)
    assert not again.is_damaged
    assert (again.start_offset, again.end_offset, again.commit) == (80, 96, 90)
    assert contents(again) == [*batches[80:95], later]
    again.close()
