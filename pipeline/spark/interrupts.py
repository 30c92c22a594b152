"""Ctrl-C while Spark runs: it is not lost in a call to the JVM, and it leaves no JVM behind.

A call waits for its answer on a connection that every other call of the thread uses too, those that clean up included:
once one was left in the middle nothing more can be asked. So Ctrl-C first kills the JVM, and all calls fail at once.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


class Interrupts:
    """The effect of Ctrl-C at the moment: it is kept for later, until there is something to end."""

    def __init__(self) -> None:
        self._has_come = False
        self._end: Callable[[], None] | None = None
        #: Python lets only the main thread hear signals; a session of another thread is never interrupted.
        self._is_heard = threading.current_thread() is threading.main_thread()

    @property
    def have_come(self) -> bool:
        return self._has_come

    def take(self) -> None:
        """Let the signal come here; to be called again where Spark has taken it for itself."""
        if self._is_heard:
            signal.signal(signal.SIGINT, self._come)

    def end_with(self, end: Callable[[], None]) -> None:
        """From now on call this and raise; also for what has come before.

        Raises:
            KeyboardInterrupt: Ctrl-C has come before.
        """
        self._end = end
        if self._has_come:
            self._raise()

    def no_longer(self) -> None:
        """Hear it no more: what is going on ends soon."""
        self._end = None

    def _come(self, _number: int, _frame: FrameType | None) -> None:
        self._has_come = True
        self._raise()

    def _raise(self) -> None:
        end, self._end = self._end, None
        if end is not None:
            end()
            raise KeyboardInterrupt


@contextmanager
def interruptible() -> Iterator[Interrupts]:
    """Keep Ctrl-C for later until there is something to end; afterwards the signal is what it was before.

    Raises:
        KeyboardInterrupt: it came, whatever became of it on the way here.
    """
    interrupts = Interrupts()
    before = signal.getsignal(signal.SIGINT)
    interrupts.take()
    try:
        yield interrupts
    except BaseException:
        if interrupts.have_come:
            raise KeyboardInterrupt from None
        raise
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, before)
