"""A broker process's HTTP API, on loopback: reads of its image and of itself, and what other broker processes say.

Nothing of the cluster can be changed through it: changes go to the controllers. What is said of replicas, and how the
rehearsal runs, is taken from whoever has the shared secret, or, without one, from programs on this machine.
"""

from __future__ import annotations

import asyncio
import hmac
import os
import re
import time
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

import structlog
from aiohttp import web
from pydantic import BaseModel, ValidationError

from quorate.broker.host import BrokerHost
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
from quorate.broker.replicas.messages import FRAME_BYTES_MAX, MalformedMessage
from quorate.broker.replicas.peers import FOLLOW_PATH, MSGPACK
from quorate.broker.replicas.rehearsal import RehearsalReplicas
from quorate.broker.replicas.stand_in import Pace
from quorate.controller.api import headers
from quorate.controller.api.errors import HttpRefusal, error_reply, status_of
from quorate.controller.api.kept_files import Secrets
from quorate.controller.api.models import Nothing, OffsetDigestParameters
from quorate.controller.api.request_ids import request_id_of
from quorate.controller.api.resources import DigestReply
from quorate.controller.api.tls_contexts import TlsContexts
from quorate.controller.api.tls_entrance import (
    NO_CERTIFICATE,
    OpenDoor,
    TlsEntrance,
    peer_certificate,
)
from quorate.metadata_log.errors import ApiError, ErrorCode, QuorateError
from quorate.metadata_log.ids import uuid_text
from quorate.metadata_log.loopback import is_loopback
from quorate.snapshots.digest import DIGEST_FORM

log = structlog.get_logger(__name__)

_JSON: Final = "application/json"
_BROKER_ID: Final = re.compile(r"[0-9]{1,10}")
_READ_BYTES: Final = 65_536
_LINGERING_S: Final = 1.0
_BACKLOG: Final = 128
_HANDSHAKE_S: Final = 10.0
_METRICS: Final = "text/plain; version=0.0.4; charset=utf-8"

P = TypeVar("P", bound=BaseModel)
_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class HttpAddressTaken(QuorateError):
    """The address to listen on cannot be had."""


