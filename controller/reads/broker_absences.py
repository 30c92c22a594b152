"""Since when brokers are absent: the committed log of a controller is gone through once, and then carried on.

What the controller has passed through itself is read only where something became of a broker.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial
from types import MappingProxyType
from typing import Final, Protocol

from quorate.controller.feed.feed import FeedSource
from quorate.controller.reads.absences import Absences
from quorate.controller.reads.quiet_stretches import QuietStretches
from quorate.controller.reads.read_turns import run_in_turn

#: Read in one turn of the loop, and then decoded on a thread.
_CHUNK_BYTES: Final = 1024 * 1024
#: Nobody waits longer for new records. A long log takes some seconds once: whoever asks again goes on where this one
#: ended.
PATIENCE_S: Final = 0.3
_UNKNOWN: Final[Mapping[int, int]] = MappingProxyType({})


class BrokerAbsences(Protocol):
    """The moments since when brokers are fenced, shutting down or unregistered."""

    async def at(self, end_offset: int) -> Mapping[int, int]:
        """Milliseconds since 1970, by broker id, in the state at an offset; without those of whom nothing is known."""


class LogAbsences:
    """``BrokerAbsences`` of a log that grows. Owned by the loop thread."""

    def __init__(self, log: FeedSource, quiet: QuietStretches | None = None) -> None:
        """``quiet``: who makes it notes all states in it."""
        self._log = log
        self._quiet = quiet or QuietStretches()
        self._known = Absences()
        #: Everything before it is in ``_known``, from where the log began then.
        self._position = 0
        self._lock = asyncio.Lock()
        #: Held by whoever goes through the log for an old state alone: no question about now waits for it.
        self._old_lock = asyncio.Lock()
        #: Of a thread, which goes on when nobody waits for it any more: for what is asked of now, and of old states.
        self._turn, self._old_turn = asyncio.Lock(), asyncio.Lock()

    async def at(self, end_offset: int) -> Mapping[int, int]:
        async with self._lock:
            if self._position < self._log.log_start_offset:
                # Retention has overtaken it: what was so may be so no more.
                self._known, self._position = Absences(), self._log.log_start_offset
            clock = asyncio.get_running_loop().time
            ends_at = clock() + PATIENCE_S
            while self._has_more(self._position, end_offset) and clock() < ends_at:
                step = self._behind(self._known, self._position, end_offset, self._turn)
                self._known, self._position = await step
            found = self._known.since_ms_at(end_offset) if self._position >= end_offset else _UNKNOWN
        return await self._of_old(end_offset) if found is None else found

    async def _of_old(self, end_offset: int) -> Mapping[int, int]:
        """Of a state after which more has happened than is remembered."""
        async with self._old_lock:
            known, position = Absences(), self._log.log_start_offset
            while self._has_more(position, end_offset):
                known, position = await self._behind(known, position, end_offset, self._old_turn)
            return known.since_ms if position >= end_offset else _UNKNOWN

    def _has_more(self, position: int, end_offset: int) -> bool:
        return self._log.log_start_offset <= position < min(end_offset, self._log.high_watermark)

    async def _behind(
        self, known: Absences, position: int, end_offset: int, turn: asyncio.Lock
    ) -> tuple[Absences, int]:
        """All that is known behind the next whole batches, and where those after them begin.

        ``known`` stays as it is: whoever asks may be given up while a thread goes through them.
        """
        if (loud := self._quiet.behind(position)) > position:
            return known, min(loud, end_offset)
        chunk, more = self._log.read_from(position, _CHUNK_BYTES), known.copy()
        return more, await run_in_turn(partial(more.take_batches, chunk.data, end_offset), turn)
