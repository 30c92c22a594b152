"""Descriptors that are given up for the disk, in a process that may really open no more."""

from __future__ import annotations

import errno
import os
import resource
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from quorate.metadata_log.disk import OpenMode, RealDisk
from quorate.metadata_log.spare_descriptors import SpareDescriptors


def open_count() -> int:
    return len(os.listdir("/proc/self/fd")) - 1


@contextmanager
def at_the_limit() -> Iterator[Callable[[], None]]:
    """No descriptor is left inside; gives what takes up those that become free."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with ExitStack() as stack:
        stack.callback(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        resource.setrlimit(resource.RLIMIT_NOFILE, (open_count() + 32, hard))

        def take_all() -> None:
            while True:
                try:
                    stack.callback(os.close, os.open(os.devnull, os.O_RDONLY))
                except OSError:
                    return

        take_all()
        yield take_all


@pytest.fixture
def told() -> list[int | None]:
    """The errors that were told."""
    return []


@pytest.fixture
def spare(told: list[int | None]) -> Iterator[SpareDescriptors]:
    kept = SpareDescriptors(4, lambda error: told.append(error.errno))
    yield kept
    kept.close()


def work(disk: RealDisk, directory: Path, name: str) -> None:
    """All that opens something."""
    file = disk.open_file(f"{directory}/{name}", OpenMode.CREATE)
    file.pwrite(b"kept", 0)
    file.sync()
    disk.sync_directory(str(directory))
    assert name in disk.list_directory(str(directory))
    file.close()


def test_disk_works_in_a_process_that_may_open_no_more(
    tmp_path: Path, spare: SpareDescriptors, told: list[int | None]
) -> None:
    with at_the_limit() as take_all:
        with pytest.raises(OSError, match="Too many open files"):
            work(RealDisk(), tmp_path, "without")
        for name in ("one", "two"):
            work(RealDisk(spare), tmp_path, name)
            take_all()  # what the disk gave back and nobody kept

    assert (tmp_path / "two").read_bytes() == b"kept"
    assert set(told) == {errno.EMFILE}


def test_all_are_kept_again_when_there_are_descriptors_once_more(tmp_path: Path, spare: SpareDescriptors) -> None:
    before = open_count()
    with at_the_limit():
        held = [RealDisk(spare).open_file(f"{tmp_path}/{number}", OpenMode.CREATE) for number in range(3)]
    for file in held:
        file.close()
    assert open_count() == before - 3

    work(RealDisk(spare), tmp_path, "later")

    assert open_count() == before


def test_without_any_left_the_systems_own_error_is_raised(tmp_path: Path, spare: SpareDescriptors) -> None:
    disk = RealDisk(spare)
    with at_the_limit(), ExitStack() as stack:
        for number in range(4):
            stack.callback(disk.open_file(f"{tmp_path}/{number}", OpenMode.CREATE).close)
        with pytest.raises(OSError, match="Too many open files"):
            disk.open_file(f"{tmp_path}/beyond", OpenMode.CREATE)


def test_other_errors_cost_none(tmp_path: Path, spare: SpareDescriptors, told: list[int | None]) -> None:
    before = open_count()
    with pytest.raises(FileNotFoundError):
        RealDisk(spare).open_file(f"{tmp_path}/none", OpenMode.READ)
    assert (open_count(), told) == (before, [])
