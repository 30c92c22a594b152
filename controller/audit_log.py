"""Writes down who asked for what: a line for each event that wrote records, by the controller that decided it.

It is this controller's own: not agreed on and not synced. With its disk the lines are lost, never a record. The loop
only queues lines; a thread writes them, and drops the oldest files beyond ``RETAINED_BYTES``.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, Final

import structlog

from controller.seams import DecidedWrite
from metadata_log.audit_lines import AUDIT_DIRECTORY, AuditLine, audit_file_name, audit_files, encode_audit_lines

log = structlog.get_logger()

FILE_BYTES: Final = 8 * 1024 * 1024
RETAINED_BYTES: Final = 64 * 1024 * 1024
#: Lines that wait for the thread: beyond them, where the disk does not keep up, they are dropped and counted.
WAITING_MAX: Final = 100_000
_PAUSE_SECONDS: Final = 0.5
#: What keeps an idle log moving: twice a second, and nothing changes by it.
_NO_OP: Final = "no_op"


class AuditLog:
    """``note`` belongs to the loop thread; the rest to the thread that ``start`` starts."""

    def __init__(self, directory: Path, epoch: Callable[[], int]) -> None:
        """``directory``: the metadata directory. ``epoch``: gives that in which this controller decides."""
        self._directory = directory / AUDIT_DIRECTORY
        self._epoch = epoch
        #: Appended to by the loop, taken from by the thread: each of them is one step.
        self._waiting: deque[tuple[int, DecidedWrite]] = deque()
        self._file: BinaryIO | None = None
        self._file_bytes = 0
        self._is_closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="audit-log", daemon=True)
        #: Lines that were never written.
        self.dropped = 0

    def note(self, write: DecidedWrite) -> None:
        """An event was decided or refused."""
        if write.end_offset <= write.base_offset or write.error is not None or write.name == _NO_OP:
            return
        if len(self._waiting) >= WAITING_MAX:
            self.dropped += 1
            return
        self._waiting.append((self._epoch(), write))

    def start(self) -> None:
        """Begin to write."""
        self._thread.start()

    def close(self) -> None:
        """Write what waits, and end."""
        self._is_closing.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._is_closing.wait(_PAUSE_SECONDS):
            self._write()
        self._write()
        if self._file is not None:
            self._file.close()

    def _write(self) -> None:
        lines = [_line(*self._waiting.popleft()) for _ in range(len(self._waiting))]
        if not lines:
            return
        try:
            if self._file is None or self._file_bytes >= FILE_BYTES:
                self._begin_file(lines[0])
            assert self._file is not None
            data = encode_audit_lines(lines)
            self._file.write(data)
            self._file.flush()
            self._file_bytes += len(data)
        except OSError as error:
            self.dropped += len(lines)
            log.warning("audit.not_written", lines=len(lines), error=str(error))

    def _begin_file(self, first: AuditLine) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
        self._directory.mkdir(exist_ok=True)
        self._file = (self._directory / audit_file_name(first)).open("ab")
        self._file_bytes = self._file.tell()
        files = audit_files(self._directory)
        total = sum(file.stat().st_size for file in files)
        for file in files[:-1]:
            if total <= RETAINED_BYTES:
                break
            total -= file.stat().st_size
            file.unlink()


def _line(epoch: int, write: DecidedWrite) -> AuditLine:
    who = write.origin or (None, None, None)
    return AuditLine(epoch, write.base_offset, write.end_offset, write.name, *who)