class BrokerHttp:
    """The API over one host. Use ``start`` and ``stop``."""

    def __init__(self, host: BrokerHost, shared_secrets: Secrets | None = None) -> None:
        self._host = host
        self._secrets = shared_secrets
        self._wants_certificates = False
        self._entrance: TlsEntrance | None = None
        self._digests = host.digests
        app = web.Application(middlewares=[_answer_errors, _check_host, self._check_certificate])
        app.on_response_prepare.append(_say_no_software)
        app.add_routes([
            web.get("/v1/process", self._process),
            web.get("/v1/image", self._image),
            web.get("/v1/image/digest", self._digest),
            web.get("/v1/rehearsal", self._rehearsal),
            web.put("/v1/rehearsal", self._set_rehearsal),
            web.get("/v1/brokers/{id}/directories", self._directories),
            web.post("/v1/brokers/{id}/directories/fail", self._fail_directory),
            web.put("/v1/brokers/{id}/directories/cordoned", self._cordon),
            web.post(FOLLOW_PATH, self._follow),
            web.get("/v1/topics", self._topics),
            web.get("/v1/topics/{name}", self._topic),
            web.get("/metrics", self._metrics),
            web.get("/livez", self._livez),
            web.get("/readyz", self._readyz),
        ])  # fmt: skip
        self.app = app
        # What anybody sends is not inflated before it is known who sends it, and the rest of a body that nobody wants
        # is not taken for long.
        self._runner = web.AppRunner(
            app, access_log=None, shutdown_timeout=1.0, auto_decompress=False, lingering_time=_LINGERING_S
        )

    async def start(
        self, host: str, port: int, tls: TlsContexts | None = None, wants_certificates: bool = False
    ) -> Endpoint:
        """Listen. Returns where; port 0 asks for any free one.

        ``tls``: with which TLS is spoken; None: none is. ``wants_certificates``: who shows none is refused.

        Raises:
            HttpAddressTaken: the address cannot be listened on.
        """
        self._wants_certificates = wants_certificates
        await self._runner.setup()
        try:
            listened = await self._listen(host, port, tls)
        except OSError as error:
            await self._runner.cleanup()
            reason = os.strerror(error.errno) if error.errno else str(error)
            raise HttpAddressTaken(f"{host}:{port} cannot be listened on: {reason}") from error
        log.info("http.listening", host=host, port=listened)
        return Endpoint(host, listened)

    async def _listen(self, host: str, port: int, tls: TlsContexts | None) -> int:
        if tls is None:
            await web.TCPSite(self._runner, host, port).start()
            listened: int = self._runner.addresses[0][1]
            return listened
        assert self._runner.server is not None, "it is set up"
        door = OpenDoor(self._runner.server)
        self._entrance = await TlsEntrance.open(door, host, port, _BACKLOG, tls, _HANDSHAKE_S)
        return int(self._entrance.sockets[0].getsockname()[1])

    async def stop(self) -> None:
        """Answer what is being answered, and close."""
        if self._entrance is not None:
            await self._entrance.close()
        await self._runner.cleanup()

    @web.middleware
    async def _check_certificate(self, request: web.Request, handler: _Handler) -> web.StreamResponse:
        if self._wants_certificates and peer_certificate(request) is None:
            raise HttpRefusal(401, NO_CERTIFICATE, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        return await handler(request)

    async def _process(self, request: web.Request) -> web.Response:
        _parameters(Nothing, request)
        reply: ProcessReply = process_reply(self._host)
        return _answer(reply)

    async def _image(self, request: web.Request) -> web.Response:
        _parameters(Nothing, request)
        # In a thread: counting a million partitions takes a while, and the image is a value.
        reply: ImageReply = await asyncio.to_thread(image_reply, self._host.cache.image, self._host.loader.cluster_id)
        return _answer(reply)

    async def _digest(self, request: web.Request) -> web.Response:
        parameters = _parameters(OffsetDigestParameters, request)
        offset, digest = await self._digests.at(parameters.offset, parameters.wait_ms)
        return _answer(DigestReply(state_offset=offset, digest=digest, form=DIGEST_FORM))

    async def _topics(self, request: web.Request) -> web.Response:
        reply: ImageTopicsReply = topics_reply(self._host.cache, _parameters(TopicPageParameters, request))
        return _answer(reply)

    async def _topic(self, request: web.Request) -> web.Response:
        _parameters(Nothing, request)
        reply: ImageTopicReply = topic_reply(self._host.cache, request.match_info["name"])
        return _answer(reply)

    async def _follow(self, request: web.Request) -> web.Response:
        self._check_writer(request, MSGPACK)
        try:
            answer = self._require_rehearsal().take(await _body(request))
        except MalformedMessage as error:
            raise ApiError(ErrorCode.INVALID_REQUEST, str(error)) from error
        return web.Response(body=answer, content_type=MSGPACK)

    async def _rehearsal(self, request: web.Request) -> web.Response:
        _parameters(Nothing, request)
        return _answer(rehearsal_reply(self._require_rehearsal()))

    async def _set_rehearsal(self, request: web.Request) -> web.Response:
        self._check_writer(request, _JSON)
        rehearsal = self._require_rehearsal()
        wanted = await _from_json(RehearsalPace, request)
        rehearsal.set_pace(Pace(wanted.copy_bytes_per_s, wanted.is_stalled))
        return _answer(rehearsal_reply(rehearsal))

    async def _directories(self, request: web.Request) -> web.Response:
        _parameters(Nothing, request)
        return _answer(directories_reply(self._require_broker(request)))

    async def _fail_directory(self, request: web.Request) -> web.Response:
        self._check_writer(request, _JSON)
        rehearsal, session = self._require_rehearsal(), self._require_broker(request)
        wanted = (await _from_json(DirectoryFailure, request)).directory
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
        self._check_writer(request, _JSON)
        session = self._require_broker(request)
        wanted = (await _from_json(Cordoned, request)).directories
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

    def _check_writer(self, request: web.Request, content_type: str) -> None:
        """No web page may do this in its reader's name: it cannot send these types.

        Raises:
            ApiError: CLUSTER_AUTHORIZATION_FAILED, INVALID_REQUEST.
        """
        if self._secrets is not None:
            given = request.headers.get("Authorization", "").encode("utf-8", "surrogateescape")
            if not sum(hmac.compare_digest(given, b"Bearer " + secret) for secret in self._secrets()):
                raise ApiError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "the shared secret is missing or wrong")
        if request.content_type != content_type:
            raise ApiError(ErrorCode.INVALID_REQUEST, f"the body is {request.content_type[:100]!r}, not {content_type}")
        coding = request.headers.get("Content-Encoding", "identity")
        if coding.lower() != "identity":
            raise ApiError(ErrorCode.INVALID_REQUEST, f"the body is compressed, {coding[:100]!r}: send it as it is")

    async def _metrics(self, request: web.Request) -> web.Response:
        _parameters(Nothing, request)
        # Imported by the first scrape: many processes are never scraped, and none while it starts.
        from quorate.broker.http.metrics import render_metrics

        answer = web.Response(body=render_metrics(self._host, time.time() * 1000))
        answer.headers["Content-Type"] = _METRICS
        return answer

    async def _livez(self, request: web.Request) -> web.Response:
        _parameters(Nothing, request)
        return _answer(LivenessReply(ok=True))

    async def _readyz(self, request: web.Request) -> web.Response:
        _parameters(Nothing, request)
        is_ready = self._host.is_ready
        brokers = [broker_reply(readiness) for readiness in self._host.readiness()]
        return _answer(ReadinessReply(ok=is_ready, brokers=brokers), status=200 if is_ready else 503)


