"""From a request to an answer: what every route has in common, by what its row says."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Awaitable, Callable, Iterator
from contextvars import ContextVar
from dataclasses import replace
from functools import partial
from typing import Final, TypeVar

import aiohttp
from aiohttp import web
from pydantic import BaseModel

from quorate.controller.api import headers
from quorate.controller.api.content import (
    JSON,
    MSGPACK,
    body_media,
    decode_body,
    decode_parameters,
    is_large,
    json_in_pieces,
    pack,
    read_body,
)
from quorate.controller.api.errors import THROTTLE_TIME_MS, HttpRefusal
from quorate.controller.api.models import MomentParameters, Nothing, ReadParameters, ViewParameters
from quorate.controller.connections.bodies import Bodies, HeldBody
from quorate.controller.connections.body_turns import BodyTurns, bytes_at_once
from quorate.controller.connections.http_counts import HttpCounts
from quorate.controller.decisions.origin import ORIGIN
from quorate.controller.decisions.precondition import PRECONDITION
from quorate.controller.http.callers import CALLER, STANDING, origin_of, rights_here
from quorate.controller.http.expected_facts import precondition_of
from quorate.controller.http.forward_line import ForwardedKind, ForwardLine
from quorate.controller.http.forwarding import active_peer, forward
from quorate.controller.http.ports import Node
from quorate.controller.http.read_only_node import node_at
from quorate.controller.http.routing import Call, Route, Serving
from quorate.controller.identity.claims import NoAccess
from quorate.controller.identity.identity import Caller
from quorate.controller.logs.refusals import asked_by
from quorate.controller.permissions.permission import Open
from quorate.controller.protocol import ItemResult
from quorate.metadata_log.errors import ApiError, ErrorCode, NotController, OutcomeUnknown
from quorate.snapshots.checkpoints.moments import Moment, parse_moment

T = TypeVar("T")

NODE_KEY: Final = web.AppKey("node", Node)
#: Name of the request that this task answers.
REQUEST_ID: Final = ContextVar("request_id", default="")
SESSION_KEY: Final = web.AppKey("session", aiohttp.ClientSession)
LINES_KEY: Final = web.AppKey("lines", dict[ForwardedKind, ForwardLine])
BODIES_KEY: Final = web.AppKey("bodies", Bodies)
TURNS_KEY: Final = web.AppKey("turns", BodyTurns)
COUNTS_KEY: Final = web.AppKey("counts", HttpCounts)

#: What requests count as that are none of the table's.
NO_ROUTE: Final = "none"

#: The read that a request makes, which is written down when its answer begins.
READ_KEY: Final = web.RequestKey("read", Route)

#: What a handler may take beyond the client's time before it is given up: its own deadlines should come first.
_GRACE_MS: Final = 500.0
#: A view of the cluster is wanted at once: an active controller that does not answer by then is not waited for.
_VIEW_MS: Final = 500.0
#: ... and of the client's time no more than this: in the rest this node gives its own.
_VIEW_SHARE: Final = 0.5
#: Of the time for a request that is passed on, what it may wait for its turn.
_TURN_SHARE: Final = 0.5

#: Bytes of the largest body that is taken from whoever has not shown who it is: some hundred things to be refused.
_STRANGERS_BODY_BYTES_MAX: Final = 8_192

#: Status of an answer to a request of whose items some were refused.
SOME_FAILED: Final = 207

_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def make_handler(route: Route) -> _Handler:
    """The aiohttp handler of a row."""

    async def handle(request: web.Request) -> web.StreamResponse:
        node = request.app[NODE_KEY]
        parameters = decode_parameters(route.parameters, request.match_info, request.query.items())
        caller = CALLER.get()
        if route.is_raw or caller is None:
            return await _answer_raw(route, node, parameters, request)
        if route.is_write:
            _require_awake(node)
        ends_at = _now_ms() + timeout_of(route, request.headers.get(headers.TIMEOUT_MS), node)
        media = body_media(request, route.media) if route.has_body else route.media[0]
        owner = node.access.owner_of_body(caller)
        with request.app[BODIES_KEY].held(owner) as room:
            if route.has_body and not _passes_on(route, parameters, node):
                route.permission.check_caller(node.access.rights(caller))
            body = await _read(route, request, node, caller, room)
            _check_sealed(caller, body)
            forwarded = await _maybe_forward(route, request, parameters, body, caller, _left_ms(ends_at))
            if forwarded is not None:
                if not route.is_write:  # who asks is this node's to find out; what he may, the other one has looked at
                    STANDING.get().check(lambda rights: None)
                return forwarded
            model = await _decode(route, request, body, media, owner, ends_at)
            rights = node.access.rights(caller)
            ORIGIN.set(origin_of(caller, REQUEST_ID.get(), rights.grounds))
            PRECONDITION.set(precondition_of(request, rights, parameters, model))
            reply = await run_route(route, Call(node, _left_ms(ends_at), rights), parameters, model)
            if not route.is_write:  # it may have waited; what is written is told
                STANDING.get().check(partial(route.permission.check, body=model))
                request[READ_KEY] = route
        if not (route.is_write or route.is_bulk) and media == JSON and is_large(reply):
            made = await Call(node, _left_ms(ends_at), rights).on_thread(partial(json_in_pieces, reply))
            return web.Response(body=made, content_type=media)
        status, data = encode(reply, media, is_bulk=route.is_bulk)
        if status == SOME_FAILED:
            asked = asked_by(request, origin_of(caller, REQUEST_ID.get()), REQUEST_ID.get())
            node.refusals.note_items(asked, item_results(reply))
        return web.Response(status=status, body=data, content_type=media)

    return handle


def _require_awake(node: Node) -> None:
    """Refuse what may have been sent to a process that was frozen, hours ago: whoever sent it was told that he may look
    whether it was done, and has seen that it was not.

    Raises:
        NotController: the process has just begun to run again.
    """
    stood_s = node.cluster.counters().standstills.just_ended(time.monotonic())
    if stood_s:
        raise NotController(
            None,
            f"this controller stood still for {stood_s:.1f} s until now: a change may have been sent to it before that "
            "ended, and is not made; send it again",
        )


async def _answer_raw(route: Route, node: Node, parameters: BaseModel, request: web.Request) -> web.StreamResponse:
    if not isinstance(route.permission, Open):
        route.permission.check(rights_here(node), None)
        request[READ_KEY] = route
    answer: web.StreamResponse = await route.handler(node, parameters, request)
    return answer


def _now_ms() -> float:
    return asyncio.get_running_loop().time() * 1000


def _left_ms(ends_at: float) -> float:
    """The rest of the time of a request that nothing was done about, in ms.

    Raises:
        ApiError: REQUEST_TIMED_OUT, nothing is left.
    """
    left_ms = ends_at - _now_ms()
    if left_ms <= 0:
        message = f"the time for this request was over {-left_ms:.0f} ms before it was begun: nothing was done"
        raise ApiError(ErrorCode.REQUEST_TIMED_OUT, message)
    return left_ms


async def _decode(
    route: Route, request: web.Request, body: bytes, media: str, owner: str | None, ends_at: float
) -> BaseModel:
    if not route.has_body:
        return Nothing()
    if len(body) <= bytes_at_once(owner):
        return decode_body(route.body, body, media)
    work = _decode_in_turn(route, request, body, media, owner)
    return await _bounded(work, _left_ms(ends_at), "waiting for the turn of this body", is_write=False)


async def _decode_in_turn(route: Route, request: web.Request, body: bytes, media: str, owner: str | None) -> BaseModel:
    async with request.app[TURNS_KEY].turn(owner):
        if request.transport is None:
            raise ConnectionResetError("nobody waits for the answer any more")
        return decode_body(route.body, body, media)


def _check_sealed(caller: Caller, body: bytes) -> None:
    if caller.body_digest is not None and hashlib.sha256(body).digest() != caller.body_digest:
        raise NoAccess(401, "the body is not the one that this request was sealed with")


async def _read(route: Route, request: web.Request, node: Node, caller: Caller, room: HeldBody) -> bytes:
    if not route.has_body:
        if request.can_read_body and (request.content_length or await request.content.read(1)):
            raise HttpRefusal(400, f"{route.method} {route.path} takes no body")
        return b""
    most = route.body_bytes_max(node.limits.body_bytes_max)
    most = most if caller.is_proved else min(most, _STRANGERS_BODY_BYTES_MAX)
    work = read_body(request, most, room.grow)
    return await _bounded(work, node.limits.read_timeout_ms, "reading the body", is_write=False)


def timeout_of(route: Route, text: str | None, node: Node) -> float:
    """The time that the client waits, in ms, by its header, within the node's limit.

    Raises:
        HttpRefusal: the header is no number of milliseconds.
    """
    limits = node.limits
    longest = limits.read_timeout_ms if route.method == "GET" else limits.request_timeout_ms
    if text is None:
        return longest
    if not text.isascii() or not text.isdigit() or len(text) > 9 or int(text) == 0:
        raise HttpRefusal(400, f"header {headers.TIMEOUT_MS} must be a number of milliseconds, not {text[:20]!r}")
    return min(int(text), longest)


async def _maybe_forward(
    route: Route,
    request: web.Request,
    parameters: BaseModel,
    body: bytes,
    caller: Caller,
    timeout_ms: float,
) -> web.Response | None:
    """The active controller's answer, None where this node is to answer itself."""
    node = request.app[NODE_KEY]
    if not _passes_on(route, parameters, node):
        return None
    is_view = route.serving is Serving.VIEW
    limit_ms = min(timeout_ms + _GRACE_MS, node.limits.forward_timeout_ms)
    limit_ms = min(limit_ms, timeout_ms * _VIEW_SHARE, _VIEW_MS) if is_view else limit_ms
    ends_at = asyncio.get_running_loop().time() + limit_ms / 1000
    try:
        active_peer(node, caller.hops)  # where there is none, nobody waits for a turn
        async with request.app[LINES_KEY][ForwardedKind.of(route)].place(limit_ms / 1000 * _TURN_SHARE):
            return await forward(
                request.app[SESSION_KEY],
                node,
                active_peer(node, caller.hops),
                request,
                body,
                caller=caller,
                request_id=REQUEST_ID.get(),
                is_write=route.is_write,
                ends_at=ends_at,
            )
    except (NotController, ApiError):
        # Whoever asks for a view wants to see what is wrong, not that something is: this node says what it knows.
        if is_view:
            return None
        raise


