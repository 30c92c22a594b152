"""Answers that wrote nothing and say how things are: "done already", "exists already", "unknown", "stale epoch".

Each is a read of the head: it waits until all it was decided on is committed, and until a majority has confirmed this
node's leadership in a round that began after the decision. Without the second, a controller that was deposed and does
not know it yet would acknowledge a change out of a state of the past (with Kafka's controller it may). A commit alone
confirms nothing: its acknowledgements may have lain in a socket since before the request came.
One round serves all that was decided in a turn of the loop.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from quorate.metadata_log.errors import NotController

#: ``controller.engine.interfaces.Quorum.read_barrier``.
ReadBarrier = Callable[[Callable[[int | NotController], None]], None]


class _Finding(NamedTuple):
    #: Exclusive end of what it was decided on.
    end_offset: int
    #: Number of the round that confirms it, or a later one.
    round: int
    give: Callable[[], None]
    fail: Callable[[Exception], None]


class Findings:
    """In the order of their decisions, so both offsets and rounds never fall. Owned by the controller's loop thread."""

    def __init__(self) -> None:
        self._waiting: deque[_Finding] = deque()
        self._committed = 0
        #: Rounds are counted over all epochs: a late confirmation can only be of answers that have failed.
        self._asked = self._confirmed = 0

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, end_offset: int, give: Callable[[], None], fail: Callable[[Exception], None]) -> None:
        """Call ``give`` once it is true for good, or ``fail`` if that never comes about: nothing was changed."""
        self._waiting.append(_Finding(end_offset, self._asked + 1, give, fail))

    def ask(self, read_barrier: ReadBarrier) -> None:
        """The end of a turn: let one round confirm what it found.

        Raises:
            NotController: this node leads no more.
        """
        if self._waiting and self._waiting[-1].round > self._asked:
            self._asked += 1
            read_barrier(partial(self._answered, self._asked))

    def _answered(self, round_: int, outcome: int | NotController) -> None:
        # Where leadership was lost the controller is told next, and fails all that waits.
        if not isinstance(outcome, NotController):
            self._confirmed = round_
            self._release()

    def complete_up_to(self, high_watermark: int) -> None:
        """Everything below the high watermark is committed."""
        self._committed = high_watermark
        self._release()

    def _release(self) -> None:
        waiting = self._waiting
        while waiting and waiting[0].end_offset <= self._committed and waiting[0].round <= self._confirmed:
            waiting.popleft().give()

    def fail_all(self, error: Exception) -> None:
        """Leadership is lost, or the process ends: whoever waits may repeat the request."""
        waiting, self._waiting = self._waiting, deque()
        for finding in waiting:
            finding.fail(error)
