"""Descriptors that are kept for the disk: whoever else takes all that a process may have open ends no disk work.

A process at its limit, or a machine at its own, cannot open a segment, a checkpoint or a directory to sync it. Nothing
is wrong with the disk then, and before it is opened nothing was written; one of these is given up for it.
"""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable
from typing import Final, TypeVar

T = TypeVar("T")

_AT_LIMIT: Final = (errno.EMFILE, errno.ENFILE)


class SpareDescriptors:
    """Any number of threads may share it."""

    def __init__(self, count: int, tell: Callable[[OSError], None]) -> None:
        """``tell`` is called, by whatever thread it happens on, each time that one is given up."""
        self._count = count
        self._tell = tell
        self._lock = threading.Lock()
        self._kept: list[int] = []
        self._keep_again()

    def attempt(self, opening: Callable[[], T]) -> T:
        """Do what opens a file, giving up one after another until it can.

        Raises:
            OSError: as ``opening``; EMFILE, ENFILE: also without all that were kept.
        """
        try:
            opened = opening()
        except OSError as error:
            if error.errno not in _AT_LIMIT:
                raise
            self._tell(error)
            opened = self._with_fewer(opening, error)
        if len(self._kept) < self._count:
            self._keep_again()
        return opened

    def _with_fewer(self, opening: Callable[[], T], refused: OSError) -> T:
        # Whoever accepts connections may be quicker than we to take what is given up: then there is another.
        with self._lock:
            while self._kept:
                os.close(self._kept.pop())
                try:
                    return opening()
                except OSError as error:
                    if error.errno not in _AT_LIMIT:
                        raise
        raise refused

    def _keep_again(self) -> None:
        """Have as many as before, or as many as can be had."""
        with self._lock:
            while len(self._kept) < self._count:
                try:
                    self._kept.append(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))
                except OSError:
                    return

    def close(self) -> None:
        """Give up all."""
        with self._lock:
            self._count = 0
            while self._kept:
                os.close(self._kept.pop())
