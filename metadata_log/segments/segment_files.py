"""Segment files by name and handle: the disk thread's side of the log.

A segment is record batches back to back, named by the offset of its first record. Only the newest is written to.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from quorate.metadata_log.disk import Buffer, Disk, DiskFile, OpenMode
from quorate.metadata_log.segments.mark import MarkFile

_SEGMENT_NAME: Final = re.compile(r"(\d{20})\.log")


def segment_name(base_offset: int) -> str:
    """Kafka's file name: the base offset in 20 digits."""
    return f"{base_offset:020d}.log"


def segment_base(name: str) -> int | None:
    """The base offset in a segment's file name, None for every other name."""
    match = _SEGMENT_NAME.fullmatch(name)
    return int(match.group(1)) if match else None


def list_segments(disk: Disk, directory: str) -> list[int]:
    """Base offsets of the segments there, ascending."""
    bases = (segment_base(name) for name in disk.list_directory(directory))
    return sorted(base for base in bases if base is not None)


class SegmentFiles:
    """The files that jobs write to. Owned by the disk thread; holds at most one handle for writing.

    Its methods that return iterators are parts of a job: a ``yield`` after every disk call.
    """

    def __init__(self, disk: Disk, directory: str, mark: MarkFile) -> None:
        self.disk = disk
        self.directory = directory
        self.mark = mark
        self._file: DiskFile | None = None
        self._base = -1
        self._is_dirty = False

    def path(self, base: int) -> str:
        return f"{self.directory}/{segment_name(base)}"

    def write(self, base: int, position: int, data: Buffer) -> Iterator[None]:
        """Write to an existing segment; durable after ``sync``."""
        if self._base != base:
            yield from self._open(base, OpenMode.WRITE)
        assert self._file is not None
        self._is_dirty = True
        self._file.pwrite(data, position)
        yield

    def create(self, base: int) -> Iterator[None]:
        """Start a segment. The one before it is durable first: a segment that has a successor is whole."""
        yield from self._open(base, OpenMode.CREATE)
        self.disk.sync_directory(self.directory)
        yield

    def cut(self, base: int, size: int) -> Iterator[None]:
        """Cut a segment to ``size`` bytes, durably."""
        if self._base != base:
            yield from self._open(base, OpenMode.WRITE)
        assert self._file is not None
        self._is_dirty = True
        self._file.truncate(size)
        yield
        yield from self.sync()

    def unlink(self, bases: tuple[int, ...]) -> Iterator[None]:
        """Remove segments in the given order, each durably before the next."""
        for base in bases:
            if self._base == base:
                self.close()
            self.disk.unlink(self.path(base))
            yield
            self.disk.sync_directory(self.directory)
            yield

    def sync(self) -> Iterator[None]:
        """Make everything written durable."""
        if self._is_dirty:
            assert self._file is not None
            self._file.sync()
            self._is_dirty = False
            yield

    def close(self) -> None:
        """Give the handle back; what is unsynced stays unsynced."""
        if self._file is not None:
            self._file.close()
        self._file = None
        self._base = -1
        self._is_dirty = False

    def _open(self, base: int, mode: OpenMode) -> Iterator[None]:
        yield from self.sync()
        self.close()
        self._file = self.disk.open_file(self.path(base), mode)
        self._base = base
        yield
