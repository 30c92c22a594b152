"""Writes down which requests were refused, to whom and why: into two files of its own, and into the process's log.

Whoever floods a controller with refused requests fills neither disk nor memory: requests of one kind are counted
together, kinds are bounded, and lines have a rate; what has no line is counted in one that says so.
"""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Final

import structlog

from quorate.metadata_log.audit.audit_lines import AUDIT_DIRECTORY
from quorate.metadata_log.audit.chained_lines import chain_end, cut_unfinished
from quorate.metadata_log.audit.refusal_lines import (
    REFUSED_BEFORE_NAME,
    REFUSED_BYTES,
    REFUSED_NAME,
    Refusal,
    RefusalLine,
    encode_refusals,
    read_refusals,
    refusal_files,
)

log = structlog.get_logger()

_PAUSE_SECONDS: Final = 0.5
#: Kinds of refusals between two writes.
KINDS_MAX: Final = 64
#: Lines a second in the long run, and at once after a quiet time: a flood of ever new kinds is some 50 MB a day of log.
LINES_PER_SECOND: Final = 2.0
LINES_BURST: Final = 120.0
MESSAGE_CHARS_MAX: Final = 300


class RefusalLog:
    """``note`` belongs to the loop thread; what is written, to whoever holds the lock."""

    def __init__(self, directory: Path) -> None:
        """``directory``: the metadata directory."""
        self._metadata_directory = directory
        self._directory = directory / AUDIT_DIRECTORY
        #: Kind -> its line so far. Replaced by the thread in one step, filled by the loop.
        self._waiting: dict[Refusal, RefusalLine] = {}
        #: Refusals that had no room among the kinds, or no line.
        self._uncounted = 0
        self._may_write = LINES_BURST
        self._written_at = time.monotonic()
        #: Digest of the line written last; None: to be read from the files.
        self._chain_end: bytes | None = None
        self._lock = threading.Lock()
        self._is_closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="refusal-log", daemon=True)

    def note(self, refusal: Refusal, request_id: str, message: str, count: int = 1) -> None:
        """Requests were refused."""
        waiting = self._waiting
        line = waiting.get(refusal)
        if line is not None:
            waiting[refusal] = line._replace(times=line.times + count)
        elif len(waiting) < KINDS_MAX:
            now_ms = round(time.time() * 1000)
            request, principal, address, error, proof = refusal
            what = message[:MESSAGE_CHARS_MAX]
            waiting[refusal] = RefusalLine(now_ms, count, request, principal, address, request_id, error, what, proof)
        else:
            self._uncounted += count

    def start(self) -> None:
        """Begin to write."""
        self._thread.start()

    def close(self) -> None:
        """Write what waits, and end."""
        self._is_closing.set()
        self._thread.join()

    def newest(self, lines_max: int) -> list[RefusalLine]:
        """The newest lines, oldest first, what waits among them. Blocks.

        Raises:
            OSError: a file is there and cannot be read.
        """
        self.write(time.monotonic())
        return read_refusals(self._metadata_directory, lines_max)

    def _run(self) -> None:
        while not self._is_closing.wait(_PAUSE_SECONDS):
            self.write(time.monotonic())
        self.write(time.monotonic())

    def write(self, now: float) -> None:
        """Write what waits, as far as the rate allows. ``now`` in seconds, monotonic."""
        with self._lock:
            self._may_write = min(LINES_BURST, self._may_write + (now - self._written_at) * LINES_PER_SECOND)
            self._written_at = now
            if not (self._waiting or self._uncounted) or self._may_write < 1:
                return
            taken, self._waiting = list(self._waiting.values()), {}
            lines = taken[: max(0, int(self._may_write) - 1)]
            uncounted, self._uncounted = self._uncounted, 0
            uncounted += sum(line.times for line in taken[len(lines) :])
            if uncounted:
                time_ms = taken[0].time_ms if taken else round(time.time() * 1000)
                lines.append(RefusalLine(time_ms, uncounted, None, None, None, None, None, None))
            self._may_write -= len(lines)
            self._keep(lines)

    def _keep(self, lines: list[RefusalLine]) -> None:
        for line in lines:
            log.info("request.refused", **{name: value for name, value in line._asdict().items() if name != "time_ms"})
        try:
            self._directory.mkdir(exist_ok=True)
            file = self._directory / REFUSED_NAME
            if file.exists() and file.stat().st_size >= REFUSED_BYTES:
                file.rename(self._directory / REFUSED_BEFORE_NAME)
            if self._chain_end is None:
                files = refusal_files(self._metadata_directory)
                for unfinished in files:
                    cut_unfinished(unfinished)
                self._chain_end = chain_end(files)
            data, end = encode_refusals(lines, self._chain_end)
            self._chain_end = None  # until it is known to be written
            with file.open("ab") as opened:
                opened.write(data)
            self._chain_end = end
        except OSError as error:
            log.warning("refusals.not_written", lines=len(lines), error=str(error))
