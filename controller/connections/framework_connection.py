"""A connection that the web framework answers: nobody takes for ever over a request's head, nor sends one without end.

The framework waits for one as long as a connection may be idle, and keeps a megabyte of it. This stands between it and
the transport, and knows of a request from its first byte on; that one is being answered the middleware says.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from aiohttp import web

from quorate.controller.api.errors import HttpRefusal
from quorate.controller.connections.head_lengths import HEAD_BYTES_MAX, HeadLengths
from quorate.controller.connections.places import Places
from quorate.controller.connections.unread_answers import UnreadAnswers
from quorate.metadata_log.errors import ApiError
from quorate.metadata_log.peer_certificates import PeerCertificate


class Keeper(Protocol):
    """The gate (``gate.Gate``), as far as a connection behind it needs it."""

    places: Places[Any]
    #: The framework's connections, until they are lost.
    handed_over: set[FrameworkConnection]
    unread: UnreadAnswers[Any]

    def begin_unread(self, connection: Any) -> None:
        """See ``Gate.begin_unread``."""

    def prove(self, connection: Any, owner: str | None) -> None:
        """See ``Gate.prove``."""

    def dismiss(self, transport: asyncio.Transport, error: ApiError) -> None:
        """See ``Gate.dismiss``."""


class FrameworkConnection(asyncio.Protocol):
    """Passes everything on. Times are the loop's."""

    def __init__(self, transport: asyncio.Transport, framework: asyncio.Protocol, gate: Keeper):
        """``gate``: through which it came in, with a place of its own."""
        self.transport = transport
        self._framework = framework
        self._gate = gate
        self._clock = asyncio.get_running_loop().time
        self._heads = HeadLengths()
        self._answered = 0
        #: Since when the head of a request has been on its way, and nothing else; None: none is.
        self.head_since: float | None = None
        self._is_answering = False
        #: None: the client has shown none.
        self.certificate = PeerCertificate.at(transport)
        #: Whether the next answer is the last.
        self.is_leaving = False

    def take_over(self, data: bytes, head_since: float, *, is_paused: bool) -> None:
        """From now on it is the framework's, beginning with these bytes of a request.

        ``is_paused``: an answer that went before is not taken as fast as it came.
        """
        self.head_since = head_since
        self._gate.handed_over.add(self)
        self.transport.set_protocol(self)
        self._framework.connection_made(self.transport)
        if is_paused:
            self.pause_writing()
        self.data_received(data)

    def begin(self) -> None:
        """A request is being answered."""
        self._is_answering = True

    def prove(self, owner: str | None) -> None:
        """Note that the client has proved its access: see ``Gate.prove``. Its request is under way."""
        self._gate.prove(self, owner)
        self._gate.places.begin(self)

    def end(self) -> None:
        """The answer has been taken. The request's body may still be on its way, and is thrown away."""
        self._is_answering = False
        self._answered += 1
        self._gate.places.end(self, self._clock())
        self._look_at_head()

    def leave(self) -> None:
        """Close the connection behind the next answer or, where nothing is asked until this is said again, then."""
        is_idle = not self._waits and self.head_since is None and not self.transport.get_write_buffer_size()
        if self.is_leaving and is_idle:
            self.transport.close()
        self.is_leaving = True

    def dismiss(self, error: ApiError) -> None:
        """Say what is wrong with what came, and close the connection."""
        self._gate.dismiss(self.transport, error)

    def close(self) -> None:
        """Close the connection."""
        self.transport.close()

    def data_received(self, data: bytes) -> None:
        if self._heads.is_too_long:
            return  # what came before it is still being answered
        whole = data[: self._heads.take(data)]
        self._look_at_head()
        if not self.transport.is_closing():  # it may have been told why just now
            self._framework.data_received(whole)

    def eof_received(self) -> bool | None:
        return self._framework.eof_received()

    def pause_writing(self) -> None:
        self._framework.pause_writing()
        self._gate.begin_unread(self)

    def resume_writing(self) -> None:
        self._gate.unread.end(self)
        self._framework.resume_writing()

    def connection_lost(self, error: Exception | None) -> None:
        self._gate.handed_over.discard(self)
        self._gate.places.leave(self)
        self._gate.unread.end(self)
        self._framework.connection_lost(error)

    @property
    def _waits(self) -> bool:
        """Whether a request came whole, its body aside, and is not answered."""
        return self._is_answering or self._heads.whole > self._answered

    def _look_at_head(self) -> None:
        """A head has its time, and is refused, only when all before it is answered: answers come in order."""
        if self._waits:
            self.head_since = None
            if self._heads.is_too_long:
                self.transport.pause_reading()
        elif self._heads.is_too_long:
            message = f"the head of a request has at most {HEAD_BYTES_MAX} bytes: line and headers"
            self.dismiss(HttpRefusal(431, message))
        elif not self._heads.is_under_way:
            self.head_since = None
        elif self.head_since is None:
            self.head_since = self._clock()


def connection_of(request: web.Request) -> FrameworkConnection | None:
    """The connection that a request came on; None if it is gone."""
    connection = None if request.transport is None else request.transport.get_protocol()
    return connection if isinstance(connection, FrameworkConnection) else None


@web.middleware
async def mark_answering(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    """The outermost of the framework's middlewares: it tells the connection that a request is being answered."""
    connection = connection_of(request)
    if connection is None:
        return await handler(request)
    connection.begin()
    answer = await handler(request)
    if connection.is_leaving:
        answer.force_close()
    return answer
