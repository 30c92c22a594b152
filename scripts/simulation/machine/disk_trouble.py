"""Trouble in the calls of one disk: a coming call fails, or the process or its machine ends in it."""

from __future__ import annotations

import errno
from random import Random
from typing import Final

#: Calls that only look: a file system answers them from memory.
LOOKING: Final = frozenset({"open", "exists", "list", "size", "free", "pread", "lock"})
_ERRORS: Final = (errno.EIO, errno.ENOSPC)


class ProcessEnded(BaseException):
    """The process is gone in the middle of a call. Not for production to catch."""


class DiskTrouble:
    """The ``on_call`` of a ``MemoryDisk``."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        #: Calls until it happens; None = nothing is to happen.
        self._left: int | None = None
        self._is_end = False
        self._spares_looking = False
        #: The last failure that this brought about.
        self.last_error: OSError | None = None

    def fail_soon(self, calls: int, *, spares_looking: bool) -> None:
        """One of the next calls fails; of those that only look none, if they are spared."""
        self._left, self._is_end, self._spares_looking = calls, False, spares_looking

    def end_soon(self, calls: int) -> None:
        """The process ends in one of the next calls."""
        self._left, self._is_end, self._spares_looking = calls, True, False

    def spare(self) -> None:
        """Nothing happens that has not."""
        self._left = None

    def __call__(self, operation: str, path: str) -> None:
        if self._left is None or (self._spares_looking and operation in LOOKING):
            return
        self._left -= 1
        if self._left < 0:
            self._left = None
            if self._is_end:
                raise ProcessEnded(f"{operation} of {path}")
            self.last_error = OSError(self._rng.choice(_ERRORS), f"{operation} fails", path)
            raise self.last_error
