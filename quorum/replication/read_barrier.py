"""Reads that must see everything acknowledged before they began: a round of echoes, never a lease.

How many may wait is for whoever asks to bound: each is answered, or refused when leadership is lost.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from quorate.quorum.errors import NotLeader


@dataclass(frozen=True, slots=True)
class _PendingRead:
    #: A majority must answer this round or a later one; it began after the read arrived.
    round: int
    #: Commit point when the read arrived; everything acknowledged before is below it.
    offset: int
    done: Callable[[int | NotLeader], None]


class ReadBarrier:
    """Reads waiting on a leader, in the order they arrived."""

    def __init__(self) -> None:
        self._waiting: deque[_PendingRead] = deque()

    def add(self, round_: int, offset: int, done: Callable[[int | NotLeader], None]) -> None:
        """Confirm ``offset`` to ``done`` once a majority has answered ``round_``."""
        self._waiting.append(_PendingRead(round_, offset, done))

    def confirm(self, echoed_round: int, applied_end: int) -> None:
        """Answer every read whose round a majority has answered and whose offset is applied here."""
        waiting = self._waiting
        while waiting and waiting[0].round <= echoed_round and waiting[0].offset <= applied_end:
            read = waiting.popleft()
            read.done(read.offset)

    def fail(self, error: NotLeader) -> None:
        """This node leads no more: every waiting read is refused."""
        waiting, self._waiting = self._waiting, deque()
        for read in waiting:
            read.done(error)

    def __len__(self) -> int:
        return len(self._waiting)
