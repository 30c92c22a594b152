"""The aiohttp application: the routes of the table, and around each of them name, guard, errors and headers."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from http import HTTPStatus
from typing import Final

from aiohttp import web

from quorate.controller.api import headers
from quorate.controller.api.content import JSON
from quorate.controller.api.errors import HttpRefusal
from quorate.controller.api.request_ids import request_id_of
from quorate.controller.client.connection import make_session
from quorate.controller.connections.bodies import Bodies
from quorate.controller.connections.body_turns import BodyTurns
from quorate.controller.connections.framework_connection import connection_of
from quorate.controller.connections.http_counts import CONTROLLER_LIMITS, HttpCounts
from quorate.controller.connections.places import NoPlace
from quorate.controller.decisions.origin import ORIGIN
from quorate.controller.engine.failed_proofs import NOTHING
from quorate.controller.engine.marks import MARKS
from quorate.controller.http.answers import challenge_headers, is_refusal, node_headers, status_headers
from quorate.controller.http.callers import CALLER, STANDING, may_describe, origin_of
from quorate.controller.http.dispatch import (
    BODIES_KEY,
    COUNTS_KEY,
    LINES_KEY,
    NO_ROUTE,
    NODE_KEY,
    READ_KEY,
    REQUEST_ID,
    SESSION_KEY,
    TURNS_KEY,
    make_handler,
)
from quorate.controller.http.failures import failure_answer
from quorate.controller.http.forward_line import ForwardedKind, ForwardLine
from quorate.controller.http.openapi import DOCUMENT_KEY, Document
from quorate.controller.http.page.events import end_streams, streams_of
from quorate.controller.http.pages import check_page
from quorate.controller.http.ports import Node
from quorate.controller.http.routes.table import ROUTES
from quorate.controller.http.routing import Route
from quorate.controller.identity.claims import NoAccess
from quorate.controller.identity.other_ends import address_of, claims_of, sender_of
from quorate.controller.identity.seals import SCHEME
from quorate.controller.identity.wrong_tokens import WrongTokens
from quorate.controller.logs.refusals import asked_by
from quorate.controller.permissions.permission import Open
from quorate.controller.permissions.standing import StandingRight
from quorate.metadata_log.errors import ErrorCode

#: What whoever comes may ask without proving anything, as the route table has it.
_OPEN_PATHS_KEY: Final = web.AppKey("open_paths", frozenset[str])
_WRONG_TOKENS_KEY: Final = web.AppKey("wrong_tokens", WrongTokens)

#: Kinds of proofs, by the scheme of `Authorization`.
_SCHEMES: Final = {"bearer": "bearer", SCHEME.lower(): "seal"}

_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def make_app(node: Node, routes: Sequence[Route] = ROUTES) -> web.Application:
    """The application of one controller process."""
    app = web.Application(
        middlewares=[_name_request, _answer_errors, _guard],
        # Bodies are read, and bounded, by content.read_body: its refusal has our shape.
        client_max_size=0,
    )
    app[NODE_KEY] = node
    app[BODIES_KEY] = _bodies(node)
    app[COUNTS_KEY] = HttpCounts(CONTROLLER_LIMITS)
    app[TURNS_KEY] = BodyTurns()
    limits = node.limits
    app[LINES_KEY] = {kind: ForwardLine(limits.forwarded_at_once, limits.forward_waiting_max) for kind in ForwardedKind}
    app[DOCUMENT_KEY] = Document(routes)
    app[_WRONG_TOKENS_KEY] = WrongTokens(node.controller.scheduler.monotonic_ms)
    app[_OPEN_PATHS_KEY] = frozenset(route.path for route in routes if isinstance(route.permission, Open))
    app.on_response_prepare.extend((_add_headers, _note_read))
    app.cleanup_ctx.extend((_session, streams_of))
    app.on_shutdown.append(end_streams)
    for route in routes:
        for method in (route.method, "HEAD") if route.takes_head else (route.method,):
            app.router.add_route(method, route.path, make_handler(route), expect_handler=_leave_waiting)
    return app


def _bodies(node: Node) -> Bodies:
    def note_refused() -> None:
        node.cluster.counters().bodies_refused += 1

    return Bodies(node.limits.bodies_bytes_max, node.limits.body_bytes_max, note_refused)


async def _leave_waiting(request: web.Request) -> None:
    """A client that waits with its body is told to send it by who reads it, once it is known who asks."""


async def _session(app: web.Application) -> AsyncIterator[None]:
    async with make_session(seal=app[NODE_KEY].access.seal) as session:
        app[SESSION_KEY] = session
        yield


async def _add_headers(request: web.Request, answer: web.StreamResponse) -> None:
    answer.headers.setdefault(headers.REQUEST_ID, REQUEST_ID.get())
    # The cluster is told of to who is known, as clients are that look who is active; else to who may ask for it anyway.
    caller = CALLER.get()
    is_known = caller is not None and (caller.is_proved or may_describe(request.app[NODE_KEY]))
    is_told_all = is_known and not is_refusal(answer.status)
    said = node_headers(request.app[NODE_KEY], is_told_all=is_told_all)
    asked_for = challenge_headers(request.app[NODE_KEY], request.path, answer.status)
    for name, value in (*said, *asked_for):
        answer.headers.setdefault(name, value)
    answer.headers.popall("Server", None)  # the framework's version is nobody's business


async def _note_read(request: web.Request, answer: web.StreamResponse) -> None:
    """Write a read down that is answered and not refused, a stream at its begin: nobody knows when it will end."""
    route, caller = request.get(READ_KEY), CALLER.get()
    if route is not None and caller is not None and answer.status < HTTPStatus.BAD_REQUEST:
        request.app[NODE_KEY].reads.note(route.method, route.path, origin_of(caller, REQUEST_ID.get()))


@web.middleware
async def _name_request(request: web.Request, handler: _Handler) -> web.StreamResponse:
    begun = time.perf_counter()
    REQUEST_ID.set(request_id_of(request.headers.get(headers.REQUEST_ID, "")))
    traces = request.app[NODE_KEY].traces
    marks = None if traces is None else traces.begin(request.headers.get(headers.TRACE_PARENT, ""))
    MARKS.set(marks)
    answer = await handler(request)
    path = _path_of_route(request)
    route = f"{request.method} {path}" if path else NO_ROUTE
    request.app[NODE_KEY].cluster.counters().note_answer((route, answer.status))
    request.app[COUNTS_KEY].note_answer(route, time.perf_counter() - begun)
    if traces is not None and marks is not None:
        traces.end(marks, route, answer.status, REQUEST_ID.get())
    return answer


def _path_of_route(request: web.Request) -> str:
    """As the route table has it; empty where it has none."""
    resource = request.match_info.route.resource
    return "" if resource is None else resource.canonical


@web.middleware
async def _answer_errors(request: web.Request, handler: _Handler) -> web.StreamResponse:
    """Every failure becomes an error reply."""
    try:
        return await handler(request)
    except web.HTTPException as error:
        return _failure(request, _refusal(request, error))
    except ConnectionError:
        raise  # the client has gone: there is nobody to answer
    except Exception as error:  # noqa: BLE001 - the border: nothing of ours may leave as a stack trace
        return _failure(request, error)


def _failure(request: web.Request, error: Exception) -> web.Response:
    told = _told_without_access(request, error) if isinstance(error, NoAccess) else error
    status, body, retry_after_s = failure_answer(told, request.method, request.path, REQUEST_ID.get())
    noted = error.status if isinstance(error, NoAccess) else status
    request.app[NODE_KEY].refusals.note(asked_by(request, ORIGIN.get(), REQUEST_ID.get()), error, noted)
    request.app[COUNTS_KEY].note_failure(error)
    said = dict(status_headers(status, retry_after_s))
    answer = web.Response(status=status, body=body, content_type=JSON, headers=said)
    if isinstance(error, NoPlace | NoAccess):
        answer.force_close()
    return answer


def _told_without_access(request: web.Request, error: NoAccess) -> NoAccess:
    """The answer to somebody who may not ask, after it was counted."""
    node, address = request.app[NODE_KEY], address_of(request)
    now_ms = node.controller.scheduler.monotonic_ms()
    node.cluster.counters().failed_proofs.note(_shown(request), address, now_ms)
    return request.app[_WRONG_TOKENS_KEY].told(error, request.headers.get("Authorization", ""), address)


def _shown(request: web.Request) -> str:
    """The kind of proof that a request has, be it good or wrong."""
    scheme = request.headers.get("Authorization", "").partition(" ")[0].lower()
    if scheme:
        return _SCHEMES.get(scheme, "login" if scheme.startswith("scram-") else "other")
    return NOTHING if sender_of(request).certificate is None else "certificate"


def _refusal(request: web.Request, error: web.HTTPException) -> HttpRefusal:
    if error.status == 404:
        return HttpRefusal(404, f"there is nothing at {request.path}", ErrorCode.RESOURCE_NOT_FOUND)
    if isinstance(error, web.HTTPMethodNotAllowed):
        allowed = sorted(error.allowed_methods - {"HEAD"})
        message = f"{request.path} takes {', '.join(allowed)}, not {request.method}"
        return HttpRefusal(405, message, details={"allowed": allowed})
    return HttpRefusal(error.status, error.reason)


@web.middleware
async def _guard(request: web.Request, handler: _Handler) -> web.StreamResponse:
    CALLER.set(None)
    is_open = _path_of_route(request) in request.app[_OPEN_PATHS_KEY]
    claims = claims_of(request)
    try:
        check_page(request.host, request.headers.get("Origin", ""), request.headers.get("Sec-Fetch-Site", ""))
        access = request.app[NODE_KEY].access
        caller = access.identify(claims)
    except HttpRefusal:
        if not is_open:
            raise
        return await handler(request)
    CALLER.set(caller)
    STANDING.set(StandingRight(access, claims, caller))
    ORIGIN.set(origin_of(caller, REQUEST_ID.get()))
    if caller.is_proved and not is_open and (connection := connection_of(request)) is not None:
        connection.prove(request.app[NODE_KEY].access.owner_of_connection(caller))
    return await handler(request)
