"""Paces a thread that works on the state beside the loop, on a checkpoint or a digest: its share of the time.

A checkpoint of a million partitions is seconds of work, in the process that commits. Two things keep the one out of the
other's way. The thread works in short pieces with pauses between them, so that it takes a share of a processor and of
the disk and no more. And while it works the interpreter hands itself over between threads many times as often as usual:
who waits for it (the loop, after every turn in which it waited for a socket) waits half a millisecond and not five.

Where millions of partitions change at once, somebody waits for all of it to be applied, and for a checkpoint nobody
does: the thread gives way then. For some seconds it stops, which is as long as the loss of a broker lasts; where such
changes go on for longer, it goes on too, with longer pauses, so that it always comes to its end.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Final, Protocol

#: Shorter pieces of work are added up: a pause is a switch of threads, which is not free either.
_PIECE_S_MIN: Final = 0.001
#: ``sys.setswitchinterval`` while any thread works.
_SWITCH_S: Final = 0.0005
#: So long a thread stops at most to give way to changes that follow each other.
STANDSTILL_S_MAX: Final = 10.0
#: So many times as long are the pauses of who gives way after that.
GIVING_WAY: Final = 32
#: How long it lasts after the last reason to: those who follow take a mass change in some seconds later, and operators
#: ask what happened.
_GIVING_WAY_S: Final = 6.0


class WorkPace(Protocol):
    """Used by one thread at a time."""

    def working(self) -> AbstractContextManager[None]:
        """Work goes on inside."""

    def pause(self) -> None:
        """A piece of work is done: wait, if it is time to."""


class Unpaced:
    """All the time: for whoever has nothing else to do, and for virtual time."""

    def working(self) -> AbstractContextManager[None]:
        """Work goes on inside."""
        return nullcontext()

    def pause(self) -> None:
        """Never."""


class _QuickSwitching:
    """Threads are switched quickly while any thread of the process wants it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._wanted = 0
        self._usual_s = 0.0

    @contextmanager
    def wanted(self) -> Iterator[None]:
        with self._lock:
            if not self._wanted:
                self._usual_s = sys.getswitchinterval()
                sys.setswitchinterval(_SWITCH_S)
            self._wanted += 1
        try:
            yield
        finally:
            with self._lock:
                self._wanted -= 1
                if not self._wanted:
                    sys.setswitchinterval(self._usual_s)


_QUICK: Final = _QuickSwitching()


class WorkShare:
    """Works for a share of the time. ``give_way`` and ``close`` may be called on another thread."""

    def __init__(self, work_percent: int) -> None:
        """``work_percent``: 1 to 100."""
        self._pause_per_work = 100 / work_percent - 1
        self._closed = threading.Event()
        self._since = 0.0
        self._gives_way_since = 0.0
        self._gives_way_until = 0.0

    @contextmanager
    def working(self) -> Iterator[None]:
        """Work goes on inside."""
        with _QUICK.wanted():
            self._since = time.monotonic()
            yield

    def pause(self) -> None:
        """Wait in proportion to the time since the last pause, in which this thread or the disk was at work."""
        now = time.monotonic()
        worked = now - self._since
        if worked >= _PIECE_S_MIN:
            times = GIVING_WAY if now < self._gives_way_until else 1
            self._closed.wait(worked * self._pause_per_work * times)
            self._stand_still()
            self._since = time.monotonic()

    def _stand_still(self) -> None:
        """Wait until what is given way to is over, or lasts too long."""
        while (left := self._still_until() - time.monotonic()) > 0 and not self._closed.wait(left):
            pass

    def _still_until(self) -> float:
        return min(self._gives_way_until, self._gives_way_since + STANDSTILL_S_MAX)

    def give_way(self) -> None:
        """The loop has much to do now, and others for some seconds after it."""
        now = time.monotonic()
        if now >= self._gives_way_until:
            self._gives_way_since = now
        self._gives_way_until = now + _GIVING_WAY_S

    def close(self) -> None:
        """No more pauses: the process wants to end."""
        self._closed.set()
