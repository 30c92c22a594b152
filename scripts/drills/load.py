"""The writes of a drill: they begin a second before its first fault, and last until all is well again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from itertools import pairwise
from typing import Final

from quorate.controller.client.client import ControllerClient
from quorate.scripts.tour.writes import WriteStream

#: For so long (s) a steady cluster is written to before anything is done to it.
LEAD_S: Final = 1.0
#: Between two writes: short beside every wait that is measured, and processes that start need a core, too.
_PAUSE_S: Final = 0.005
#: Of every topic that is written, where there are so many brokers. No drill ends so many at once.
_REPLICAS: Final = 3
_WRITES: Final = 20

#: Waits until something holds; a sentence says what.
Until = Callable[[Callable[[], Awaitable[bool | None]], str], Awaitable[bool]]


class Load:
    """One write after the other, from ``running`` on until ``end``. Times are monotonic seconds."""

    def __init__(self, prefix: str, brokers: int, until: Until) -> None:
        """``prefix``: of the names of what is written. ``brokers``: how many there are."""
        self._prefix = prefix
        self._replicas = min(_REPLICAS, brokers)
        self._until = until
        #: One for each quorum that was written to, in their order.
        self.streams: list[WriteStream] = []
        self._group: asyncio.TaskGroup
        self._task: asyncio.Task[None] | None = None

    @asynccontextmanager
    async def running(self, client: ControllerClient) -> AsyncIterator[None]:
        """Write while the block lasts; it begins after ``LEAD_S`` of acknowledged writes."""
        async with asyncio.TaskGroup() as self._group:
            self._begin(client)
            try:
                await self._until(self._has_lead, f"writes are acknowledged for {LEAD_S:g} s")
                yield
            finally:
                await self.end()

    async def go_on_with(self, client: ControllerClient) -> None:
        """Write to another quorum from now on, and to the one before no more."""
        await self.end()
        self._begin(client)

    async def end(self) -> None:
        """Write no more. Of a write that is under way nobody knows whether it was made."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})

    async def more(self, count: int = _WRITES) -> None:
        """Until so many more writes are acknowledged."""
        enough = len(self.acknowledged) + count

        async def look() -> bool | None:
            return len(self.acknowledged) >= enough or None

        await self._until(look, f"{count} more writes are acknowledged")

    @property
    def prefix(self) -> str:
        """Of what is written to the quorum that is written to now."""
        return self.streams[-1].prefix

    @property
    def acknowledged(self) -> list[str]:
        """Names of the topics that were acknowledged and not forgotten, in their order."""
        return [name for stream in self.streams for name in stream.acknowledged]

    @property
    def times(self) -> list[float]:
        """The times at which writes were acknowledged."""
        return [at for stream in self.streams for at in stream.times]

    def forget_unheld(self, held: set[str]) -> int:
        """Expect nothing of what quorums before the last one acknowledged and nobody holds; how much that is."""
        before = len(self.acknowledged)
        for stream in self.streams[:-1]:
            stream.acknowledged = [name for name in stream.acknowledged if name in held]
        return before - len(self.acknowledged)

    def _begin(self, client: ControllerClient) -> None:
        prefix = f"{self._prefix}-{len(self.streams)}"
        stream = WriteStream(client, prefix, replication_factor=self._replicas, pause_s=_PAUSE_S)
        self.streams.append(stream)
        self._task = self._group.create_task(stream.run(asyncio.Event()))

    async def _has_lead(self) -> bool | None:
        times = self.times
        return (bool(times) and times[-1] - times[0] >= LEAD_S) or None


def longest_wait_ms(times: Sequence[float], begin: float, end: float) -> float:
    """Longest time (ms) without an acknowledgement between two moments (s): what a client saw of a fault."""
    seen = [begin, *(at for at in times if begin <= at <= end), end]
    return max((later - earlier) * 1000 for earlier, later in pairwise(seen))


def unwritten_ms(times: Sequence[float], fault: float, well_again: float) -> float:
    """The part (ms) of the time from ``LEAD_S`` before the fault until all was well again that lies outside of the
    writes.

    Then the longest wait of a write is none of the fault: it began too late, or nobody wrote during the recovery.
    """
    if not times:
        return (well_again - fault + LEAD_S) * 1000
    late = max(0.0, times[0] - (fault - LEAD_S))
    early = max(0.0, well_again - times[-1])
    return (late + early) * 1000
