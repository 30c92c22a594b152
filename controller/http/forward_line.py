"""Bounds the requests that a standby forwards at once: the others wait for their turn, and not for ever.

Without it a burst of requests became as many new connections to the active controller, none of which it could take in
time, and a healthy one looked as if it could not be reached.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from quorate.metadata_log.errors import Overloaded


class ForwardLine:
    """First come, first served. Belongs to one event loop."""

    def __init__(self, at_once: int, waiting_max: int) -> None:
        """``at_once`` requests are on their way to the active controller; at most ``waiting_max`` others wait."""
        self._places = asyncio.Semaphore(at_once)
        self._waiting_max = waiting_max
        self._waiting = 0

    @asynccontextmanager
    async def place(self, patience_s: float) -> AsyncIterator[None]:
        """Wait for a place, and hold it.

        Raises:
            Overloaded: too many wait already, or none was free for so long. Nothing was sent.
        """
        if self._waiting >= self._waiting_max:
            raise Overloaded(
                f"{self._waiting} requests wait to be passed on to the active controller, the most that may"
            )
        self._waiting += 1
        limit = asyncio.timeout(patience_s)
        try:
            async with limit:
                await self._places.acquire()
        except TimeoutError as error:
            waited = f"after {patience_s * 1000:.0f} ms it was not this one's turn"
            raise Overloaded(f"too many requests wait to be passed on to the active controller: {waited}") from error
        finally:
            self._waiting -= 1
        try:
            yield
        finally:
            self._places.release()
