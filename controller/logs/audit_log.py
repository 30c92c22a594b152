"""Writes down who asked for what: a line for each event that wrote records, by the controller that decided it.

It is this controller's own: not agreed on and not synced. With its disk the lines are lost, never a record. The loop
only queues lines; a thread writes them, each with the digest of the one before it, and drops the oldest files beyond
``RETAINED_BYTES`` and those written to before ``RETAINED_SECONDS``.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from io import FileIO
from itertools import pairwise
from pathlib import Path
from typing import Final

import structlog

from quorate.controller.engine.interfaces import DecidedWrite
from quorate.metadata_log.audit.audit_lines import (
    AUDIT_DIRECTORY,
    AuditLine,
    audit_file_name,
    audit_files,
    encode_audit_lines,
)
from quorate.metadata_log.audit.audit_pages import AuditPage, read_audit_page
from quorate.metadata_log.audit.chained_lines import chain_end, cut_unfinished

log = structlog.get_logger()

FILE_BYTES: Final = 8 * 1024 * 1024
RETAINED_BYTES: Final = 64 * 1024 * 1024
#: A file is not written to for longer, so that it can go when its lines are old: a day, and a year.
FILE_SECONDS: Final = 86_400.0
RETAINED_SECONDS: Final = 365 * 86_400.0
#: Lines that wait for the thread: beyond them, where the disk does not keep up, they are dropped and counted.
WAITING_MAX: Final = 100_000
_PAUSE_SECONDS: Final = 0.5


class AuditLog:
    """``note`` belongs to the loop thread; what is written, to whoever holds the lock."""

    def __init__(self, directory: Path, epoch: Callable[[], int]) -> None:
        """``directory``: the metadata directory. ``epoch``: gives that in which this controller decides."""
        self._directory = directory / AUDIT_DIRECTORY
        self._epoch = epoch
        #: Appended to by the loop, taken from by the thread: each of them is one step.
        self._waiting: deque[tuple[int, DecidedWrite, Callable[[], str] | None]] = deque()
        self._file: FileIO | None = None
        self._file_bytes = 0
        self._file_begun_at = 0.0
        #: Digest of the line written last; None: to be read from the files.
        self._chain_end: bytes | None = None
        #: Exclusive end of the line that was written last.
        self._end_offset = 0
        #: The thread that ``start`` starts writes, and whoever reads has written what waits.
        self._lock = threading.Lock()
        self._is_closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="audit-log", daemon=True)
        #: Lines that were never written.
        self.dropped = 0

    def note(self, write: DecidedWrite) -> None:
        """An event was decided or refused."""
        if not write.has_changed:
            return
        if len(self._waiting) >= WAITING_MAX:
            self.dropped += 1
            return
        grounds = None if write.origin is None else write.origin.grounds
        # Of now: before the answer is made more is asked for, about what it may show.
        self._waiting.append((self._epoch(), write, None if grounds is None else grounds.newest()))

    def start(self) -> None:
        """Begin to write."""
        self._thread.start()

    def close(self) -> None:
        """Write what waits, and end."""
        self._is_closing.set()
        self._thread.join()

    def page(self, start_offset: int, end_offset: int | None, lines_max: int) -> AuditPage:
        """The events that wrote between two offsets, as ``read_audit_page``, what waits among them. Blocks."""
        self._write()
        return read_audit_page(self._directory, start_offset, end_offset, lines_max)

    def _run(self) -> None:
        while not self._is_closing.wait(_PAUSE_SECONDS):
            self._write()
        self._write()
        self._close_file()

    def _write(self) -> None:
        with self._lock:
            lines = [_line(*self._waiting.popleft()) for _ in range(len(self._waiting))]
            while lines:
                following = _continuous_count(lines)
                self._append(lines[:following])
                lines = lines[following:]

    def _append(self, lines: Sequence[AuditLine]) -> None:
        try:
            if self._file is None or self._is_full() or lines[0].base_offset < self._end_offset:
                self._begin_file(lines[0])
            assert self._file is not None
            assert self._chain_end is not None
            data, end = encode_audit_lines(lines, self._chain_end)
            self._chain_end = None  # until it is known to be written
            _write_all(self._file, data)
            self._chain_end = end
            self._file_bytes += len(data)
            self._end_offset = lines[-1].end_offset
        except OSError as error:
            self.dropped += len(lines)
            log.warning("audit.not_written", lines=len(lines), error=str(error))
            # What is in it now ends anywhere.
            self._close_file()

    def _is_full(self) -> bool:
        return self._file_bytes >= FILE_BYTES or time.monotonic() - self._file_begun_at >= FILE_SECONDS

    def _close_file(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _begin_file(self, first: AuditLine) -> None:
        self._close_file()
        self._directory.mkdir(exist_ok=True)
        own = self._directory / audit_file_name(first)
        if own.exists():
            cut_unfinished(own)
        self._file = own.open("ab", buffering=0)
        self._file_bytes, self._file_begun_at = self._file.tell(), time.monotonic()
        if self._chain_end is None:
            self._chain_end = chain_end(audit_files(self._directory))
        # Kept where the process's log is kept, it tells what was cut off or written anew.
        log.info("audit.file_begun", file=own.name, behind=self._chain_end.decode())
        files = audit_files(self._directory)
        total = sum(file.stat().st_size for file in files)
        oldest = time.time() - RETAINED_SECONDS
        # In the order in which they were written: so the chain loses its beginning and no part of its middle.
        for file in sorted(files, key=lambda file: file.stat().st_mtime_ns):
            if total <= RETAINED_BYTES and file.stat().st_mtime >= oldest:
                continue
            # Where offsets are decided again the file that is written may not be the last by its name.
            if file == own:
                continue
            total -= file.stat().st_size
            file.unlink()


def _write_all(file: FileIO, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[file.write(view) or 0 :]


def _line(epoch: int, write: DecidedWrite, allowed_by: Callable[[], str] | None) -> AuditLine:
    origin = write.origin
    if origin is None:
        return AuditLine(epoch, write.base_offset, write.end_offset, write.name, None, None, None)
    return AuditLine(
        epoch,
        write.base_offset,
        write.end_offset,
        write.name,
        origin.principal,
        origin.address,
        origin.request_id,
        origin.proof or None,
        origin.proxy or None,
        None if allowed_by is None else allowed_by(),
    )


def _continuous_count(lines: Sequence[AuditLine]) -> int:
    """The number of lines, from the first on, that go on where the one before ended: a decision that did not commit is
    made again.
    """
    for count, (line, following) in enumerate(pairwise(lines), 1):
        if following.base_offset < line.end_offset:
            return count
    return len(lines)
