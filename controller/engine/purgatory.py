"""Replies that wait for their offset to commit (Kafka's ``DeferredEventQueue``)."""

from __future__ import annotations

from collections import deque
from typing import Any, Protocol, TypeVar

T_contra = TypeVar("T_contra", contravariant=True)


class Reply(Protocol[T_contra]):
    """The receiver of an event's answer, which it is given exactly once."""

    def complete(self, result: T_contra, /) -> None:
        """It is done."""

    def fail(self, error: Exception, /) -> None:
        """It is not, or nobody knows."""


class Purgatory:
    """Waiting replies in the order of their offsets. Owned by the controller's loop thread."""

    def __init__(self) -> None:
        #: (offset, reply, result), the offset exclusive.
        self._waiting: deque[tuple[int, Reply[Any], Any]] = deque()

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def last_offset(self) -> int:
        """The offset that the newest waiting reply needs; 0 when nothing waits."""
        return self._waiting[-1][0] if self._waiting else 0

    def add(self, end_offset: int, reply: Reply[Any], result: object) -> None:
        """Let a reply wait with its result until everything below ``end_offset`` is committed.

        Offsets never fall: replies are added in the order in which their events ran.
        """
        waiting = self._waiting
        assert not waiting or end_offset >= waiting[-1][0], (end_offset, self.last_offset)
        waiting.append((end_offset, reply, result))

    def complete_up_to(self, high_watermark: int) -> None:
        """Send every reply whose records are all below the high watermark."""
        waiting = self._waiting
        while waiting and waiting[0][0] <= high_watermark:
            _, reply, result = waiting.popleft()
            reply.complete(result)

    def fail_all(self, error: Exception) -> None:
        """Give every waiting reply this error, oldest first."""
        waiting, self._waiting = self._waiting, deque()
        for _, reply, _ in waiting:
            reply.fail(error)
