"""The operating system's files, where they are more than calls handed on."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from quorate.metadata_log.disk import OpenMode, RealDisk


def rename(path: Path) -> None:
    path.rename(path.with_name("other"))


def link_and_unlink(path: Path) -> None:
    os.link(path, path.with_name("other"))
    path.unlink()


@pytest.mark.parametrize("change", [lambda path: None, rename, link_and_unlink])
def test_file_that_has_a_name_is_synced(tmp_path: Path, change: Callable[[Path], None]) -> None:
    file = RealDisk().open_file(str(tmp_path / "log"), OpenMode.CREATE)
    file.pwrite(b"kept", 0)
    change(tmp_path / "log")
    file.sync()
    file.close()


def test_each_sync_of_a_file_is_told_with_the_seconds_that_it_took(tmp_path: Path) -> None:
    told: list[float] = []
    disk = RealDisk(synced=told.append)
    file = disk.open_file(str(tmp_path / "log"), OpenMode.CREATE)
    file.pwrite(b"kept", 0)
    assert told == []
    file.sync()
    file.sync()
    disk.sync_directory(str(tmp_path))
    file.close()
    assert len(told) == 2
    assert all(0 < seconds < 60 for seconds in told)


def test_file_that_was_removed_is_not_said_to_be_durable(tmp_path: Path) -> None:
    path = tmp_path / "log"
    file = RealDisk().open_file(str(path), OpenMode.CREATE)
    file.pwrite(b"for nobody", 0)
    path.unlink()
    with pytest.raises(OSError, match="it was removed while it was written to") as failed:
        file.sync()
    assert (failed.value.errno, failed.value.filename) == (errno.ESTALE, str(path))
    file.close()