async def _say_no_software(request: web.Request, answer: web.StreamResponse) -> None:
    answer.headers.popall("Server", None)  # the framework's version is nobody's business


async def _body(request: web.Request) -> bytes:
    """All of it.

    Raises:
        ApiError: INVALID_REQUEST, it is larger than any message; read no further than that.
    """
    body = b""
    while chunk := await request.content.read(_READ_BYTES):
        body += chunk
        if len(body) > FRAME_BYTES_MAX:
            raise ApiError(ErrorCode.INVALID_REQUEST, f"the body has more than {FRAME_BYTES_MAX} bytes")
    return body


async def _from_json(model: type[P], request: web.Request) -> P:
    """The body as a model.

    Raises:
        ApiError: INVALID_REQUEST, it is not JSON, or a field is unknown or wrong.
    """
    try:
        return model.model_validate_json(await _body(request))
    except ValidationError as error:
        raise _refusal(error, "field") from error


def _parameters(model: type[P], request: web.Request) -> P:
    """The query as a model.

    Raises:
        ApiError: INVALID_REQUEST, a parameter that is unknown, repeated or wrong.
    """
    values = dict(request.query)
    if len(values) != len(request.query):
        raise ApiError(ErrorCode.INVALID_REQUEST, "a parameter was given more than once")
    try:
        return model.model_validate(values)
    except ValidationError as error:
        raise _refusal(error, "parameter") from error


def _refusal(error: ValidationError, what: str) -> ApiError:
    problem = error.errors(include_url=False)[0]
    name = ".".join(str(part) for part in problem["loc"])
    message = "is not known" if problem["type"] == "extra_forbidden" else problem["msg"]
    return ApiError(ErrorCode.INVALID_REQUEST, f"{what} {name[:100]}: {message}")


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


@web.middleware
async def _answer_errors(request: web.Request, handler: _Handler) -> web.StreamResponse:
    try:
        return await handler(request)
    except ApiError as error:
        return _refused(request, error)
    except web.HTTPException as error:
        message = f"{request.method} {request.path}: {error.reason}"
        return _refused(request, HttpRefusal(error.status, message, ErrorCode.RESOURCE_NOT_FOUND))


def _refused(request: web.Request, error: ApiError) -> web.Response:
    request_id = request_id_of(request.headers.get(headers.REQUEST_ID, ""))
    return _answer(error_reply(error, request_id), status_of(error))
