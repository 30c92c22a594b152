"""Since when replicas are being added: the committed log of a controller is gone through once, and then carried on."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial
from types import MappingProxyType
from typing import Final, Protocol

from quorate.controller.feed.feed import FeedSource
from quorate.controller.reads.additions import Additions, adding_changes
from quorate.controller.reads.broker_absences import PATIENCE_S
from quorate.controller.reads.read_turns import run_in_turn
from quorate.metadata_log.ids import Uuid

#: Read in one turn of the loop, and then decoded on a thread.
_CHUNK_BYTES: Final = 1024 * 1024
_UNKNOWN: Final[Mapping[int, int]] = MappingProxyType({})


class ReplicaAdditions(Protocol):
    """The moments since when reassignments add replicas."""

    async def of(self, topic_id: Uuid, partition: int, end_offset: int) -> Mapping[int, int]:
        """Milliseconds since 1970, by broker id, of a partition in the state at an offset.

        Without those of which nothing is known.
        """


class LogAdditions:
    """``ReplicaAdditions`` of a log that grows. Owned by the loop thread.

    Of a state of a while ago it knows what has lasted since.
    """

    def __init__(self, log: FeedSource) -> None:
        self._log = log
        self._known = Additions()
        #: Everything before it is in ``_known``, from where the log began then.
        self._position = 0
        self._lock = asyncio.Lock()
        #: Of the thread, which goes on when nobody waits for it any more.
        self._turn = asyncio.Lock()

    async def of(self, topic_id: Uuid, partition: int, end_offset: int) -> Mapping[int, int]:
        async with self._lock:
            if self._position < self._log.log_start_offset:
                # Retention has overtaken it: what was so may be so no more.
                self._known, self._position = Additions(), self._log.log_start_offset
            clock = asyncio.get_running_loop().time
            ends_at = clock() + PATIENCE_S
            while self._has_more(end_offset) and clock() < ends_at:
                chunk = self._log.read_from(self._position, _CHUNK_BYTES)
                # Taken here: whoever asks may be given up while a thread goes through them.
                changes, position = await run_in_turn(partial(adding_changes, chunk.data, end_offset), self._turn)
                self._known.take(changes)
                self._position = position
            is_known = self._position >= end_offset
            return self._known.since_ms(topic_id, partition, end_offset) if is_known else _UNKNOWN

    def _has_more(self, end_offset: int) -> bool:
        # Retention goes on while a thread decodes: what it took is not to be read any more.
        return self._log.log_start_offset <= self._position < min(end_offset, self._log.high_watermark)
