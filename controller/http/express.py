"""Requests of the usual form, answered without the web framework: what brokers and programs send again and again.

Every connection begins here. A request is taken here if it is, to the letter, a POST to a route without parameters that
the active controller serves, with known headers only and all of its body, if it has access, and if this node is active.
Anything else is the framework's, with the bytes as they came, and so is the connection from then on: what is to be
passed on, waited for or refused for its form is dealt with in one place, there. Answers are the framework's, header for
header.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Any, Final, cast

from pydantic import BaseModel

from quorate.controller.api import sockets
from quorate.controller.api.content import JSON, MSGPACK, decode_body
from quorate.controller.api.errors import HttpRefusal
from quorate.controller.api.models import Nothing
from quorate.controller.api.request_ids import request_id_of
from quorate.controller.api.tls_contexts import TlsContexts
from quorate.controller.api.tls_entrance import NO_CERTIFICATE, Handshake
from quorate.controller.connections.bodies import Bodies
from quorate.controller.connections.body_turns import bytes_at_once
from quorate.controller.connections.gate import SWEEP_SHARE, Gate, GateLimits
from quorate.controller.connections.head_lengths import HEAD_END
from quorate.controller.connections.http_counts import HttpCounts
from quorate.controller.connections.places import NoPlace
from quorate.controller.decisions.origin import ORIGIN
from quorate.controller.engine.marks import MARKS
from quorate.controller.http.answer_frames import AnswerFrames
from quorate.controller.http.callers import origin_of
from quorate.controller.http.dispatch import REQUEST_ID, SOME_FAILED, encode, item_results, run_route
from quorate.controller.http.failures import failure_answer
from quorate.controller.http.ports import Node
from quorate.controller.http.request_heads import RequestHead, RequestHeads
from quorate.controller.http.routing import Call, Route
from quorate.controller.identity.claims import NoAccess
from quorate.controller.identity.other_ends import OtherEnd, other_end
from quorate.controller.logs.refusals import refused_request
from quorate.controller.permissions.rights import Rights
from quorate.controller.quotas.connections import ConnectionRates
from quorate.metadata_log.errors import ApiError, Overloaded
from quorate.metadata_log.peer_certificates import PeerCertificate

#: Bytes of a request up to its body: above them the framework takes it, piece by piece.
_HEAD_BYTES_MAX: Final = 4_096


class ExpressLane:
    """Makes the protocol of each connection, and knows them all."""

    def __init__(
        self,
        node: Node,
        routes: Sequence[Route],
        framework: Callable[[], asyncio.Protocol],
        bodies: Bodies,
        counts: HttpCounts,
        idle_s: float,
        *,
        tls: TlsContexts | None = None,
        wants_certificates: bool = False,
    ) -> None:
        """``framework`` makes the protocol that takes over a connection. ``bodies``: those of the requests there, too,
        and so are ``counts``.

        ``tls``: that is spoken; None: none is.

        ``wants_certificates``: who shows none is told so at his first request, for a handshake says nothing.

        ``idle_s``: a connection on which nothing was asked for so long is closed, at the latest a twentieth later. For
        how many connections there is place, and how long a request's head may take, ``node.limits`` say.
        """
        self.node = node
        self.wants_certificates = wants_certificates
        self.framework = framework
        self.bodies = bodies
        self.counts = counts
        self.connections: set[ExpressConnection] = set()
        self.heads = RequestHeads(node, routes)
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
        self._head: RequestHead | None = None
        #: Answers bodies that follow this head and are nearly as the last one was: see ``Route.repeated``.
        self._repeated: Callable[[bytes], BaseModel | None] | None = None
        #: Answers the request that is under way.
        self.task: asyncio.Task[None] | None = None
        #: When something was asked for or answered last, by the loop's clock.
        self.used_at = lane.clock()
        self.has_asked = False
        #: When the request came that is answered, by ``perf_counter``: the loop's clock stands still within a turn.
        self._begun = 0.0
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
        self._lane.gate.unread.end(self)

    def pause_writing(self) -> None:
        # A client that does not read its answers is not heard either.
        self.transport.pause_reading()
        self._lane.gate.begin_unread(self)

    def resume_writing(self) -> None:
        self._lane.gate.unread.end(self)
        if self.task is None:
            self.transport.resume_reading()

    def data_received(self, data: bytes) -> None:
        opened_at, self.used_at, self._begun = self.used_at, self._lane.clock(), time.perf_counter()
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
            head = lane.heads.read(data[:end], self._end)
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
        if route.is_write and lane.node.cluster.counters().standstills.just_ended(time.monotonic()):
            return False  # where it is refused
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
            work = self._run(head, rights, request_id_of(head.request_id), model, self._begun)
            self.task = asyncio.get_running_loop().create_task(work)
            self.task.add_done_callback(lambda _: room.release())
            lane.gate.places.begin(self)
        else:
            self._answer_at_once(head, reply)
            if route.repeated is not None and head.media == MSGPACK:
                self._repeated = route.repeated(lane.node, model, body)
        return True

    def _answer_at_once(self, head: RequestHead, reply: BaseModel) -> None:
        request_id = request_id_of(head.request_id)
        self.transport.write(self._lane.frames.answer_at_once(head.route, request_id, reply, head.media))
        self._lane.counts.note_answer(head.name, time.perf_counter() - self._begun)

    async def _run(self, head: RequestHead, rights: Rights, request_id: str, model: Any, begun: float) -> None:
        REQUEST_ID.set(request_id)
        origin = origin_of(head.caller, request_id, rights.grounds)
        ORIGIN.set(origin)
        route, media, node = head.route, head.media, self._lane.node
        marks = None if node.traces is None else node.traces.begin("")
        MARKS.set(marks)
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
            self._lane.counts.note_failure(error)
            media = JSON
        self.task = None
        self.used_at = self._lane.clock()
        self._lane.gate.places.end(self, self.used_at)
        if not self.transport.is_closing():
            self.transport.write(self._lane.frames.answer(route, request_id, status, data, media, retry_after_s))
        self._lane.counts.note_answer(head.name, time.perf_counter() - begun)
        if node.traces is not None and marks is not None:
            node.traces.end(marks, head.name, status, request_id)
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
