"""Replies that wait for their offset to commit (Kafka's ``DeferredEventQueue``)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable


class Purgatory:
    """Waiting replies in the order of their offsets. Owned by the controller's loop thread."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[int, Callable[[], None], Callable[[Exception], None]]] = deque()

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def last_offset(self) -> int:
        """The offset that the newest waiting reply needs; 0 when nothing waits."""
        return self._waiting[-1][0] if self._waiting else 0

    def add(self, end_offset: int, complete: Callable[[], None], fail: Callable[[Exception], None]) -> None:
        """Let a reply wait until everything below ``end_offset`` is committed.

        Offsets never fall: replies are added in the order in which their events ran.
        """
        assert end_offset >= self.last_offset, (end_offset, self.last_offset)
        self._waiting.append((end_offset, complete, fail))

    def complete_up_to(self, high_watermark: int) -> None:
        """Send every reply whose records are all below the high watermark."""
        while self._waiting and self._waiting[0][0] <= high_watermark:
            self._waiting.popleft()[1]()

    def fail_all(self, error: Exception) -> None:
        """Give every waiting reply this error, oldest first."""
        waiting, self._waiting = self._waiting, deque()
        for _, _, fail in waiting:
            fail(error)
