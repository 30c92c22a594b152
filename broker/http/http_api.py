"""A broker process's HTTP API, on loopback: reads of its image and of itself, and what other broker processes say.

Nothing of the cluster can be changed through it: changes go to the controllers. Who may do what: see ``http.access``.
"""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import Awaitable, Callable
from functools import partial
from http import HTTPStatus
from importlib import import_module
from typing import Final, NamedTuple, TypeVar

import structlog
from aiohttp import web
from pydantic import BaseModel

from quorate.broker.host import BrokerHost
from quorate.broker.http.access import HttpAccess
from quorate.broker.http.arrivals import Arrivals
from quorate.broker.http.certificate import OwnCertificate
from quorate.broker.http.permissions import PERMISSIONS
from quorate.broker.http.replies import (
    Cordoned,
    DirectoryFailure,
    ImageReply,
    ImageTopicReply,
    ImageTopicsReply,
    LivenessReply,
    ProcessReply,
    ReadinessReply,
    RehearsalPace,
    TopicPageParameters,
)
from quorate.broker.http.requests import body_of, check_form, from_json, parameters_of
from quorate.broker.http.views import (
    broker_reply,
    directories_reply,
    image_reply,
    process_reply,
    rehearsal_reply,
    topic_reply,
    topics_reply,
)
from quorate.broker.lifecycle.identity import Endpoint
from quorate.broker.lifecycle.session import BrokerSession
from quorate.broker.metadata.topics_by_name import TopicsByName
from quorate.broker.replicas.messages import MalformedMessage
from quorate.broker.replicas.peers import FOLLOW_PATH, MSGPACK
from quorate.broker.replicas.rehearsal import RehearsalReplicas
from quorate.broker.replicas.stand_in import Pace
from quorate.controller.api import headers
from quorate.controller.api.errors import HttpRefusal, error_reply, retry_after_s, status_of
from quorate.controller.api.models import Nothing, OffsetDigestParameters
from quorate.controller.api.request_ids import request_id_of
from quorate.controller.api.resources import DigestReply
from quorate.controller.api.tls_contexts import TlsContexts
from quorate.controller.api.tls_entrance import NO_CERTIFICATE, peer_certificate
from quorate.controller.connections.framework_connection import connection_of, mark_answering
from quorate.controller.connections.framework_handler import FrameworkHandler
from quorate.controller.connections.http_counts import SERVER_LIMITS, HttpCounts
from quorate.controller.connections.listening import IDLE_S, ListeningPort
from quorate.controller.connections.places import NoPlace
from quorate.controller.identity.claims import NoAccess, RequestClaims
from quorate.controller.identity.other_ends import claims_of
from quorate.controller.identity.wrong_tokens import WrongTokens
from quorate.controller.permissions.permission import Open, Permission
from quorate.controller.permissions.rights import Rights
from quorate.controller.permissions.topics import check_described, shown_topics
from quorate.controller.reads.read_turns import ReadTurns
from quorate.metadata_log.errors import ApiError, ErrorCode, QuorateError
from quorate.metadata_log.ids import uuid_text
from quorate.metadata_log.loopback import is_loopback
from quorate.metadata_log.standstills import Standstills
from quorate.snapshots.digest_form import DIGEST_FORM

log = structlog.get_logger(__name__)

_JSON: Final = "application/json"
_BROKER_ID: Final = re.compile(r"[0-9]{1,10}")
_BACKLOG: Final = 64
_RIGHTS: Final = web.RequestKey("rights", Rights)
_METRICS: Final = "text/plain; version=0.0.4; charset=utf-8"

T = TypeVar("T")

_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class HttpAddressTaken(QuorateError):
    """The address to listen on cannot be had."""


class ServedTls(NamedTuple):
    """The TLS that is spoken with who connects."""

    contexts: TlsContexts
    #: Whether who shows no certificate is refused.
    wants_certificates: bool
    own: OwnCertificate