def _passes_on(route: Route, parameters: BaseModel, node: Node) -> bool:
    return _wants_active(route, parameters) and not node.controller.is_active


def _wants_active(route: Route, parameters: BaseModel) -> bool:
    if route.serving is Serving.CONSISTENT:
        return isinstance(parameters, ReadParameters) and parameters.consistency == "linearizable"
    if route.serving is Serving.VIEW:
        is_local = isinstance(parameters, ViewParameters) and parameters.local
        return not is_local and _moment_of(parameters) is None
    return route.serving is Serving.ACTIVE


def _moment_of(parameters: BaseModel) -> Moment | None:
    """Of which old state the answer is wanted; None: of the newest."""
    text = parameters.at if isinstance(parameters, MomentParameters) else None
    return None if text is None else parse_moment(text)


async def run_route(route: Route, call: Call, parameters: BaseModel, body: BaseModel) -> BaseModel:
    """The reply of the route's handler, within the client's time."""
    work = _run(route, call, parameters, body)
    what = f"{route.method} {route.path}"
    return await _bounded(work, call.timeout_ms + _GRACE_MS, what, is_write=route.is_write)


async def _run(route: Route, call: Call, parameters: BaseModel, body: BaseModel) -> BaseModel:
    route.permission.check(call.rights, body)
    moment = _moment_of(parameters)
    if moment is not None:
        past = call.node.past
        image = await past.at(moment)
        call = replace(call, node=node_at(call.node, image, past.leader_of(image.provenance.epoch)))
    reply: BaseModel = await route.handler(call, parameters, body)
    return reply


