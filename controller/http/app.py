"""The aiohttp application: the routes of the table, and around each of them name, guard, errors and headers."""

from __future__ import annotations

import hmac
import ipaddress
import re
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Final

import structlog
from aiohttp import web

from controller.connection import make_session
from controller.http import headers
from controller.http.content import JSON
from controller.http.dispatch import NODE_KEY, REQUEST_ID, SESSION_KEY, make_handler
from controller.http.errors import HttpRefusal, error_reply, status_of
from controller.http.openapi import DOCUMENT_KEY, Document
from controller.http.ports import Node
from controller.http.routes import ROUTES
from controller.http.routing import Route
from metadata_log.errors import ApiError, ErrorCode

log = structlog.get_logger()

_REQUEST_ID_FORM: Final = re.compile(r"[A-Za-z0-9._:-]{1,64}")
#: A `Host` header: a name or an address, perhaps with a port.
_HOST: Final = re.compile(r"(?:\[(?P<bracketed>[0-9A-Fa-f:.]+)\]|(?P<plain>[A-Za-z0-9.-]+))(?::[0-9]{1,5})?")
#: What an orchestrator may ask without the secret.
_OPEN_PATHS: Final = frozenset({"/livez", "/readyz"})

_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def make_app(node: Node, routes: Sequence[Route] = ROUTES) -> web.Application:
    """The application of one controller process."""
    app = web.Application(
        middlewares=[_name_request, _answer_errors, _guard],
        # Bodies are read, and bounded, by content.read_body: its refusal has our shape.
        client_max_size=0,
    )
    app[NODE_KEY] = node
    app[DOCUMENT_KEY] = Document(routes)
    app.on_response_prepare.append(_add_headers)
    app.cleanup_ctx.append(_session)
    for route in routes:
        app.router.add_route(route.method, route.path, make_handler(route))
    return app


async def _session(app: web.Application) -> AsyncIterator[None]:
    async with make_session() as session:
        app[SESSION_KEY] = session
        yield


async def _add_headers(request: web.Request, answer: web.StreamResponse) -> None:
    node = request.app[NODE_KEY]
    view = node.cluster.quorum()
    answer.headers.setdefault(headers.REQUEST_ID, REQUEST_ID.get())
    answer.headers.setdefault(headers.NODE, str(node.node_id))
    answer.headers.setdefault(headers.CLUSTER, node.cluster_id)
    answer.headers.setdefault(headers.ACTIVE, "" if view.leader_id is None else str(view.leader_id))
    answer.headers.setdefault(headers.EPOCH, str(view.epoch))
    answer.headers.setdefault(headers.HIGH_WATERMARK, str(view.high_watermark))


@web.middleware
async def _name_request(request: web.Request, handler: _Handler) -> web.StreamResponse:
    given = request.headers.get(headers.REQUEST_ID, "")
    REQUEST_ID.set(given if _REQUEST_ID_FORM.fullmatch(given) else secrets.token_hex(8))
    answer = await handler(request)
    resource = request.match_info.route.resource
    key = (f"{request.method} {resource.canonical}" if resource is not None else "none", answer.status)
    answers = request.app[NODE_KEY].cluster.counters().http_answers
    answers[key] = answers.get(key, 0) + 1
    return answer


@web.middleware
async def _answer_errors(request: web.Request, handler: _Handler) -> web.StreamResponse:
    """Every failure becomes an error reply; our own are logged under an incident id that the client is told."""
    try:
        return await handler(request)
    except ApiError as error:
        if error.code is ErrorCode.UNKNOWN_SERVER_ERROR:
            return _incident(request, error, error.message)
        return _error_answer(request, error)
    except web.HTTPException as error:
        return _error_answer(request, _refusal(request, error))
    except ConnectionError:
        raise  # the client has gone: there is nobody to answer
    except Exception as error:  # noqa: BLE001 - the border: nothing of ours may leave as a stack trace
        return _incident(request, error, "an internal error, which is in the node's log")


def _refusal(request: web.Request, error: web.HTTPException) -> HttpRefusal:
    if error.status == 404:
        return HttpRefusal(404, f"there is nothing at {request.path}", ErrorCode.RESOURCE_NOT_FOUND)
    if isinstance(error, web.HTTPMethodNotAllowed):
        allowed = sorted(error.allowed_methods - {"HEAD"})
        message = f"{request.path} takes {', '.join(allowed)}, not {request.method}"
        return HttpRefusal(405, message, details={"allowed": allowed})
    return HttpRefusal(error.status, error.reason)


def _error_answer(request: web.Request, error: ApiError, incident_id: str | None = None) -> web.Response:
    reply = error_reply(error, REQUEST_ID.get(), incident_id)
    return web.Response(status=status_of(error), body=reply.model_dump_json().encode(), content_type=JSON)


def _incident(request: web.Request, error: Exception, message: str) -> web.Response:
    incident_id = secrets.token_hex(8)
    log.error(
        "http.incident",
        incident_id=incident_id,
        request_id=REQUEST_ID.get(),
        method=request.method,
        path=request.path,
        exc_info=error,
    )
    return _error_answer(request, ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, message), incident_id)


@web.middleware
async def _guard(request: web.Request, handler: _Handler) -> web.StreamResponse:
    secret = request.app[NODE_KEY].shared_secret
    if request.path not in _OPEN_PATHS:
        if secret is not None:
            _check_secret(request, secret)
        else:
            _check_host(request)
    return await handler(request)


def _check_secret(request: web.Request, secret: bytes) -> None:
    given = request.headers.get("Authorization", "").encode("utf-8", "surrogateescape")
    if not hmac.compare_digest(given, b"Bearer " + secret):
        raise HttpRefusal(
            401, "the shared secret is missing or wrong: Authorization: Bearer", ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        )


def _check_host(request: web.Request) -> None:
    """Without a secret only this machine can connect; no web page in its browser may do so under its own name."""
    form = _HOST.fullmatch(request.host)
    host = "" if form is None else form["bracketed"] or form["plain"]
    try:
        ipaddress.ip_address(host)
    except ValueError:
        if host != "localhost":
            raise HttpRefusal(
                403,
                f"without a shared secret this node is asked as localhost or by its address, not as {host[:100]!r}",
                ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
            ) from None
