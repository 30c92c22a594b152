"""Chooses the disk work that runs on the loop thread itself: short work, while the disk is quick.

A hand-over to the disk thread and back costs more than a quick sync does, and a busy loop makes the thread wait for
the interpreter's lock besides. A slow disk must not hold up the loop, though: heartbeats and elections run on it. So
work that turned out to be slow sends all that follows to the thread, for many times as long as it took beyond what is
quick: hardly where a sync was slow for want of a processor, for seconds where the disk hung. The loop loses a few per
cent of its time to a disk that gets slow now and then, and waits once for one that hangs.
"""

from __future__ import annotations

import math
from typing import Final

#: Seconds. Well above a sync to flash memory, well below a heartbeat.
_QUICK: Final = 0.001
#: Times as long as slow work took beyond that, the thread has all of it: the loop loses one part in this of its time.
_REST_FACTOR: Final = 50.0


class DiskPace:
    """The disk's pace, as far as the loop thread has felt it. Times in seconds of one monotonic clock."""

    def __init__(self) -> None:
        self._thread_until = -math.inf

    def is_quick(self, now: float) -> bool:
        """Whether short work may run on the loop thread."""
        return now >= self._thread_until

    def took(self, begun: float, ended: float) -> None:
        """Work ran on the loop thread."""
        excess = ended - begun - _QUICK
        if excess > 0.0:
            self._thread_until = ended + _REST_FACTOR * excess
