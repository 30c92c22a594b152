"""HTTP without sockets: production's client on one side, production's application on the other, a virtual wire between.

What is replaced is aiohttp's connection, on both sides; requests and answers travel as method, path, headers and body.
A wire can refuse (nobody listens), swallow (a partition), break off (the process died) and delay.
"""

from __future__ import annotations

import asyncio
import errno
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Protocol, cast
from urllib.parse import urlencode, urlsplit

import aiohttp
from aiohttp import web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.http import HttpVersion11, RawRequestMessage
from aiohttp.typedefs import URL, CIMultiDict, CIMultiDictProxy  # type: ignore[attr-defined]

from quorate.controller.client.connection import CONNECT_SECONDS
from quorate.controller.http.dispatch import SESSION_KEY
from quorate.scripts.simulation.system.loop import VirtualLoop

if TYPE_CHECKING:
    from quorate.scripts.simulation.system.world import SystemWorld

#: Seconds after which the other end of a connection notices that a process has died.
_RESET_SECONDS: Final = 0.002


@dataclass(frozen=True, slots=True)
class WireRequest:
    """A request of a client."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class WireAnswer:
    """An answer of a server."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Served(Protocol):
    """A process that listens."""

    node_id: int
    incarnation: int
    http: WireServer | None

    @property
    def is_up(self) -> bool: ...


@dataclass(eq=False, slots=True)
class Exchange:
    """A request under way, and where its answer goes."""

    caller: int
    server: int
    request: WireRequest
    loop: VirtualLoop
    answer: asyncio.Future[WireAnswer]
    is_connected: bool

    def settle(self, outcome: WireAnswer | Exception) -> None:
        """Something arrives at the client, if it still lives; whether somebody still waits is known when it is read."""
        self.loop.call_soon(self._take, outcome)

    def _take(self, outcome: WireAnswer | Exception) -> None:
        if self.answer.done():
            return
        if isinstance(outcome, Exception):
            self.answer.set_exception(outcome)
        else:
            self.answer.set_result(outcome)


class HttpWire:
    """All connections between clients, brokers and controllers. Chance comes from the world's generator."""

    def __init__(self, world: SystemWorld) -> None:
        self._world = world
        #: Who listens, by URL without a slash.
        self.servers: dict[str, Served] = {}
        self._numbers = 0
        #: Rolling CRC over everything sent: equal for equal runs.
        self.trace = 0
        #: Told of every request that is sent.
        self.on_request: Callable[[WireRequest], None] = lambda _: None

    def new_request_id(self) -> str:
        """A name that a run gives again."""
        self._numbers += 1
        return f"request-{self._numbers}"

    def send(self, session: WireSession, base: str, request: WireRequest) -> asyncio.Future[WireAnswer]:
        """Put a request on its way."""
        self.on_request(request)
        loop = cast("VirtualLoop", asyncio.get_running_loop())
        server = self.servers[base]
        answer = loop.create_future()
        known = session.connections.get(base)
        exchange = Exchange(session.caller, server.node_id, request, loop, answer, known == server.incarnation)
        self._note(request.path.encode() + request.body)
        if known is not None and not exchange.is_connected:
            del session.connections[base]
            if not self._world.is_healed and self._world.rng.random() < 0.3:
                # The connection had not been seen to be dead: the request went into it.
                self._later(exchange.settle, aiohttp.ServerDisconnectedError())
                return answer
        self._later(self._arrive, exchange, server, session, base)
        return answer

    def _arrive(self, exchange: Exchange, server: Served, session: WireSession, base: str) -> None:
        world = self._world
        is_cut = (exchange.caller, exchange.server) in world.network.cut
        if not is_cut and not exchange.is_connected:
            is_cut = (exchange.server, exchange.caller) in world.network.cut
        if is_cut or world.is_lost():
            if not exchange.is_connected:
                world.scheduler.after(CONNECT_SECONDS, exchange.settle, aiohttp.ConnectionTimeoutError())
            return
        if server.http is None or not server.is_up:
            refused = ConnectionRefusedError(errno.ECONNREFUSED, "refused")
            self._later(exchange.settle, aiohttp.ClientConnectorError(cast("Any", None), refused))
            return
        session.connections[base] = server.incarnation
        server.http.take(exchange)

    def answered(self, exchange: Exchange, answer: WireAnswer) -> None:
        """A server has an answer."""
        self._note(answer.body)
        if (exchange.server, exchange.caller) in self._world.network.cut or self._world.is_lost():
            return
        self._later(exchange.settle, answer)

    def break_off(self, exchange: Exchange) -> None:
        """The server's process ended."""
        self._world.scheduler.after(_RESET_SECONDS, exchange.settle, aiohttp.ServerDisconnectedError())

    def _later(self, action: Callable[..., None], *arguments: object) -> None:
        world = self._world
        world.scheduler.after(world.rng.expovariate(1.0 / world.options.delay_mean), action, *arguments)

    def _note(self, data: bytes) -> None:
        self.trace = zlib.crc32(data, zlib.crc32(repr(self._world.scheduler.now).encode(), self.trace))


