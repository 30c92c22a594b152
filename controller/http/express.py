"""Requests of the usual form, answered without the web framework: what brokers and programs send again and again.

Every connection begins here. A request is taken here if it is, to the letter, a POST to a route without parameters that
the active controller serves, with known headers only and all of its body, if it has access, and if this node is active.
Anything else is the framework's, with the bytes as they came, and so is the connection from then on: what is to be
passed on, waited for or refused for its form is dealt with in one place, there. Answers are the framework's, header for
header.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

from pydantic import BaseModel

from quorate.controller.api import headers, sockets
from quorate.controller.api.content import JSON, MSGPACK, decode_body
from quorate.controller.api.errors import HttpRefusal
from quorate.controller.api.models import Nothing
from quorate.controller.api.request_ids import request_id_of
from quorate.controller.api.tls_contexts import TlsContexts
from quorate.controller.api.tls_entrance import NO_CERTIFICATE, Handshake
from quorate.controller.connections.bodies import Bodies
from quorate.controller.connections.body_turns import bytes_at_once
from quorate.controller.connections.framework_connection import HEAD_END
from quorate.controller.connections.gate import SWEEP_SHARE, Gate, GateLimits
from quorate.controller.connections.places import NoPlace
from quorate.controller.decisions.origin import ORIGIN
from quorate.controller.http.answer_frames import AnswerFrames
from quorate.controller.http.callers import origin_of
from quorate.controller.http.dispatch import REQUEST_ID, SOME_FAILED, encode, item_results, run_route, timeout_of
from quorate.controller.http.failures import failure_answer
from quorate.controller.http.ports import Node
from quorate.controller.http.routing import Call, Route, Serving
from quorate.controller.http.usual_fields import usual_fields
from quorate.controller.identity.claims import NoAccess, RequestClaims
from quorate.controller.identity.identity import Caller
from quorate.controller.identity.other_ends import OtherEnd, other_end
from quorate.controller.logs.refusals import refused_request
from quorate.controller.permissions.rights import Rights
from quorate.controller.quotas.connections import ConnectionRates
from quorate.metadata_log.errors import ApiError, Overloaded
from quorate.metadata_log.peer_certificates import PeerCertificate

#: Bytes of a request up to its body: above them the framework takes it, piece by piece.
_HEAD_BYTES_MAX: Final = 4_096
_NUMBER_DIGITS_MAX: Final = 7


@dataclass(frozen=True, slots=True)
class _RequestHead:
    """All that a request says before its body."""

    route: Route
    media: str
    timeout_ms: float
    #: Empty where the client gave none.
    request_id: str
    body_bytes: int
    caller: Caller
    #: See ``AccessControl.owner_of_connection``.
    owner: str | None
    #: See ``AccessControl.owner_of_body``.
    owner_of_body: str | None
    #: Of the access control, when it said who that is.
    generation: int


class ExpressLane:
    """Makes the protocol of each connection, and knows them all."""

    def __init__(
        self,
        node: Node,
        routes: Sequence[Route],
        framework: Callable[[], asyncio.Protocol],
        bodies: Bodies,
        idle_s: float,
        *,
        tls: TlsContexts | None = None,
        wants_certificates: bool = False,
    ) -> None:
        """``framework`` makes the protocol that takes over a connection. ``bodies``: those of the requests there, too.

        ``tls``: that is spoken; None: none is.

        ``wants_certificates``: who shows none is told so at his first request, for a handshake says nothing.

        ``idle_s``: a connection on which nothing was asked for so long is closed, at the latest a quarter later. For
        how many connections there is place, and how long a request's head may take, ``node.limits`` say.
        """
        self.node = node
        self.wants_certificates = wants_certificates
        self.framework = framework
        self.bodies = bodies
        self.connections: set[ExpressConnection] = set()
        self._routes = {f"POST {route.path} HTTP/1.1": route for route in routes if _is_usual(route)}
        self.frames = AnswerFrames(node)
        self._idle_s = idle_s
        limits = node.limits
        head_s = limits.head_timeout_ms / 1000
        self._shortest_s = min(head_s, idle_s)
        places = limits.connections_max, limits.connections_per_address_max
        #: Of the connections here and of those that were handed over.
        self.gate = Gate(self, GateLimits(*places, head_s, self._shortest_s), tls)
        self._rates = ConnectionRates(limits.quota_burst_seconds, limits.connections_per_second_max)
        self.clock = asyncio.get_running_loop().time
        self._sweep_timer = self._schedule_sweep()

    def __call__(self) -> ExpressConnection:
        return ExpressConnection(self)

    def enter(self, handshake: Handshake) -> bool:
        """See ``Door``."""
        return self.gate.enter(handshake, handshake.address)

    def leave(self, handshake: Handshake) -> None:
        """See ``Door``."""
        self.gate.places.leave(handshake)

    def protocol(self, handshake: Handshake) -> ExpressConnection:
        """See ``Door``."""
        return ExpressConnection(self, handshake)

    async def close(self, grace_s: float) -> None:
        """Let the requests under way end within a time, and close all connections."""
        self._sweep_timer.cancel()
        waiting = [connection.task for connection in self.connections if connection.task is not None]
        if waiting:
            await asyncio.wait(waiting, timeout=grace_s)
        for connection in list(self.connections):
            connection.close()

    def _schedule_sweep(self) -> asyncio.TimerHandle:
        return asyncio.get_running_loop().call_later(self._shortest_s * SWEEP_SHARE, self._sweep)

    def _sweep(self) -> None:
        """Close the connections that have had their time: one timer for all."""
        now = self.clock()
        for connection in list(self.connections):
            if connection.task is None and connection.used_at <= now - self._idle_s:
                connection.close()
        self.gate.look_at_certificates(list(self.connections))
        self.gate.sweep()
        self._sweep_timer = self._schedule_sweep()

    def admit(self, address: str, now_ms: float) -> None:
        """See ``gate.Server``."""
        self._rates.admit(address, self.node.controller.stable.client_quotas, now_ms)

    def last_answer(self, error: ApiError) -> bytes:
        """See ``gate.Server``."""
        request_id = request_id_of("")
        status, body, _ = failure_answer(error, "", "", request_id)
        return self.frames.last_answer(request_id, status, body)

    def note_refused(self) -> None:
        """See ``gate.Server``."""
        self.node.cluster.counters().connections_refused += 1

    def note_displaced(self, whose: str) -> None:
        """See ``gate.Server``."""
        self.node.cluster.counters().connections_displaced[whose] += 1

    def read_head(self, data: bytes, end: OtherEnd) -> _RequestHead | None:
        """The head of a request; None if it is not of the usual form, or anything about it is to be refused."""
        line, *lines = data.decode("latin-1").split("\r\n")
        route = self._routes.get(line)
        if route is None:
            return None
        fields = usual_fields(lines)
        if fields is None:
            return None
        size, media = fields.get("content-length", ""), fields.get("content-type", "")
        if not size.isdigit() or len(size) > _NUMBER_DIGITS_MAX or media not in route.media or "host" not in fields:
            return None
        access = self.node.access
        generation = access.generation
        try:
            caller = access.identify(RequestClaims("POST", route.path, end.address, fields, end.certificate, end.uid))
            timeout_ms = timeout_of(route, fields.get(headers.TIMEOUT_MS.lower()), self.node)
        except ApiError:
            return None
        if not caller.is_proved or caller.body_digest is not None:
            return None  # whom the framework bounds, and what only it looks at
        request_id = fields.get(headers.REQUEST_ID.lower(), "")
        owners = access.owner_of_connection(caller), access.owner_of_body(caller)
        return _RequestHead(route, media, timeout_ms, request_id, int(size), caller, *owners, generation)


def _is_usual(route: Route) -> bool:
    return (
        route.method == "POST"
        and route.serving is Serving.ACTIVE
        and route.has_body
        and route.parameters is Nothing
        and not route.is_raw
    )


def _at_once(route: Route, node: Node, rights: Rights, model: Any) -> BaseModel | None:
    """The reply that needs no waiting; None where it does, or is none: a refusal is made where all of them are."""
    if route.at_once is None:
        return None
    try:
        route.permission.check(rights, model)
    except ApiError:
        return None
    return route.at_once(node, model)


class ExpressConnection(asyncio.Protocol):
    """One connection, until the framework takes it over."""

    def __init__(self, lane: ExpressLane, handshake: Handshake | None = None) -> None:
        """``handshake``: the one that it had before, where TLS is spoken."""
        self._lane = lane
        self._handshake = handshake
        self._end = OtherEnd("")
        #: None: the client has shown none.
        self.certificate: PeerCertificate | None = None
        self._is_leaving = False
        self._lacks_certificate = False
        self.transport: asyncio.Transport
        #: The last head in bytes, its end included, and what it says: most clients send the same one all the time.
        self._head_data = b""
        self._head: _RequestHead | None = None
        #: Answers bodies that follow this head and are nearly as the last one was: see ``Route.repeated``.
        self._repeated: Callable[[bytes], BaseModel | None] | None = None
        #: Answers the request that is under way.
        self.task: asyncio.Task[None] | None = None
        #: When something was asked for or answered last, by the loop's clock.
        self.used_at = lane.clock()
        self.has_asked = False
        #: What came before that was answered.
        self._early: list[bytes] = []

    # --- asyncio.Protocol ----------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)  # that of uvloop is one in all but its class
        self._end = end = other_end(transport)
        self.certificate = PeerCertificate.at(transport)
        if not self._lane.gate.enter_after(self, self._handshake, end.address, is_local=end.uid is not None):
            return
        self._lane.connections.add(self)
        self._lacks_certificate = self._lane.wants_certificates and end.certificate is None and end.uid is None
        connected = transport.get_extra_info("socket")
        if connected is not None and end.uid is None:
            # It stays so when the framework takes the connection over.
            sockets.watch(connected, sockets.TO_A_CLIENT)

    def connection_lost(self, error: Exception | None) -> None:
        # What it asked for goes on: it may have been decided already.
        self._lane.connections.discard(self)
        self._lane.gate.places.leave(self)

    def pause_writing(self) -> None:
        # A client that does not read its answers is not heard either.
        self.transport.pause_reading()

    def resume_writing(self) -> None:
        if self.task is None:
            self.transport.resume_reading()

    def data_received(self, data: bytes) -> None:
        opened_at, self.used_at = self.used_at, self._lane.clock()
        if self._lacks_certificate:
            self._lane.gate.dismiss(self.transport, NoAccess(401, NO_CERTIFICATE))
        elif self.task is not None:
            self.transport.pause_reading()
            self._early.append(data)
        elif not self._is_leaving and (self._repeats(data) or self._answer(data)):
            self.has_asked = True
        else:
            self._hand_over(data, self.used_at if self.has_asked else opened_at)

    def leave(self) -> None:
        """See ``gate.CertifiedConnection``: the last answer is the framework's."""
        if self._is_leaving and self.task is None:
            self.transport.close()
        self._is_leaving = True

    def close(self) -> None:
        """Close the connection, and give up what is under way."""
        if self.task is not None:
            self.task.cancel()
        self.transport.close()

    # --- answering -----------------------------------------------------------------------------------

    def _repeats(self, data: bytes) -> bool:
        """Whether it was the last request once more, which was answered at once, and is again."""
        head, repeated = self._head, self._repeated
        if repeated is None or head is None or not data.startswith(self._head_data):
            return False
        if head.generation != self._lane.node.access.generation:
            return False
        reply = repeated(data[len(self._head_data) :])
        if reply is None:
            return False
        self._answer_at_once(head, reply)
        return True

    def _answer(self, data: bytes) -> bool:
        """Whether the request was one for this lane; it is answered, or will be."""
        lane = self._lane
        end = data.find(HEAD_END, 0, _HEAD_BYTES_MAX)
        if end < 0 or not lane.node.controller.is_active:
            return False
        body_at = end + len(HEAD_END)
        head_data, body = data[:body_at], data[body_at:]
        head = self._head if head_data == self._head_data else None
        if head is None or head.generation != lane.node.access.generation:
            head = lane.read_head(data[:end], self._end)
        if head is None:
            return False
        if head is not self._head:
            try:
                lane.gate.prove(self, head.owner)
            except NoPlace as error:
                lane.gate.dismiss(self.transport, error)
                return True
        self._head_data, self._head, self._repeated = head_data, head, None
        route = head.route
        bytes_max = min(bytes_at_once(head.owner_of_body), route.body_bytes_max(lane.node.limits.body_bytes_max))
        if len(body) != head.body_bytes or len(body) > bytes_max:
            return False
        try:
            model = decode_body(route.body, body, head.media)
        except HttpRefusal:
            return False
        rights = lane.node.access.rights(head.caller)
        reply = _at_once(route, lane.node, rights, model)
        if reply is None:
            room = lane.bodies.held(head.owner_of_body)
            try:
                room.grow(len(body))
            except Overloaded:
                return False
            work = self._run(head, rights, request_id_of(head.request_id), model)
            self.task = asyncio.get_running_loop().create_task(work)
            self.task.add_done_callback(lambda _: room.release())
            lane.gate.places.begin(self)
        else:
            self._answer_at_once(head, reply)
            if route.repeated is not None and head.media == MSGPACK:
                self._repeated = route.repeated(lane.node, model, body)
        return True

    def _answer_at_once(self, head: _RequestHead, reply: BaseModel) -> None:
        request_id = request_id_of(head.request_id)
        self.transport.write(self._lane.frames.answer_at_once(head.route, request_id, reply, head.media))

    async def _run(self, head: _RequestHead, rights: Rights, request_id: str, model: Any) -> None:
        REQUEST_ID.set(request_id)
        origin = origin_of(head.caller, request_id, rights.grounds)
        ORIGIN.set(origin)
        route, media, node = head.route, head.media, self._lane.node
        retry_after_s = 0
        asked = refused_request(route.method, route.path, origin)
        try:
            reply = await run_route(route, Call(node, head.timeout_ms, rights), Nothing(), model)
            status, data = encode(reply, media, is_bulk=route.is_bulk)
            if status == SOME_FAILED:
                node.refusals.note_items(asked, item_results(reply))
        except Exception as error:  # noqa: BLE001 - the border: nothing of ours may leave as a stack trace
            status, data, retry_after_s = failure_answer(error, route.method, route.path, request_id)
            node.refusals.note(asked, error, status)
            media = JSON
        self.task = None
        self.used_at = self._lane.clock()
        self._lane.gate.places.end(self, self.used_at)
        if not self.transport.is_closing():
            self.transport.write(self._lane.frames.answer(route, request_id, status, data, media, retry_after_s))
        if self._early:
            self._go_on()

    def _go_on(self) -> None:
        """A client did not wait for its answer: what it sent is heard now."""
        data = b"".join(self._early)
        self._early.clear()
        self.transport.resume_reading()
        self.data_received(data)

    def _hand_over(self, data: bytes, head_since: float) -> None:
        """This request, and all that follow on the connection, are the framework's."""
        lane = self._lane
        lane.connections.discard(self)
        lane.gate.hand_over(self, lane.framework(), data, head_since)
