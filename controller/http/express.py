"""Requests of the usual form, answered without the web framework: what brokers and programs send again and again.

Every connection begins here. A request is taken here if it is, to the letter, a POST to a route without parameters that
the active controller serves, with known headers only and all of its body, if it has access, and if this node is active.
Anything else is the framework's, with the bytes as they came, and so is the connection from then on: what is to be
passed on, waited for or refused for its form is dealt with in one place, there. Answers are the framework's, header for
header.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

from pydantic import BaseModel

from controller import sockets
from controller.http import headers
from controller.http.access import check_access
from controller.http.answer_frames import AnswerFrames
from controller.http.answers import request_id_of
from controller.http.content import JSON, MSGPACK, decode_body
from controller.http.dispatch import REQUEST_ID, encode, run_route, timeout_of
from controller.http.errors import HttpRefusal
from controller.http.failures import failure_answer
from controller.http.models import Nothing
from controller.http.ports import Node
from controller.http.routing import Call, Route, Serving
from controller.origin import ANONYMOUS, ORIGIN, Origin, check_principal
from metadata_log.errors import ApiError

#: Bytes of a request up to its body, and of the body: above them the framework takes it, piece by piece.
_HEAD_BYTES_MAX: Final = 4_096
_BODY_BYTES_MAX: Final = 65_536
_HEAD_END: Final = b"\r\n\r\n"
#: Visible ASCII without anything that parsers may disagree about.
_HEADER: Final = re.compile(r"([A-Za-z0-9-]+):[ \t]*([\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?)?[ \t]*")
#: What clients of ours, and most others, send. `Connection`, `Expect` or `Transfer-Encoding` would change the framing.
_KNOWN: Final = frozenset(
    {
        "accept",
        "accept-encoding",
        "authorization",
        "content-length",
        "content-type",
        "host",
        "user-agent",
        headers.PRINCIPAL.lower(),
        headers.REQUEST_ID.lower(),
        headers.TIMEOUT_MS.lower(),
    }
)
_NUMBER_DIGITS_MAX: Final = 7
#: Idle connections are looked for this often, as a share of the time that they may be idle.
_SWEEP_SHARE: Final = 0.25


@dataclass(frozen=True, slots=True)
class _Head:
    """All that a request says before its body."""

    route: Route
    media: str
    timeout_ms: float
    #: Empty where the client gave none.
    request_id: str
    principal: str
    body_bytes: int


class ExpressLane:
    """Makes the protocol of each connection, and knows them all."""

    def __init__(
        self, node: Node, routes: Sequence[Route], framework: Callable[[], asyncio.Protocol], idle_s: float
    ) -> None:
        """``framework`` makes the protocol that takes over a connection.

        ``idle_s``: a connection on which nothing was asked for so long is closed, at the latest a quarter later.
        """
        self.node = node
        self.framework = framework
        self.connections: set[ExpressConnection] = set()
        self._routes = {f"POST {route.path} HTTP/1.1": route for route in routes if _is_usual(route)}
        self.frames = AnswerFrames(node)
        self._idle_s = idle_s
        self.clock = asyncio.get_running_loop().time
        self._sweep_timer = self._schedule_sweep()

    def __call__(self) -> ExpressConnection:
        return ExpressConnection(self)

    async def close(self, grace_s: float) -> None:
        """Let the requests under way end within a time, and close all connections."""
        self._sweep_timer.cancel()
        waiting = [connection.task for connection in self.connections if connection.task is not None]
        if waiting:
            await asyncio.wait(waiting, timeout=grace_s)
        for connection in list(self.connections):
            connection.close()

    def _schedule_sweep(self) -> asyncio.TimerHandle:
        return asyncio.get_running_loop().call_later(self._idle_s * _SWEEP_SHARE, self._sweep)

    def _sweep(self) -> None:
        """Close the connections that have been idle for too long: one timer for all."""
        idle_since = self.clock() - self._idle_s
        for connection in list(self.connections):
            if connection.task is None and connection.used_at <= idle_since:
                connection.close()
        self._sweep_timer = self._schedule_sweep()

    def read_head(self, data: bytes) -> _Head | None:
        """What a request says; None if it is not of the usual form, or anything about it is to be refused."""
        line, *lines = data.decode("latin-1").split("\r\n")
        route = self._routes.get(line)
        if route is None:
            return None
        fields: dict[str, str] = {}
        for text in lines:
            found = _HEADER.fullmatch(text)
            name = "" if found is None else found[1].lower()
            if found is None or name not in _KNOWN or name in fields:
                return None
            fields[name] = found[2] or ""
        size, media = fields.get("content-length", ""), fields.get("content-type", "")
        if not size.isdigit() or len(size) > _NUMBER_DIGITS_MAX or media not in route.media or "host" not in fields:
            return None
        try:
            check_access(self.node.shared_secret, fields["host"], fields.get("authorization", ""))
            timeout_ms = timeout_of(route, fields.get(headers.TIMEOUT_MS.lower()), self.node)
            principal = check_principal(fields.get(headers.PRINCIPAL.lower(), ANONYMOUS))
        except ApiError:
            return None
        return _Head(route, media, timeout_ms, fields.get(headers.REQUEST_ID.lower(), ""), principal, int(size))


def _is_usual(route: Route) -> bool:
    return (
        route.method == "POST"
        and route.serving is Serving.ACTIVE
        and route.has_body
        and route.parameters is Nothing
        and not route.is_raw
    )


class ExpressConnection(asyncio.Protocol):
    """One connection, until the framework takes it over."""

    def __init__(self, lane: ExpressLane) -> None:
        self._lane = lane
        self._transport: asyncio.Transport
        self._address = ""
        #: The last head in bytes, its end included, and what it says: most clients send the same one all the time.
        self._head_data = b""
        self._head: _Head | None = None
        #: Answers bodies that follow this head and are nearly as the last one was: see ``Route.repeated``.
        self._repeated: Callable[[bytes], BaseModel | None] | None = None
        #: Answers the request that is under way.
        self.task: asyncio.Task[None] | None = None
        #: When something was asked for or answered last, by the loop's clock.
        self.used_at = lane.clock()
        #: What came before that was answered.
        self._early: list[bytes] = []

    # --- asyncio.Protocol ----------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # that of uvloop is one in all but its class
        self._lane.connections.add(self)
        peer = transport.get_extra_info("peername")
        self._address = peer[0] if peer else ""
        connected = transport.get_extra_info("socket")
        if connected is not None:
            # It stays so when the framework takes the connection over.
            sockets.watch(connected, sockets.TO_A_CLIENT)

    def connection_lost(self, error: Exception | None) -> None:
        # What it asked for goes on: it may have been decided already.
        self._lane.connections.discard(self)

    def pause_writing(self) -> None:
        # A client that does not read its answers is not heard either.
        self._transport.pause_reading()

    def resume_writing(self) -> None:
        if self.task is None:
            self._transport.resume_reading()

    def data_received(self, data: bytes) -> None:
        self.used_at = self._lane.clock()
        if self.task is not None:
            self._transport.pause_reading()
            self._early.append(data)
        elif not (self._repeats(data) or self._answer(data)):
            self._hand_over(data)

    def close(self) -> None:
        """Close the connection, and give up what is under way."""
        if self.task is not None:
            self.task.cancel()
        self._transport.close()

    # --- answering -----------------------------------------------------------------------------------

    def _repeats(self, data: bytes) -> bool:
        """Whether it was the last request once more, which was answered at once, and is again."""
        head, repeated = self._head, self._repeated
        if repeated is None or head is None or not data.startswith(self._head_data):
            return False
        reply = repeated(data[len(self._head_data) :])
        if reply is None:
            return False
        self._answer_at_once(head, reply)
        return True

    def _answer(self, data: bytes) -> bool:
        """Whether the request was one for this lane; it is answered, or will be."""
        lane = self._lane
        end = data.find(_HEAD_END, 0, _HEAD_BYTES_MAX)
        if end < 0 or not lane.node.controller.is_active:
            return False
        body_at = end + len(_HEAD_END)
        head_data, body = data[:body_at], data[body_at:]
        head = self._head if head_data == self._head_data else lane.read_head(data[:end])
        if head is None:
            return False
        self._head_data, self._head, self._repeated = head_data, head, None
        if len(body) != head.body_bytes or len(body) > min(_BODY_BYTES_MAX, lane.node.limits.body_bytes_max):
            return False
        route = head.route
        try:
            model = decode_body(route.body, body, head.media)
        except HttpRefusal:
            return False
        reply = None if route.at_once is None else route.at_once(lane.node, model)
        if reply is None:
            self.task = asyncio.get_running_loop().create_task(self._run(head, request_id_of(head.request_id), model))
        else:
            self._answer_at_once(head, reply)
            if route.repeated is not None and head.media == MSGPACK:
                self._repeated = route.repeated(lane.node, model, body)
        return True

    def _answer_at_once(self, head: _Head, reply: BaseModel) -> None:
        request_id = request_id_of(head.request_id)
        self._transport.write(self._lane.frames.answer_at_once(head.route, request_id, reply, head.media))

    async def _run(self, head: _Head, request_id: str, model: Any) -> None:
        REQUEST_ID.set(request_id)
        ORIGIN.set(Origin(head.principal, self._address, request_id))
        route, media = head.route, head.media
        try:
            reply = await run_route(route, Call(self._lane.node, head.timeout_ms), Nothing(), model)
            status, data = encode(reply, media, is_bulk=route.is_bulk)
        except Exception as error:  # noqa: BLE001 - the border: nothing of ours may leave as a stack trace
            status, data = failure_answer(error, route.method, route.path, request_id)
            media = JSON
        self.task = None
        self.used_at = self._lane.clock()
        if not self._transport.is_closing():
            self._transport.write(self._lane.frames.answer(route, request_id, status, data, media))
        if self._early:
            self._go_on()

    def _go_on(self) -> None:
        """A client did not wait for its answer: what it sent is heard now."""
        data = b"".join(self._early)
        self._early.clear()
        self._transport.resume_reading()
        self.data_received(data)

    def _hand_over(self, data: bytes) -> None:
        """This request, and all that follow on the connection, are the framework's."""
        self._lane.connections.discard(self)
        protocol = self._lane.framework()
        self._transport.set_protocol(protocol)
        protocol.connection_made(self._transport)
        protocol.data_received(data)
