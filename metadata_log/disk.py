"""Every call that the log makes to a disk, as a protocol, and the real thing.

Nothing else in the package touches a file. So a simulation that puts an in-memory disk here decides alone what a crash
leaves behind, and a test can crash between any two calls.

Rules for whoever implements it: a write is lost by a crash until ``DiskFile.sync`` returns; a name that was
created, renamed or unlinked is as before until ``Disk.sync_directory`` returns; a failing call raises ``OSError``.
After a failed sync nobody retries: the process stops, and recovery writes again what no mark vouches for.
"""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Callable, Iterator
from enum import Enum
from typing import Final, Protocol, TypeVar

from quorate.metadata_log.errors import NoRoom
from quorate.metadata_log.regular_files import open_regular
from quorate.metadata_log.spare_descriptors import SpareDescriptors
from quorate.metadata_log.steady_clock import steady_ms

T = TypeVar("T")

#: What files are read and written as.
Buffer = bytes | bytearray | memoryview

PART_SUFFIX: Final = ".part"
#: Of a file that cannot be trusted and is kept.
DAMAGED_SUFFIX: Final = ".damaged"
#: The file system, the user's quota, or what one file may hold is full.
_FULL: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
#: A log holds credentials: it is for the user that the process runs as, and so is what lies beside it.
_FILE_MODE: Final = 0o600
_DIRECTORY_MODE: Final = 0o700


class OpenMode(Enum):
    """A way to open a file. No mode truncates: a file with bytes in it is never emptied by opening it."""

    #: Must exist, for reading only.
    READ = "read"
    #: Must exist, for reading and writing.
    WRITE = "write"
    #: Must not exist; empty, for reading and writing. Its name is durable after a directory sync.
    CREATE = "create"


class DiskFile(Protocol):
    """An open file. ``pread`` may be called from another thread than the writing calls."""

    def pread(self, size: int, position: int) -> bytes:
        """Up to ``size`` bytes; fewer only at the end of the file."""

    def pwrite(self, data: Buffer, position: int) -> None:
        """Write all of ``data``, or raise; after an error any part of it may be there."""

    def sync(self) -> None:
        """Make content and size durable (fdatasync).

        Raises:
            OSError: the disk failed. ESTALE: the file has no name any more, so nobody will find what it holds.
        """

    def truncate(self, size: int) -> None:
        """Cut the file, or extend it with zeros. Durable after ``sync``."""

    def size(self) -> int:
        """Bytes in the file, written but unsynced ones included."""

    def close(self) -> None:
        """Give the handle back. Syncs nothing."""


class DiskLock(Protocol):
    """An exclusive hold on a path, gone when the process is."""

    def release(self) -> None:
        """Give it up."""


class Disk(Protocol):
    """A file system. Paths are plain strings with ``/`` between the parts."""

    def open_file(self, path: str, mode: OpenMode) -> DiskFile:
        """Raises FileNotFoundError or FileExistsError as ``mode`` says."""

    def exists(self, path: str) -> bool:
        """Whether a file or directory has this name."""

    def list_directory(self, path: str) -> list[str]:
        """Names in it, sorted; raises FileNotFoundError."""

    def make_directory(self, path: str) -> None:
        """Create one directory; raises FileExistsError. Durable after its parent is synced."""

    def rename(self, old: str, new: str) -> None:
        """Atomically give a file another name in the same directory, replacing what has it."""

    def unlink(self, path: str) -> None:
        """Take a name away; raises FileNotFoundError."""

    def sync_directory(self, path: str) -> None:
        """Make the names in it durable."""

    def free_bytes(self, path: str) -> int:
        """Bytes that an ordinary user may still allocate there."""

    def lock(self, path: str) -> DiskLock:
        """Hold ``path`` (created when missing) exclusively; raises BlockingIOError when another process does."""


def removed(path: str) -> OSError:
    """The error of a sync whose file somebody has removed under whoever writes to it."""
    return OSError(errno.ESTALE, "it was removed while it was written to", path)


class RealFile:
    """A file descriptor, opened under ``path``."""

    __slots__ = ("_fd", "_path", "_synced")

    def __init__(self, fd: int, path: str, synced: Callable[[float], None]) -> None:
        self._fd = fd
        self._path = path
        self._synced = synced

    def pread(self, size: int, position: int) -> bytes:
        data = os.pread(self._fd, size, position)
        if len(data) == size or not data:
            return data
        parts = [data]
        done = len(data)
        while done < size:
            # A short read is not the end of the file: the kernel caps one call at 2 GiB and may stop at a signal.
            data = os.pread(self._fd, size - done, position + done)
            if not data:
                break
            parts.append(data)
            done += len(data)
        return b"".join(parts)

    def pwrite(self, data: Buffer, position: int) -> None:
        view = memoryview(data)
        while view:
            written = os.pwrite(self._fd, view, position)
            if written == 0:
                raise OSError(errno.EIO, "the kernel wrote nothing")
            view = view[written:]
            position += written

    def sync(self) -> None:
        begun_ms = steady_ms()
        os.fdatasync(self._fd)
        self._synced((steady_ms() - begun_ms) / 1000)
        if os.fstat(self._fd).st_nlink == 0:
            raise removed(self._path)

    def truncate(self, size: int) -> None:
        os.ftruncate(self._fd, size)

    def size(self) -> int:
        return os.fstat(self._fd).st_size

    def close(self) -> None:
        os.close(self._fd)


