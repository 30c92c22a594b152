"""The disk's fitness to lead: it answers, the work waiting for it is within its bound, and there is room.

- A leader whose disk hangs, or is so far behind that the bytes waiting for it are over the bound, gives leadership up:
  the others commit without it, and all that it appends stays in its memory. It does not stand again until the disk has
  answered.
- A leader whose loop itself waited as long for one write gives it up once it goes on: it was deaf meanwhile. It may
  stand again, for the disk has answered.
- A follower over the bound takes no more entries until half of the bound is free again (``following``).
- A node with less room than a leader needs for its first entries does not stand. A leader can only lead by appending:
  its epoch's first batch, without which it may not even answer a read, and a record every half second after it. One
  that cannot append ends, and where no disk has room it would take the others with it, one after the other. So nobody
  leads then: all stay, answer what they know, and say why.

Clocks and room say only when to stand and when to stop. Never is an answer right because of them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from quorate.metadata_log.log.segment_log import MetadataLog
from quorate.quorum.config import QuorumConfig
from quorate.quorum.storage.disk_queue import DiskQueue

logger = logging.getLogger(__name__)


class Fitness:
    """Looks at the disk of one node. Times are the host's seconds."""

    def __init__(self, config: QuorumConfig, log: MetadataLog, queue: DiskQueue, free_bytes: Callable[[], int]) -> None:
        """``free_bytes()``: room on the log's disk; asked before this node stands for election only."""
        self._node_id = config.node_id
        self._timeout = config.timing.disk_timeout
        self._limits = config.limits
        self._log = log
        self._queue = queue
        self._free_bytes = free_bytes
        #: Why this node gave up leadership, or did not stand when it last could have; None since it may stand again.
        self.hindrance: str | None = None

    @property
    def is_full(self) -> bool:
        """Whether nothing more may wait for the disk."""
        return self._log.unwritten_bytes >= self._limits.unwritten_bytes

    @property
    def is_relieved(self) -> bool:
        """Whether so little waits that entries may be taken again."""
        return 2 * self._log.unwritten_bytes <= self._limits.unwritten_bytes

    def why_not_lead(self, now: float) -> str | None:
        """The trouble with the disk at this moment, None when there is none: asked of leaders and of candidates-to-be.

        So a reason belongs here only if it ends by itself: what is a leader's alone is for ``must_resign``.
        """
        waited = self._queue.waited(now)
        if waited > self._timeout:
            return f"its disk has not answered for {waited:.1f} s, {self._log.unwritten_bytes} bytes wait for it"
        if self.is_full:
            return f"{self._log.unwritten_bytes} bytes wait for its disk, {self._limits.unwritten_bytes} are the most"
        return None

    def must_resign(self, now: float) -> bool:
        """Whether this node, which leads, must not go on; asked in each of its turns."""
        why = self.why_not_lead(now) or self._why_slow()
        if why is not None:
            logger.error("node %d gives up leadership: %s", self._node_id, why)
            self.hindrance = why
        return why is not None

    def may_stand(self, now: float) -> bool:
        """Whether this node may ask to lead."""
        why = self.why_not_lead(now) or self._why_no_room()
        if (why is None) != (self.hindrance is None):
            if why is None:
                logger.warning("node %d may lead again", self._node_id)
            else:
                logger.error("node %d does not stand for election: %s", self._node_id, why)
        self.hindrance = why
        return why is None

    def _why_slow(self) -> str | None:
        """Of a leader whose loop stood still meanwhile: nobody could ask how long the disk had not answered."""
        took = self._queue.last_took
        return f"its disk has taken {took:.1f} s for one write" if took > self._timeout else None

    def _why_no_room(self) -> str | None:
        free, least = self._free_bytes(), self._limits.free_bytes
        return None if free >= least else f"{free} bytes are free on its disk, a leader needs {least}"
