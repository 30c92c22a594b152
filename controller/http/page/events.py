"""`/v1/events`: tells whoever shows the cluster that there is something new to ask for, as server-sent events.

An event says that something changed, and not what: the answers say that, each by its own rights. So a stream costs a
look twice a second, whatever changes, and a reader that misses one has lost nothing.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any, Final

from aiohttp import web

from quorate.controller.api.models import Nothing
from quorate.controller.http.callers import rights_here
from quorate.controller.http.handlers.common import observe_quorum
from quorate.controller.http.handlers.raw import still_stands
from quorate.controller.http.ports import Node
from quorate.controller.permissions.permission import OnCluster
from quorate.metadata_log.errors import Overloaded

EVENTS_MEDIA: Final = "text/event-stream"
#: As of the status, which is asked for when an event comes.
EVENTS_PERMISSION: Final = OnCluster("DESCRIBE")

#: Streams of one controller, and of one principal of an authorizer: nodes and whoever is asked nothing have the first.
STREAMS_MAX: Final = 64
STREAMS_OF_ONE_MAX: Final = 8

#: Between two looks.
_LOOK_S: Final = 0.5
#: So long nothing new: a line then says that the controller is still there.
_SILENCE_S: Final = 10.0
#: A stream ends after so long; its reader asks again.
_LONGEST_S: Final = 600.0
#: A reader that takes nothing for so long is let go.
_SEND_S: Final = 30.0


class EventStreams:
    """The places of one controller's streams, and their end when it stops serving."""

    def __init__(self) -> None:
        self.ending = asyncio.Event()
        self._taken = 0
        self._of_one: Counter[str] = Counter()

    @contextmanager
    def place(self, principal: str | None) -> Iterator[None]:
        """A place, for as long as the block runs. ``principal``: None: whose share is not bounded.

        Raises:
            Overloaded: there is none.
        """
        if self._taken >= STREAMS_MAX:
            message = f"{self._taken} event streams are open, {STREAMS_MAX} is the most"
            raise Overloaded(f"{message}: ask for the status", "event_streams")
        if principal is not None and self._of_one[principal] >= STREAMS_OF_ONE_MAX:
            message = f"{principal} has {self._of_one[principal]} event streams open, {STREAMS_OF_ONE_MAX} is the most"
            raise Overloaded(f"{message} of one principal: ask for the status", "event_streams")
        self._taken += 1
        if principal is not None:
            self._of_one[principal] += 1
        try:
            yield
        finally:
            self._taken -= 1
            if principal is not None:
                self._of_one[principal] -= 1
                if not self._of_one[principal]:
                    del self._of_one[principal]


STREAMS_KEY: Final = web.AppKey("streams", EventStreams)


async def streams_of(app: web.Application) -> AsyncIterator[None]:
    """A part of the application: the streams, from its start to its end."""
    app[STREAMS_KEY] = EventStreams()
    yield


async def end_streams(app: web.Application) -> None:
    """Let all streams end, before the connections are closed."""
    app[STREAMS_KEY].ending.set()


async def get_events(node: Node, parameters: Nothing, request: web.Request) -> web.StreamResponse:
    streams = request.app[STREAMS_KEY]
    with streams.place(rights_here(node).bounded_principal):
        answer = web.StreamResponse(headers={"Content-Type": EVENTS_MEDIA, "Cache-Control": "no-store"})
        await answer.prepare(request)
        try:
            await _tell(node, request, answer, streams.ending)
        except TimeoutError:
            if request.transport is not None:
                request.transport.abort()
        return answer


async def _tell(node: Node, request: web.Request, answer: web.StreamResponse, ending: asyncio.Event) -> None:
    clock = asyncio.get_running_loop().time
    ends_at, silent_at = clock() + _LONGEST_S, clock() + _SILENCE_S
    seen: Sight | None = None
    while clock() < ends_at and not ending.is_set() and _goes_on(node, request):
        sight = Sight(node)
        if seen is None or not sight.shows_the_same(seen):
            await _send(answer, f"event: changed\ndata: {json.dumps(sight.told)}\n\n")
            silent_at = clock() + _SILENCE_S
        elif clock() >= silent_at:
            await _send(answer, ": still here\n\n")
            silent_at = clock() + _SILENCE_S
        seen = sight
        try:
            async with asyncio.timeout(_LOOK_S):
                await ending.wait()
        except TimeoutError:
            continue
    await answer.write_eof()


def _goes_on(node: Node, request: web.Request) -> bool:
    return request.transport is not None and still_stands(node, request, EVENTS_PERMISSION)


async def _send(answer: web.StreamResponse, text: str) -> None:
    async with asyncio.timeout(_SEND_S):
        await answer.write(text.encode())


class Sight:
    """The state that a controller shows at one moment. Parts of an image are values: the same object says the same."""

    def __init__(self, node: Node) -> None:
        image, quorum = node.controller.stable, observe_quorum(node)
        self._parts = image[1:]  # all but what the image covers
        voters = [(voter.node_id, voter.role) for voter in quorum.voters]
        self._soft: Any = (quorum.active_id, quorum.epoch, voters, node.cluster.faults())
        self.told = {"state_offset": image.provenance.end_offset, "epoch": quorum.epoch, "active_id": quorum.active_id}

    def shows_the_same(self, other: Sight) -> bool:
        """Whether an answer of before is as good as one of now. NoOp records change nothing that is shown."""
        same_parts = all(part is before for part, before in zip(self._parts, other._parts, strict=True))
        return same_parts and self._soft == other._soft