class WireSession:
    """The part of an ``aiohttp.ClientSession`` that production uses."""

    def __init__(self, wire: HttpWire, caller: int) -> None:
        self._wire = wire
        #: Id of the process that asks.
        self.caller = caller
        #: Incarnation of the server that a connection is kept to, by URL.
        self.connections: dict[str, int] = {}

    def request(
        self,
        method: str,
        url: str,
        *,
        params: Mapping[str, object] | None = None,
        data: bytes | None = None,
        headers: Mapping[str, str],
        allow_redirects: bool = False,
        timeout: aiohttp.ClientTimeout,
    ) -> _ServedRequest:
        """See ``aiohttp.ClientSession.request``."""
        parts = urlsplit(url)
        path = parts.path + (f"?{parts.query}" if parts.query else "")
        if params:
            path += "?" + urlencode({name: str(value) for name, value in params.items()})
        sent = {"Host": parts.netloc, "X-Request-Id": self._wire.new_request_id(), **headers}
        body = b"" if data is None else bytes(data)
        if body:
            sent["Content-Length"] = str(len(body))
        request = WireRequest(method, path, sent, body)
        # An answer comes whole: that it is silent and that it is not there yet is one.
        seconds = timeout.total if timeout.sock_read is None else timeout.sock_read
        return _ServedRequest(self, self._wire, f"{parts.scheme}://{parts.netloc}", request, seconds)

    async def close(self) -> None:
        """Nothing is held."""
        self.connections.clear()


class _ServedRequest:
    """The context of one request."""

    def __init__(
        self, session: WireSession, wire: HttpWire, base: str, request: WireRequest, seconds: float | None
    ) -> None:
        self._session = session
        self._wire = wire
        self._base = base
        self._request = request
        self._seconds = seconds

    async def __aenter__(self) -> _Answer:
        async with asyncio.timeout(self._seconds):
            return _Answer(await self._wire.send(self._session, self._base, self._request))

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None


class _Answer:
    """The part of an ``aiohttp.ClientResponse`` that production uses."""

    def __init__(self, answer: WireAnswer) -> None:
        self.status = answer.status
        self.headers = answer.headers
        self._body = answer.body

    async def read(self) -> bytes:
        return self._body


class WireServer:
    """Production's application in one process. ``answered`` is told of every answer before it leaves."""

    def __init__(
        self,
        wire: HttpWire,
        loop: VirtualLoop,
        app: web.Application,
        session: WireSession,
        answered: Callable[[WireRequest, WireAnswer], None],
    ) -> None:
        self._wire = wire
        self._loop = loop
        self._app = app
        self._answered = answered
        app[SESSION_KEY] = cast("aiohttp.ClientSession", session)
        app.freeze()
        #: Requests that have no answer yet.
        self.under_way: dict[Exchange, None] = {}

    def take(self, exchange: Exchange) -> None:
        """A request can be read."""
        self.under_way[exchange] = None
        self._loop.call_soon(self._begin, exchange)

    def close(self, *, is_silent: bool) -> None:
        """The process is gone; whoever waits for it notices, unless its host is gone as well."""
        for exchange in self.under_way:
            if not is_silent:
                self._wire.break_off(exchange)
        self.under_way.clear()

    def _begin(self, exchange: Exchange) -> None:
        self._loop.spawn(self._serve(exchange))

    async def _serve(self, exchange: Exchange) -> None:
        writer = _AnswerWriter()
        task = asyncio.current_task()
        assert task is not None
        sent = exchange.request
        message = RawRequestMessage(
            sent.method,
            sent.path,
            HttpVersion11,
            CIMultiDictProxy(CIMultiDict(sent.headers)),
            (),
            should_close=False,
            compression=None,
            upgrade=False,
            chunked=False,
            url=URL(sent.path, encoded=True),
        )
        request = web.Request(
            message,
            cast("Any", _Body(sent.body)),
            cast("Any", _Protocol()),
            writer,
            cast("asyncio.Task[None]", task),
            self._loop,
            client_max_size=0,
        )
        answer = await self._app._handle(request)
        await answer.prepare(request)
        await answer.write_eof()
        made = WireAnswer(answer.status, writer.headers, bytes(writer.body))
        del self.under_way[exchange]
        self._answered(sent, made)
        self._wire.answered(exchange, made)


class _Protocol:
    """A connection from loopback."""

    ssl_context = None
    transport = None
    peername = ("127.0.0.1", 1)
    sockname = ("127.0.0.1", 2)


class _Body:
    """A body that has been read from its socket."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def is_eof(self) -> bool:
        return not self._data

    def at_eof(self) -> bool:
        return not self._data

    async def read(self, size: int = -1) -> bytes:
        data, self._data = (self._data, b"") if size < 0 else (self._data[:size], self._data[size:])
        return data


class _AnswerWriter(AbstractStreamWriter):
    """Keeps what an answer writes."""

    def __init__(self) -> None:
        self.headers: Mapping[str, str] = {}
        self.body = bytearray()

    async def write(self, chunk: bytes | bytearray | memoryview) -> None:
        self.body += chunk

    async def write_eof(self, chunk: bytes = b"") -> None:
        self.body += chunk

    async def drain(self) -> None:
        """Nothing holds it up."""

    def enable_compression(self, encoding: str = "deflate", strategy: int | None = None) -> None:
        """Never asked for."""

    def enable_chunking(self) -> None:
        """Makes no difference here."""

    async def write_headers(self, status_line: str, headers: CIMultiDict[str]) -> None:
        self.headers = CIMultiDictProxy(CIMultiDict(headers))
