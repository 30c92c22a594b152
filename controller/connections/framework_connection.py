"""A connection that the web framework answers: nobody takes for ever over a request's head, nor sends one without end.

The framework waits for one as long as a connection may be idle, and keeps a megabyte of it. This stands between it and
the transport, and knows of a request from its first byte on; that one is being answered the middleware says.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final, Protocol

from aiohttp import StreamReader, web

from quorate.controller.api.errors import HttpRefusal
from quorate.controller.connections.places import Places
from quorate.metadata_log.errors import ApiError
from quorate.metadata_log.peer_certificates import PeerCertificate

HEAD_END: Final = b"\r\n\r\n"
#: Of a request's line and all its headers: the longest token, and four times as much besides.
HEAD_BYTES_MAX: Final = 40_960


class Keeper(Protocol):
    """The gate (``gate.Gate``), as far as a connection behind it needs it."""

    places: Places[Any]
    #: The framework's connections, until they are lost.
    handed_over: set[FrameworkConnection]

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
        #: Since when the head of a request has been on its way; None: none is.
        self.head_since: float | None = None
        #: The last bytes of that head, among which its end may begin, and how many came before what comes next.
        self._tail = b""
        self._head_bytes = 0
        #: What comes is not looked at: a head is whole, and its request is not begun yet or is being answered.
        self._is_past_head = False
        self._is_answering = False
        #: The body of the request that was answered last, which may still be on its way; None: there was none yet.
        self._rest: StreamReader | None = None
        #: None: the client has shown none.
        self.certificate = PeerCertificate.at(transport)
        #: Whether the next answer is the last.
        self.is_leaving = False

    def take_over(self, data: bytes, head_since: float) -> None:
        """From now on it is the framework's, beginning with these bytes of a request."""
        self.head_since = head_since
        self._gate.handed_over.add(self)
        self.transport.set_protocol(self)
        self._framework.connection_made(self.transport)
        self.data_received(data)

    def begin(self) -> None:
        """A request is being answered; what comes meanwhile is its body."""
        self._is_answering = self._is_past_head = True
        self._forget_head()

    def prove(self, owner: str | None) -> None:
        """Note that the client has proved its access: see ``Gate.prove``. Its request is under way."""
        self._gate.prove(self, owner)
        self._gate.places.begin(self)

    def end(self, body: StreamReader, *, is_next_there: bool) -> None:
        """It has been answered. ``body``: its own, whose rest may still come, and is thrown away.

        ``is_next_there``: the head of another request came whole meanwhile.
        """
        self._is_answering, self._is_past_head = False, is_next_there
        self._rest = body
        self._gate.places.end(self, self._clock())

    def leave(self) -> None:
        """Close the connection behind the next answer or, where nothing is asked until this is said again, then."""
        is_idle = not self._is_answering and self.head_since is None and not self.transport.get_write_buffer_size()
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
        if not self._is_past_head and (self._rest is None or self._rest.is_eof()):
            self._note(data)
        if not self.transport.is_closing():  # it may have been told why just now
            self._framework.data_received(data)

    def eof_received(self) -> bool | None:
        return self._framework.eof_received()

    def pause_writing(self) -> None:
        self._framework.pause_writing()

    def resume_writing(self) -> None:
        self._framework.resume_writing()

    def connection_lost(self, error: Exception | None) -> None:
        self._gate.handed_over.discard(self)
        self._gate.places.leave(self)
        self._framework.connection_lost(error)

    def _note(self, data: bytes) -> None:
        if not self._head_bytes:
            data = data.lstrip(b"\r\n")  # empty lines before a request are none of its head
            if not data:
                return
        if self.head_since is None:
            self.head_since = self._clock()
        seen = self._tail + data
        end = seen.find(HEAD_END)
        # The last bytes may be those of the end, which is none of the head.
        before_end = len(seen) - len(HEAD_END) + 1 if end < 0 else end
        if self._head_bytes - len(self._tail) + before_end > HEAD_BYTES_MAX:
            self.dismiss(
                HttpRefusal(431, f"the head of a request has at most {HEAD_BYTES_MAX} bytes: line and headers")
            )
        elif end >= 0:
            self._forget_head()
            self._is_past_head = True
        else:
            self._head_bytes += len(data)
            self._tail = seen[1 - len(HEAD_END) :]

    def _forget_head(self) -> None:
        self.head_since = None
        self._tail = b""
        self._head_bytes = 0


def connection_of(request: web.Request) -> FrameworkConnection | None:
    """The connection that a request came on; None if it is gone."""
    connection = None if request.transport is None else request.transport.get_protocol()
    return connection if isinstance(connection, FrameworkConnection) else None


@web.middleware
async def mark_answering(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    """The outermost of the framework's middlewares: it tells the connection when a request is being answered."""
    connection = connection_of(request)
    if connection is None:
        return await handler(request)
    connection.begin()
    try:
        answer = await handler(request)
    finally:
        # Those that wait are a part of the framework's own: another version may have none.
        connection.end(request.content, is_next_there=bool(getattr(request.protocol, "_messages", ())))
    if connection.is_leaving:
        answer.force_close()
    return answer
