"""Writes down what may come in any number: into two files of its own, and into the process's log.

Whoever floods a controller with requests fills neither disk nor memory: those of one kind are counted together, kinds
are bounded, and lines have a rate; what has no line is counted in one that says so. Strangers have half of both, and
wait for the rest: their flood leaves the lines of those who are known.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, Generic, TypeVar

import structlog

from quorate.metadata_log.audit.audit_lines import AUDIT_DIRECTORY
from quorate.metadata_log.audit.chained_lines import chain_end, cut_unfinished
from quorate.metadata_log.audit.line_files import LineFiles, encode_values
from quorate.metadata_log.audit.read_lines import AnsweredRead, ReadLine
from quorate.metadata_log.audit.refusal_lines import Refusal, RefusalLine

log = structlog.get_logger()

_PAUSE_SECONDS: Final = 0.5
#: Kinds between two writes.
KINDS_MAX: Final = 64
#: Lines a second in the long run, and at once after a quiet time: a flood of ever new kinds is some 50 MB a day of log.
LINES_PER_SECOND: Final = 2.0
LINES_BURST: Final = 120.0
#: Of each of the two files.
FILE_BYTES: Final = 4 * 1024 * 1024

_Kind = TypeVar("_Kind", Refusal, AnsweredRead)
_Line = TypeVar("_Line", RefusalLine, ReadLine)


class CountedLines(Generic[_Kind, _Line]):
    """``count`` belongs to the loop thread; what is written, to whoever holds the lock of writers."""

    def __init__(
        self, directory: Path, files: LineFiles, events: tuple[str, str], uncounted: Callable[[int, int], _Line]
    ) -> None:
        """Of one metadata directory.

        Args:
            directory: the metadata directory.
            files: that are written.
            events: the name of a line in the process's log, and of its loss.
            uncounted: makes the line of those that have none, by its time and how many they are.
        """
        self._metadata_directory = directory
        self._directory = directory / AUDIT_DIRECTORY
        self._files = files
        self._events = events
        self._line_of_uncounted: Callable[[int, int], _Line] = uncounted
        #: Held for a moment by whoever changes what waits, and never while the disk works: the loop waits for it.
        self._counting = threading.Lock()
        #: Kind -> its line so far.
        self._waiting: dict[_Kind, _Line] = {}
        #: The same of strangers, who wait while they have used up their half of the lines.
        self._of_strangers: dict[_Kind, _Line] = {}
        #: What had no room among the kinds, or no line.
        self._uncounted = 0
        self._uncounted_strangers = 0
        self._may_write = LINES_BURST
        self._written_at = time.monotonic()
        #: Digest of the line written last; None: to be read from the files.
        self._chain_end: bytes | None = None
        self._writing = threading.Lock()
        self._is_closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"{files.current}-log", daemon=True)

    def count(self, kind: _Kind, count: int, line: Callable[[int], _Line], *, is_strangers: bool = False) -> None:
        """So many of one kind. ``line``: makes its line, by the time of the first in milliseconds since 1970."""
        with self._counting:
            waiting, most = (self._of_strangers, KINDS_MAX // 2) if is_strangers else (self._waiting, KINDS_MAX)
            begun = waiting.get(kind)
            if begun is not None:
                waiting[kind] = begun._replace(times=begun.times + count)
            elif len(waiting) < most:
                waiting[kind] = line(round(time.time() * 1000))
            elif is_strangers:
                self._uncounted_strangers += count
            else:
                self._uncounted += count

    def start(self) -> None:
        """Begin to write."""
        self._thread.start()

    def close(self) -> None:
        """Write all that waits, if only as a count, and end."""
        self._is_closing.set()
        self._thread.join()

    def flush(self) -> None:
        """Write what waits now, as far as the rate allows. Blocks."""
        self.write(time.monotonic())

    def _run(self) -> None:
        while not self._is_closing.wait(_PAUSE_SECONDS):
            self.flush()
        self.write(time.monotonic(), is_last=True)

    def write(self, now: float, *, is_last: bool = False) -> None:
        """As ``flush``. ``now`` in seconds, monotonic. ``is_last``: nothing may wait for later, strangers neither."""
        with self._writing:
            self._may_write = min(LINES_BURST, self._may_write + (now - self._written_at) * LINES_PER_SECOND)
            self._written_at = now
            if self._may_write < 1 and not is_last:
                return
            lines, left_out, uncounted = self._take(is_last=is_last)
            uncounted += sum(line.times for line in left_out)
            if uncounted:
                time_ms = left_out[0].time_ms if left_out else round(time.time() * 1000)
                lines.append(self._line_of_uncounted(time_ms, uncounted))
            self._may_write -= len(lines)
            if lines:
                self._keep(lines)

    def _take(self, *, is_last: bool) -> tuple[list[_Line], list[_Line], int]:
        """Take what has a line now, what waits no longer and has none, and how many there are besides."""
        with self._counting:
            taken, self._waiting = list(self._waiting.values()), {}
            lines = taken[: max(0, int(self._may_write) - 1)]
            left_out = taken[len(lines) :]
            room = int(self._may_write - len(lines) - (0 if is_last else LINES_BURST / 2))
            if room >= 1 or is_last:
                strange, self._of_strangers = list(self._of_strangers.values()), {}
                # A line for those that have none. One at least is named: a flood that uses up its half has names too.
                named = room if len(strange) <= room else max(1, room - 1)
                lines += strange[:named]
                left_out += strange[named:]
                self._uncounted, self._uncounted_strangers = self._uncounted + self._uncounted_strangers, 0
            uncounted, self._uncounted = self._uncounted, 0
        return lines, left_out, uncounted

    def _keep(self, lines: list[_Line]) -> None:
        said, lost = self._events
        for line in lines:
            log.info(said, **{name: value for name, value in line._asdict().items() if name != "time_ms"})
        try:
            self._directory.mkdir(exist_ok=True)
            file = self._directory / self._files.current
            if file.exists() and file.stat().st_size >= FILE_BYTES:
                file.rename(self._directory / self._files.before)
            if self._chain_end is None:
                files = self._files.of(self._metadata_directory)
                for unfinished in files:
                    cut_unfinished(unfinished)
                self._chain_end = chain_end(files)
            data, end = encode_values(lines, self._chain_end)
            self._chain_end = None  # until it is known to be written
            with file.open("ab") as opened:
                opened.write(data)
            self._chain_end = end
        except OSError as error:
            log.warning(lost, lines=len(lines), error=str(error))
