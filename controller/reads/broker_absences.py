"""Since when brokers are absent: the committed log of a controller is gone through once, and then carried on."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Protocol

from quorate.controller.feed.feed import FeedSource
from quorate.controller.reads.absences import Absences

#: Read in one turn of the loop, and then decoded on a thread.
_CHUNK_BYTES: Final = 1024 * 1024
#: Nobody waits longer for it. A long log takes some seconds once: whoever asks again goes on where this one ended.
PATIENCE_S: Final = 0.3
_UNKNOWN: Final[Mapping[int, int]] = MappingProxyType({})


class BrokerAbsences(Protocol):
    """The moments since when brokers are fenced, shutting down or unregistered."""

    async def at(self, end_offset: int) -> Mapping[int, int]:
        """Milliseconds since 1970, by broker id, in the state at an offset; without those of whom nothing is known."""


class LogAbsences:
    """``BrokerAbsences`` of a log that grows. Owned by the loop thread."""

    def __init__(self, log: FeedSource) -> None:
        self._log = log
        self._known = Absences()
        #: Everything before it is in ``_known``, from where the log began then.
        self._position = 0
        self._lock = asyncio.Lock()

    async def at(self, end_offset: int) -> Mapping[int, int]:
        async with self._lock:
            if end_offset < self._position:
                old = Absences()
                await self._read(old, self._log.log_start_offset, end_offset)
                return old.since_ms
            if self._position < self._log.log_start_offset:
                # Retention has overtaken it: what was so may be so no more.
                self._known, self._position = Absences(), self._log.log_start_offset
            self._position = await self._read(self._known, self._position, end_offset, PATIENCE_S)
            return self._known.since_ms if self._position >= end_offset else _UNKNOWN

    async def _read(self, absences: Absences, position: int, end_offset: int, patience_s: float = math.inf) -> int:
        """Whole batches, up to one that ends at the offset or behind it; where the next one begins."""
        clock = asyncio.get_running_loop().time
        ends_at = clock() + patience_s
        while self._log.log_start_offset <= position < min(end_offset, self._log.high_watermark) and clock() < ends_at:
            chunk = self._log.read_from(position, _CHUNK_BYTES)
            position = await asyncio.to_thread(absences.take_batches, chunk.data, end_offset)
        return position