class RealLock:
    """A flock, which the kernel drops when its process ends."""

    __slots__ = ("_fd",)

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def release(self) -> None:
        os.close(self._fd)


_FLAGS: Final = {
    OpenMode.READ: os.O_RDONLY,
    OpenMode.WRITE: os.O_RDWR,
    OpenMode.CREATE: os.O_RDWR | os.O_CREAT | os.O_EXCL,
}


def _opened(opening: Callable[[], T]) -> T:
    return opening()


class RealDisk:
    """The operating system's files. Any number of threads may share one."""

    def __init__(
        self, spare: SpareDescriptors | None = None, synced: Callable[[float], None] = lambda seconds: None
    ) -> None:
        """``spare``: given up for what is opened while the process has too many files open.

        ``synced``: told how many seconds each sync of a file took, on the thread that ran it.
        """
        self._attempt = _opened if spare is None else spare.attempt
        self._synced = synced

    def open_file(self, path: str, mode: OpenMode) -> RealFile:
        return RealFile(self._attempt(lambda: open_regular(path, _FLAGS[mode], _FILE_MODE)), path, self._synced)

    def exists(self, path: str) -> bool:
        return os.path.lexists(path)

    def list_directory(self, path: str) -> list[str]:
        return sorted(self._attempt(lambda: os.listdir(path)))

    def make_directory(self, path: str) -> None:
        os.mkdir(path, _DIRECTORY_MODE)

    def rename(self, old: str, new: str) -> None:
        os.replace(old, new)

    def unlink(self, path: str) -> None:
        os.unlink(path)

    def sync_directory(self, path: str) -> None:
        fd = self._attempt(lambda: os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def free_bytes(self, path: str) -> int:
        stats = os.statvfs(path)
        return stats.f_bavail * stats.f_frsize

    def lock(self, path: str) -> RealLock:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, _FILE_MODE)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(fd)
            raise
        return RealLock(fd)


class DiskJob(Protocol):
    """A piece of disk work: made on the loop thread, run on the disk thread, applied on the loop thread.

    It captures what it needs when it is made and shares no state with the loop while it runs.
    """

    def run(self) -> Iterator[None]:
        """Do the work; a ``yield`` stands after every disk call. To be iterated to its end exactly once.

        Raises:
            OSError: the disk failed. The node must stop; the job is never repeated.
        """


def drain(job: DiskJob) -> None:
    """Run a job to its end."""
    for _ in job.run():
        pass


def replace_file(disk: Disk, directory: str, name: str, data: Buffer) -> Iterator[None]:
    """Give ``name`` the content ``data`` atomically: a crash leaves the old file or the new one, whole."""
    part = f"{directory}/{name}{PART_SUFFIX}"
    yield from remove_file(disk, part)
    file = disk.open_file(part, OpenMode.CREATE)
    try:
        yield
        file.pwrite(data, 0)
        yield
        file.sync()
        yield
    finally:
        file.close()
    disk.rename(part, f"{directory}/{name}")
    yield
    disk.sync_directory(directory)
    yield


def taken_back(disk: Disk, work: Iterator[None], parts: tuple[str, ...]) -> Iterator[None]:
    """Do ``work``, which makes the files ``parts`` on its way; where the disk is full, remove them again.

    No other error is survived: the disk that reports it is the log's, too.

    Raises:
        NoRoom: the disk, or this process's share of it, is full.
    """
    try:
        yield from work
    except OSError as error:
        if error.errno not in _FULL:
            raise
        for path in parts:
            yield from remove_file(disk, path)
        raise NoRoom(str(error)) from error


def remove_file(disk: Disk, path: str) -> Iterator[None]:
    """Take a name away if it is there; durable after a directory sync."""
    if disk.exists(path):
        disk.unlink(path)
        yield


def read_file(disk: Disk, path: str) -> bytes:
    """The whole content of a small file; raises FileNotFoundError."""
    file = disk.open_file(path, OpenMode.READ)
    try:
        return file.pread(file.size(), 0)
    finally:
        file.close()