class BrokerHttp:
    """The API over one host. Use ``start`` and ``stop``."""

    def __init__(self, host: BrokerHost, access: HttpAccess) -> None:
        self._host = host
        self._access = access
        self._tls: ServedTls | None = None
        self._listener: ListeningPort | None = None
        self._arrivals: Arrivals | None = None
        self._digests = host.digests
        #: Of the loop, where this process is all that runs on it.
        self.standstills = Standstills()
        self._names = TopicsByName()
        self._counts = HttpCounts(SERVER_LIMITS)
        self._turns = ReadTurns()
        self._wrong_tokens = WrongTokens(lambda: time.monotonic() * 1000)
        app = web.Application(
            middlewares=[mark_answering, self._count, self._answer_errors, _check_host, self._check_certificate]
        )
        app.on_response_prepare.append(_say_what_it_is)
        for method, path, handler in (
            ("GET", "/v1/process", self._process),
            ("GET", "/v1/image", self._image),
            ("GET", "/v1/image/digest", self._digest),
            ("GET", "/v1/rehearsal", self._rehearsal),
            ("PUT", "/v1/rehearsal", self._set_rehearsal),
            ("GET", "/v1/brokers/{id}/directories", self._directories),
            ("POST", "/v1/brokers/{id}/directories/fail", self._fail_directory),
            ("PUT", "/v1/brokers/{id}/directories/cordoned", self._cordon),
            ("POST", FOLLOW_PATH, self._follow),
            ("GET", "/v1/topics", self._topics),
            ("GET", "/v1/topics/{name}", self._topic),
            ("GET", "/metrics", self._metrics),
            ("GET", "/livez", self._livez),
            ("GET", "/readyz", self._readyz),
        ):
            app.router.add_route(method, path, self._guarded(PERMISSIONS[method, path], handler))
        self.app = app
        self._runner = web.AppRunner(app, shutdown_timeout=1.0)

    async def start(self, host: str, port: int, tls: ServedTls | None = None) -> Endpoint:
        """Listen. Returns where; port 0 asks for any free one.

        ``tls``: None: none is spoken.

        Raises:
            HttpAddressTaken: the address cannot be listened on.
        """
        self._tls = tls
        await self._runner.setup()
        assert self._runner.server is not None, "it is set up"
        http = self._host.settings.http
        contexts, head_s = None if tls is None else tls.contexts, http.head_timeout_ms / 1000
        framework = partial(FrameworkHandler, self._runner.server, IDLE_S)
        self._arrivals = Arrivals(framework, http, contexts, self._counts)
        try:
            self._listener = await ListeningPort.open(self._arrivals, host, port, _BACKLOG, contexts, head_s)
        except OSError as error:
            await self.stop()
            reason = os.strerror(error.errno) if error.errno else str(error)
            raise HttpAddressTaken(f"{host}:{port} cannot be listened on: {reason}") from error
        log.info("http.listening", host=host, port=self._listener.port)
        return Endpoint(host, self._listener.port)

    async def stop(self) -> None:
        """Answer what is being answered, and close."""
        if self._listener is not None:
            await self._listener.close()
        if self._arrivals is not None:
            self._arrivals.close()
        await self._runner.cleanup()

    @property
    def connections_refused(self) -> int:
        """Connections that were refused, or closed for others, since it listens."""
        return 0 if self._arrivals is None else self._arrivals.refused

    @web.middleware
    async def _count(self, request: web.Request, handler: _Handler) -> web.StreamResponse:
        begun = time.perf_counter()
        answer = await handler(request)
        resource = request.match_info.route.resource
        route = "none" if resource is None else f"{request.method} {resource.canonical}"
        self._counts.note_answer(route, time.perf_counter() - begun)
        return answer

    @web.middleware
    async def _answer_errors(self, request: web.Request, handler: _Handler) -> web.StreamResponse:
        try:
            return await handler(request)
        except ApiError as error:
            return self._refused(request, error)
        except web.HTTPException as error:
            message = f"{request.method} {request.path}: {error.reason}"
            return self._refused(request, HttpRefusal(error.status, message, ErrorCode.RESOURCE_NOT_FOUND))

    def _refused(self, request: web.Request, error: ApiError) -> web.Response:
        self._counts.note_failure(error)
        request_id = request_id_of(request.headers.get(headers.REQUEST_ID, ""))
        answer = _answer(error_reply(error, request_id), status_of(error))
        if answer.status == HTTPStatus.TOO_MANY_REQUESTS:
            answer.headers["Retry-After"] = str(retry_after_s(error))
        if isinstance(error, NoPlace | NoAccess):
            answer.force_close()
        return answer

    @web.middleware
    async def _check_certificate(self, request: web.Request, handler: _Handler) -> web.StreamResponse:
        if self._tls is not None and self._tls.wants_certificates and peer_certificate(request) is None:
            raise NoAccess(401, NO_CERTIFICATE)
        return await handler(request)

    def _guarded(self, permission: Permission, handler: _Handler) -> _Handler:
        """The handler for those who have the permission of its route."""

        async def handle(request: web.Request) -> web.StreamResponse:
            claims = claims_of(request)
            rights = request[_RIGHTS] = self._rights(claims, permission)
            connection = connection_of(request)
            if rights.caller.is_proved and not isinstance(permission, Open) and connection is not None:
                connection.prove(self._access.owner_of_connection(rights.caller))
            answer = await handler(request)
            if request.method == "GET":
                # It may have waited for what it tells, and whoever asked may have lost the right meanwhile.
                self._access.rights(claims, permission)
            return answer

        return handle

    def _rights(self, claims: RequestClaims, permission: Permission) -> Rights:
        try:
            return self._access.rights(claims, permission)
        except NoAccess as error:
            raise self._wrong_tokens.told(error, claims.field("Authorization"), claims.address) from None

    async def _process(self, request: web.Request) -> web.Response:
        parameters_of(Nothing, request)
        reply: ProcessReply = process_reply(self._host)
        return _answer(reply)

    async def _image(self, request: web.Request) -> web.Response:
        parameters_of(Nothing, request)
        # Counting a million partitions takes a while, and the image is a value.
        work = partial(image_reply, self._host.cache.image, self._host.loader.cluster_id)
        reply: ImageReply = await self._on_thread(request, work)
        return _answer(reply)

    async def _digest(self, request: web.Request) -> web.Response:
        parameters = parameters_of(OffsetDigestParameters, request)
        offset, digest = await self._digests.at(parameters.offset, parameters.wait_ms)
        return _answer(DigestReply(state_offset=offset, digest=digest, form=DIGEST_FORM))

    async def _topics(self, request: web.Request) -> web.Response:
        parameters = parameters_of(TopicPageParameters, request)
        is_shown = shown_topics(request[_RIGHTS], "DESCRIBE")
        # A hundred thousand names may be asked about, and a topic have ten thousand partitions.
        work = partial(topics_reply, self._names, self._host.cache.image, parameters, is_shown)
        reply: ImageTopicsReply = await self._on_thread(request, work)
        return _answer(reply)

    async def _topic(self, request: web.Request) -> web.Response:
        parameters_of(Nothing, request)
        name = request.match_info["name"]
        check_described(request[_RIGHTS], name)
        reply: ImageTopicReply = await self._on_thread(request, partial(topic_reply, self._host.cache.still(), name))
        return _answer(reply)

    async def _on_thread(self, request: web.Request, work: Callable[[], T]) -> T:
        """The result of work that takes long where the image is large, when whoever asks has his turn."""
        return await self._turns.run(request[_RIGHTS].owner, work)

    async def _follow(self, request: web.Request) -> web.Response:
        check_form(request, MSGPACK)
        rights = request[_RIGHTS]
        try:
            answer = self._require_rehearsal().take(await body_of(request), partial(rights.need_node, "broker"))
        except MalformedMessage as error:
            raise ApiError(ErrorCode.INVALID_REQUEST, str(error)) from error
        return web.Response(body=answer, content_type=MSGPACK)

    async def _rehearsal(self, request: web.Request) -> web.Response:
        parameters_of(Nothing, request)
        return _answer(rehearsal_reply(self._require_rehearsal()))

    async def _set_rehearsal(self, request: web.Request) -> web.Response:
        check_form(request, _JSON)
        rehearsal = self._require_rehearsal()
        wanted = await from_json(RehearsalPace, request)
        rehearsal.set_pace(Pace(wanted.copy_bytes_per_s, wanted.is_stalled))
        return _answer(rehearsal_reply(rehearsal))

    async def _directories(self, request: web.Request) -> web.Response:
        parameters_of(Nothing, request)
        return _answer(directories_reply(self._require_broker(request)))

    async def _fail_directory(self, request: web.Request) -> web.Response:
        check_form(request, _JSON)
        rehearsal, session = self._require_rehearsal(), self._require_broker(request)
        wanted = (await from_json(DirectoryFailure, request)).directory
        broker_id, failed = session.identity.broker_id, session.failed_directories
        whole = [one for one in session.identity.directories if one not in failed]
        if not whole or (wanted is not None and wanted not in whole):
            named = f"directory {uuid_text(wanted)}" if wanted is not None else "directory"
            raise ApiError(
                ErrorCode.RESOURCE_NOT_FOUND,
                f"broker {broker_id} has no whole {named}; whole are: {', '.join(map(uuid_text, whole)) or 'none'}",
            )
        rehearsal.directory_failed(broker_id, whole[0] if wanted is None else wanted)
        return _answer(directories_reply(session))

    async def _cordon(self, request: web.Request) -> web.Response:
        check_form(request, _JSON)
        session = self._require_broker(request)
        wanted = (await from_json(Cordoned, request)).directories
        own = session.identity.directories
        for unknown in wanted:
            if unknown not in own:
                raise ApiError(
                    ErrorCode.RESOURCE_NOT_FOUND,
                    f"broker {session.identity.broker_id} has no directory {uuid_text(unknown)}; "
                    f"it has: {', '.join(map(uuid_text, own))}",
                )
        session.cordon(wanted)
        return _answer(directories_reply(session))

    def _require_broker(self, request: web.Request) -> BrokerSession:
        text = request.match_info["id"]
        number = int(text) if _BROKER_ID.fullmatch(text) else -1
        session: BrokerSession | None = self._host.sessions.get(number)
        if session is None:
            played = ", ".join(map(str, sorted(self._host.sessions))) or "none yet"
            raise ApiError(
                ErrorCode.RESOURCE_NOT_FOUND, f"broker {text[:100]} is not played here; played are: {played}"
            )
        return session

    def _require_rehearsal(self) -> RehearsalReplicas:
        rehearsal = self._host.rehearsal
        if rehearsal is None:
            raise ApiError(ErrorCode.RESOURCE_NOT_FOUND, "a service keeps the replicas here: there is no rehearsal")
        return rehearsal

    async def _metrics(self, request: web.Request) -> web.Response:
        parameters_of(Nothing, request)
        # Loaded by the first scrape, while the loop serves others: many processes are never scraped, and none while it
        # starts.
        await asyncio.to_thread(import_module, "quorate.broker.http.metrics")
        from quorate.broker.http.metrics import OwnFigures, host_metrics, render_metrics

        left_s = None if self._tls is None else self._tls.own.left_s
        own = OwnFigures(time.time() * 1000, left_s, self.connections_refused, self._counts, self.standstills)
        text = await asyncio.to_thread(render_metrics, host_metrics(self._host, own))
        answer = web.Response(body=text)
        answer.headers["Content-Type"] = _METRICS
        return answer

    async def _livez(self, request: web.Request) -> web.Response:
        parameters_of(Nothing, request)
        return _answer(LivenessReply(ok=True))

    async def _readyz(self, request: web.Request) -> web.Response:
        parameters_of(Nothing, request)
        is_ready = self._host.is_ready
        told = self._host.readiness() if request[_RIGHTS].may_on_cluster("DESCRIBE") else ()
        brokers = [broker_reply(readiness) for readiness in told]
        return _answer(ReadinessReply(ok=is_ready, brokers=brokers), status=200 if is_ready else 503)


async def _say_what_it_is(request: web.Request, answer: web.StreamResponse) -> None:
    answer.headers.popall("Server", None)  # the framework's version is nobody's business
    # By it clients know that this is the wrong port, where they look for a controller.
    answer.headers[headers.PROCESS] = "brokers"


def _answer(reply: BaseModel, status: int = 200) -> web.Response:
    return web.Response(status=status, body=reply.model_dump_json().encode(), content_type=_JSON)


@web.middleware
async def _check_host(request: web.Request, handler: _Handler) -> web.StreamResponse:
    """A web page could have its own name lead here, and read the answers; not under a name of this machine."""
    try:
        host = request.url.host or ""
    except ValueError:
        host = ""
    if not is_loopback(host):
        raise ApiError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, f"asked as {request.host[:100]!r}, not as loopback")
    return await handler(request)
