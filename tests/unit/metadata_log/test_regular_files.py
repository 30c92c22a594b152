"""What has the name of a file of a log and is none is refused, and never waited for."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from quorate.metadata_log.directory.reader import find_files, iter_batches
from quorate.metadata_log.disk import OpenMode, RealDisk
from quorate.metadata_log.errors import StorageError
from quorate.pipeline.files.archives import FileLocation, open_place

#: A call that waits for a pipe's other end would do so for ever.
pytestmark = pytest.mark.timeout(60)


@pytest.fixture
def pipe(tmp_path: Path) -> Path:
    os.mkfifo(tmp_path / "00000000000000000000.log")
    return tmp_path / "00000000000000000000.log"


@pytest.mark.parametrize("mode", [OpenMode.READ, OpenMode.WRITE])
def test_pipe_is_no_file_of_a_log(pipe: Path, mode: OpenMode) -> None:
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(OSError, match="is no regular file") as refused:
        RealDisk().open_file(str(pipe), mode)
    assert refused.value.errno == errno.EINVAL
    assert len(os.listdir("/proc/self/fd")) == before


def test_pipe_is_no_input_of_a_job(pipe: Path) -> None:
    with pytest.raises(StorageError, match=r"00000\.log: is no regular file"), open_place(FileLocation(str(pipe))):
        pytest.fail("it was opened")


def test_pipe_is_nothing_to_be_dumped(pipe: Path) -> None:
    with pytest.raises(StorageError, match=r"00000\.log: is no regular file"):
        list(iter_batches(find_files(pipe.parent)[0]))


def test_directory_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError):
        RealDisk().open_file(str(tmp_path), OpenMode.READ)
