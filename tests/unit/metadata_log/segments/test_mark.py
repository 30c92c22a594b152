"""The mark: old after a power cut, never wrong."""

from random import Random

import pytest

from quorate.metadata_log.errors import CorruptState
from quorate.metadata_log.segments.mark import MARK_NAME, Mark, MarkFile, read_mark
from quorate.scripts.simulation.machine.memory_disk import CrashPolicy, MemoryDisk
from tests.log_support import DIRECTORY, finish

PATH = f"{DIRECTORY}/{MARK_NAME}"


def mark_at(offset: int) -> Mark:
    return Mark(durable_end=offset, durable_epoch=offset // 100, commit=offset // 2)


def new_mark(offset: int, seed: int = 0) -> tuple[MemoryDisk, MarkFile]:
    disk = MemoryDisk(Random(seed))
    disk.put(f"{DIRECTORY}/other", b"")
    file = MarkFile(disk, DIRECTORY)
    finish(file.create(mark_at(offset)))
    return disk, file


def test_mark_that_was_never_written_is_none() -> None:
    disk = MemoryDisk(Random(0))
    disk.put(f"{DIRECTORY}/other", b"")
    assert read_mark(disk, DIRECTORY) is None


def test_mark_is_exact_after_the_process_was_killed() -> None:
    disk, file = new_mark(0)
    for offset in range(1, 200):
        finish(file.write(mark_at(offset)))
        disk_mark = read_mark(disk, DIRECTORY)
        assert disk_mark == file.current == mark_at(offset)


@pytest.mark.parametrize("policy", [CrashPolicy.NOTHING, CrashPolicy.TORN, CrashPolicy.PAGES])
def test_mark_after_a_power_cut_is_one_that_was_written_and_not_too_old(policy: CrashPolicy) -> None:
    for writes in range(0, 200, 7):
        disk, file = new_mark(0, seed=writes)
        for offset in range(1, writes + 1):
            finish(file.write(mark_at(offset)))
        disk.power_cut(policy)
        found = read_mark(disk, DIRECTORY)
        assert found is not None
        assert writes - 64 < found.durable_end <= writes
        assert found == mark_at(found.durable_end)


def test_mark_that_was_lowered_stays_lowered_through_any_crash() -> None:
    for seed in range(100):
        disk, file = new_mark(500, seed)
        finish(file.write(mark_at(600)))
        finish(file.write_durably(mark_at(50)))
        for offset in range(51, 51 + seed):
            finish(file.write(mark_at(offset)))
        disk.power_cut(CrashPolicy.TORN)
        found = read_mark(disk, DIRECTORY)
        assert found is not None, f"seed {seed}"
        assert 50 <= found.durable_end < 51 + seed or seed == 0


def test_mark_write_syncs_now_and_then_only() -> None:
    disk, file = new_mark(0)
    calls: list[str] = []
    disk.on_call = lambda operation, path: calls.append(operation)
    for offset in range(1, 129):
        finish(file.write(mark_at(offset)))
    assert (calls.count("pwrite"), calls.count("sync")) == (128, 2)


@pytest.mark.parametrize("content", [b"", b"\0" * 8192, b"\xff" * 8192, bytes(range(256)) * 32])
def test_mark_file_of_garbage_is_corrupt(content: bytes) -> None:
    disk = MemoryDisk(Random(0))
    disk.put(PATH, content)
    with pytest.raises(CorruptState, match="mark"):
        read_mark(disk, DIRECTORY)
