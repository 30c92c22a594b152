"""The clock by which promises are kept: it goes on while the machine is suspended, where the system has one that does.

Sessions of brokers end meanwhile, and other controllers are elected.
"""

from __future__ import annotations

import time
from typing import Final

_CLOCK: Final[int] = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def steady_ms() -> float:
    """Milliseconds since some moment, with fractions."""
    return time.clock_gettime(_CLOCK) * 1000
