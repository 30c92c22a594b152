"""Bounds the requests that a standby forwards at once: the others wait for their turn, and not for ever.

Without it a burst of requests became as many new connections to the active controller, none of which it could take in
time, and a healthy one looked as if it could not be reached.

There is a line for each kind of request, so that none waits for another's: brokers live by their heartbeats, and who
asks how the cluster is should be told while others flood it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from enum import Enum
from typing import Final

from quorate.controller.engine.queue_pace import QueuePace
from quorate.controller.http.routing import Route, Serving
from quorate.controller.permissions.permission import AsNode
from quorate.metadata_log.errors import Overloaded

#: See ``Overloaded``.
LIMIT: Final = "forwarded_requests"


class ForwardedKind(Enum):
    """The kinds of requests that wait for none of another kind."""

    #: Of brokers and controllers in their own name.
    NODES = "nodes"
    #: How the cluster is.
    VIEWS = "views"
    OTHERS = "others"

    @classmethod
    def of(cls, route: Route) -> ForwardedKind:
        """The kind of a route's requests."""
        if isinstance(route.permission, AsNode):
            return cls.NODES
        return cls.VIEWS if route.serving is Serving.VIEW else cls.OTHERS


class ForwardLine:
    """First come, first served. Belongs to one event loop."""

    def __init__(self, at_once: int, waiting_max: int) -> None:
        """``at_once`` requests are on their way to the active controller; at most ``waiting_max`` others wait."""
        self._at_once = at_once
        self._places = asyncio.Semaphore(at_once)
        self._waiting_max = waiting_max
        self._waiting = 0
        self._pace = QueuePace()

    @asynccontextmanager
    async def place(self, patience_s: float) -> AsyncIterator[None]:
        """Wait for a place, and hold it.

        Raises:
            Overloaded: too many wait already, so many that none would be free in that time, or none was. Nothing was
                sent.
        """
        self._check(patience_s)
        self._waiting += 1
        limit = asyncio.timeout(patience_s)
        try:
            async with limit:
                await self._places.acquire()
        except TimeoutError as error:
            raise self._refusal(f"after {patience_s * 1000:.0f} ms it was not this one's turn") from error
        finally:
            self._waiting -= 1
        begun_ms = _now_ms()
        try:
            yield
        finally:
            self._places.release()
            self._pace.note((_now_ms() - begun_ms) / self._at_once)

    def _check(self, patience_s: float) -> None:
        if self._waiting >= self._waiting_max:
            raise self._refusal(f"{self._waiting}, and no more may")
        wait_ms = self._pace.wait_ms(self._waiting)
        # A few may belong to a pause of the active controller's, after which all goes on.
        if self._waiting > self._at_once and wait_ms > patience_s * 1000:
            would = f"it would be this one's turn in {wait_ms:.0f} ms, and its time allows for {patience_s * 1000:.0f}"
            raise self._refusal(would)

    def _refusal(self, why: str) -> Overloaded:
        message = f"too many requests wait to be passed on to the active controller: {why}"
        return Overloaded(message, LIMIT, self._pace.come_again_ms(self._waiting, _now_ms()))


def _now_ms() -> float:
    return asyncio.get_running_loop().time() * 1000
