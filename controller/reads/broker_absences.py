"""Since when brokers are absent: the committed log of a controller is gone through once, and then carried on."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Protocol

from quorate.controller.feed.feed import FeedSource
from quorate.controller.reads.absences import Absences

#: Read in one turn of the loop, and then decoded on a thread.
_CHUNK_BYTES: Final = 1024 * 1024
#: Nobody waits longer for it. A long log takes some seconds the first time; whoever asks again then has it.
PATIENCE_S: Final = 0.3
_UNKNOWN: Final[Mapping[int, int]] = MappingProxyType({})


class BrokerAbsences(Protocol):
    """Who knows since when brokers are fenced, shutting down or unregistered."""

    async def at(self, end_offset: int) -> Mapping[int, int]:
        """Milliseconds since 1970, by broker id, in the state at an offset; without those of whom nothing is known."""


class LogAbsences:
    """``BrokerAbsences`` of a log that grows. Owned by the loop thread."""

    def __init__(self, log: FeedSource) -> None:
        self._log = log
        self._known = Absences()
        self._position: int | None = None
        self._lock = asyncio.Lock()
        self._reading: asyncio.Task[Mapping[int, int]] | None = None

    async def at(self, end_offset: int) -> Mapping[int, int]:
        if self._position is not None and end_offset < self._position:
            return await self._of_old_state(end_offset)
        if self._reading is None or self._reading.done():
            self._reading = asyncio.create_task(self._carried_on(), name="broker absences")
        done, _ = await asyncio.wait({self._reading}, timeout=PATIENCE_S)
        return self._reading.result() if done else _UNKNOWN

    async def _carried_on(self) -> Mapping[int, int]:
        if self._position is None or self._position < self._log.log_start_offset:
            # Retention has overtaken it: what was cut away is not known to be so still.
            self._known, self._position = Absences(), self._log.log_start_offset
        self._position = await self._read(self._known, self._position, self._log.high_watermark)
        return self._known.since_ms

    async def _of_old_state(self, end_offset: int) -> Mapping[int, int]:
        absences = Absences()
        async with self._lock:
            await self._read(absences, self._log.log_start_offset, end_offset)
        return absences.since_ms

    async def _read(self, absences: Absences, position: int, end_offset: int) -> int:
        """Whole batches, up to one that ends at the offset or behind it; where the next one begins."""
        while position < end_offset and position >= self._log.log_start_offset:
            chunk = self._log.read_from(position, _CHUNK_BYTES)
            position = await asyncio.to_thread(absences.take_batches, chunk.data, end_offset)
        return position
