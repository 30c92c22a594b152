"""A voice for a loop that stands still: a thread that sees how long the disk work on the loop thread has been running.

While a sync hangs there nothing of the process answers, so nobody but a thread can tell the operator. The others elect
a leader meanwhile; what the node does once the disk has answered is for ``DiskPace`` and ``Fitness``.
"""

from __future__ import annotations

import logging
import threading
from typing import Final

from quorate.quorum.storage.disk_queue import DiskGroup

logger = logging.getLogger(__name__)

#: Looks in the time after which it speaks.
_LOOKS: Final = 4


class SyncWatch:
    """Speaks first after ``patience`` seconds, then each time that the wait has doubled."""

    def __init__(self, node_id: int, patience: float) -> None:
        self._node_id = node_id
        self._period = patience / _LOOKS
        #: What runs on the loop thread. A new object each time, so that a look tells one from the next.
        self._running: DiskGroup | None = None
        self._is_closed = threading.Event()
        self._thread = threading.Thread(target=self._look, name=f"sync-watch-{node_id}", daemon=True)
        self._thread.start()

    def begin(self, group: DiskGroup) -> None:
        """The loop thread is about to run it."""
        self._running = group

    def end(self) -> None:
        """It ran to its end, or failed."""
        self._running = None

    def close(self) -> None:
        """End the thread."""
        self._is_closed.set()
        self._thread.join()

    def _look(self) -> None:
        seen: DiskGroup | None = None
        looks, tell_at = 0, _LOOKS
        while not self._is_closed.wait(self._period):
            running = self._running
            if running is not seen:
                if tell_at > _LOOKS:
                    logger.warning("node %d: the disk has answered, the event loop goes on", self._node_id)
                seen, looks, tell_at = running, 0, _LOOKS
            elif running is not None:
                # Counted, not measured: a process that was stopped meanwhile has not waited for its disk.
                looks += 1
                if looks >= tell_at:
                    tell_at *= 2
                    self._tell(running, looks * self._period)

    def _tell(self, group: DiskGroup, waited: float) -> None:
        what = f"its disk has not answered a write to {group.path} for {waited:.1f} s: it answers nobody"
        logger.error("node %d stands still: %s", self._node_id, what)
