"""Child processes that do not outlive this one, however it ends."""

from __future__ import annotations

import ctypes
import os
import signal
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import Final

_PR_SET_PDEATHSIG: Final = 1
_libc = ctypes.CDLL(None, use_errno=True)


def die_with_parent() -> None:
    """Be sent SIGTERM when the parent ends. Called in a child; between fork and exec it is safe, too."""
    # No allocation, no locks.
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def worker_pool(jobs: int, begin: Callable[[], None] = lambda: None) -> ProcessPoolExecutor:
    """A pool of processes that end with this one, also where it is killed: an executor's own would wait for ever.

    Args:
        begin: done in each before its first work.
    """
    return ProcessPoolExecutor(jobs, initializer=partial(_begin, os.getpid(), begin))


def _begin(parent: int, begin: Callable[[], None]) -> None:
    die_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's: it lets what runs come to its end
    if os.getppid() != parent:  # it ended before it was told to tell
        os.kill(os.getpid(), signal.SIGTERM)
    begin()