async def _bounded(work: Awaitable[T], limit_ms: float, what: str, *, is_write: bool) -> T:
    """The result of ``work``. Over the limit it is given up: a read timed out, a write's outcome is unknown."""
    limit = asyncio.timeout(limit_ms / 1000)
    try:
        async with limit:
            return await work
    except TimeoutError as error:
        if not limit.expired():
            raise
        message = f"{what} took longer than {limit_ms:.0f} ms"
        if is_write:
            raise OutcomeUnknown(f"{message}: read before repeating it") from error
        raise ApiError(ErrorCode.REQUEST_TIMED_OUT, message) from error


def encode(reply: BaseModel, media: str, *, is_bulk: bool = False) -> tuple[int, bytes]:
    """Status and body of an answer: 200, or 207 where some of several things failed.

    Raises:
        ApiError: the only thing that was asked for failed.
    """
    status = 200
    if is_bulk:
        results = list(item_results(reply))
        failed = [result for result in results if result.error_code is not ErrorCode.NONE]
        if failed and len(results) == 1:
            code, throttle_time_ms = failed[0].error_code, getattr(reply, THROTTLE_TIME_MS, 0)
            is_throttled = code is ErrorCode.THROTTLING_QUOTA_EXCEEDED
            details = {THROTTLE_TIME_MS: throttle_time_ms} if is_throttled else {}
            raise ApiError(code, failed[0].error_message or code.name, details)
        status = SOME_FAILED if failed else 200
    return status, pack(reply) if media == MSGPACK else reply.model_dump_json().encode()


def item_results(reply: BaseModel) -> Iterator[ItemResult]:
    """The outcomes in a reply, one for each thing that was asked for."""
    if isinstance(reply, ItemResult):
        yield reply
        return
    for name in type(reply).model_fields:
        value = getattr(reply, name)
        if isinstance(value, list):
            for item in value:
                if isinstance(item, BaseModel):
                    yield from item_results(item)
