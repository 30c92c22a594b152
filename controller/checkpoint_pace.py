"""How much of its time the thread that writes a checkpoint is at work.

A checkpoint of a million partitions is seconds of work, in the process that commits. Two things keep the one out of the
other's way. The thread works in short pieces with pauses between them, so that it takes a share of a processor and of
the disk and no more. And while it works the interpreter hands itself over between threads many times as often as usual:
who waits for it (the loop, after every turn in which it waited for a socket) waits half a millisecond and not five.
"""

from __future__ import annotations

import sys
import threading
import time
from typing import Final, Protocol

#: Shorter pieces of work are added up: a pause is a switch of threads, which is not free either.
_PIECE_S_MIN: Final = 0.002
#: ``sys.setswitchinterval`` while a checkpoint is written.
_SWITCH_S: Final = 0.0005


class Pace(Protocol):
    """Used by the one thread that writes checkpoints."""

    def begin(self) -> None:
        """Work begins."""

    def pause(self) -> None:
        """A piece of work is done: wait, if it is time to."""

    def end(self) -> None:
        """Work is over."""


class Unpaced:
    """All the time: for whoever has nothing else to do, and for virtual time."""

    def begin(self) -> None:
        """Work begins."""

    def pause(self) -> None:
        """Never."""

    def end(self) -> None:
        """Work is over."""


class WorkShare:
    """Works for a share of the time. ``close`` may be called on another thread."""

    def __init__(self, work_percent: int) -> None:
        """``work_percent``: 1 to 100."""
        self._pause_per_work = 100 / work_percent - 1
        self._closed = threading.Event()
        self._since = 0.0
        self._switch_s = sys.getswitchinterval()

    def begin(self) -> None:
        """Work begins."""
        self._switch_s = sys.getswitchinterval()
        sys.setswitchinterval(_SWITCH_S)
        self._since = time.monotonic()

    def pause(self) -> None:
        """Wait in proportion to the time since the last pause, in which this thread or the disk was at work."""
        worked = time.monotonic() - self._since
        if worked >= _PIECE_S_MIN:
            self._closed.wait(worked * self._pause_per_work)
            self._since = time.monotonic()

    def end(self) -> None:
        """Work is over."""
        sys.setswitchinterval(self._switch_s)

    def close(self) -> None:
        """No more pauses: the process wants to end."""
        self._closed.set()
