"""Chooses the controller to ask: stay with one while it serves, move on at once when it fails.

Only when all of them have failed in turn is there a wait, and it grows; so a dead controller costs one failed call, and
a cluster that is down is not hammered.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

#: Share of a wait by which it may be shorter, so that brokers that lost the same controller do not return together.
_JITTER: Final = 0.2


class Rotation:
    """A position in a ring of ``count`` controllers. ``draw`` gives numbers in [0, 1) for jitter."""

    def __init__(
        self, count: int, first: int, wait_first_ms: float, wait_max_ms: float, draw: Callable[[], float]
    ) -> None:
        self._count = count
        #: Which one to ask now.
        self.index = first % count
        self._wait_first_ms = wait_first_ms
        self._wait_max_ms = wait_max_ms
        self._draw = draw
        #: Failures since the last success.
        self.failures = 0

    def succeeded(self) -> None:
        """The present one served."""
        self.failures = 0

    def failed(self) -> float:
        """The present one failed: move on. Returns the milliseconds to wait before the next is asked."""
        self.index = (self.index + 1) % self._count
        self.failures += 1
        rounds, rest = divmod(self.failures, self._count)
        if rest:
            return 0.0
        wait = min(self._wait_first_ms * 2.0 ** min(rounds - 1, 30), self._wait_max_ms)
        return wait * (1 - _JITTER * self._draw())
