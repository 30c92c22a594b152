"""One controller's HTTP API from the outside: a request is sent at most once, and its failures say what is known of it.

``NotSent`` (``NotAController``, ``Untrusted``): nothing can have happened. ``NoAnswer`` (``BrokeOff``): it may have
been carried out.
An error reply becomes the ``ApiError`` that it was made from.
"""

from __future__ import annotations

import io
import os
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final, Protocol, TypeVar

import aiohttp
from pydantic import BaseModel, ValidationError

from quorate.controller.api import headers, sockets
from quorate.controller.api.content import JSON, MSGPACK, pack, unpack
from quorate.controller.api.errors import HttpRefusal, error_from_reply, is_unknown
from quorate.controller.api.models import ErrorReply
from quorate.controller.api.tls_contexts import CertificateEnded, TlsContexts
from quorate.controller.client.connecting.name_threads import NameThreads
from quorate.controller.client.connecting.secured import refusal_by_tls, tls_options
from quorate.controller.client.connecting.strangers import (
    QUOTED_BYTES,
    description,
    is_gateway,
    is_strange,
    number_said,
)
from quorate.controller.client.targets import check_target
from quorate.controller.identity.seals import Seal
from quorate.controller.identity.secrets import ShownSecret, bearer
from quorate.metadata_log.errors import QuorateError

#: A controller on a live host answers a connection attempt within milliseconds; a dead host answers none.
CONNECT_SECONDS: Final = 1.0
_KEEPALIVE_SECONDS: Final = 15.0
_PIECE_BYTES: Final = 256 * 1024
#: Through it everybody is this machine.
_BASE_AT_SOCKET: Final = "http://localhost"

R = TypeVar("R", bound=BaseModel)


class NotSent(QuorateError):
    """The controller could not be reached: nothing has happened."""


class NotAController(NotSent):
    """Something else answers there: it never will be the controller that was asked for."""

    def __init__(self, url: str, answered: str) -> None:
        super().__init__(f"{url} is no Quorate controller (it answered {answered})")


class Untrusted(NotSent):
    """One end does not trust the other, or only one of them speaks TLS."""


class NoAnswer(QuorateError):
    """The request was sent and not answered, or not in a form that is understood: it may have been carried out."""


class BrokeOff(NoAnswer):
    """The connection ended before the answer."""


def make_session(
    shared_secret: ShownSecret = None,
    principal: str | None = None,
    seal: Seal | None = None,
    client_id: str | None = None,
    *,
    socket_path: str | None = None,
) -> aiohttp.ClientSession:
    """A session that sends each request at most once: whoever calls knows what may be repeated.

    ``seal``: makes the `Authorization` header of each request. ``socket_path``: where all of them go, whatever their
    URLs say.
    """
    middlewares: list[aiohttp.ClientMiddlewareType] = [] if seal is None else [partial(_send_sealed, seal)]
    sent_headers = {}
    if isinstance(shared_secret, bytes):
        sent_headers["Authorization"] = bearer(shared_secret)
    elif shared_secret is not None:
        middlewares.append(partial(_send_shown, shared_secret))
    if principal is not None:
        sent_headers[headers.PRINCIPAL] = principal
    if client_id is not None:
        sent_headers[headers.CLIENT_ID] = client_id
    connector: aiohttp.BaseConnector
    if socket_path is None:
        connector = aiohttp.TCPConnector(
            limit=0,
            keepalive_timeout=_KEEPALIVE_SECONDS,
            socket_factory=sockets.to_a_controller,
            resolver=NameThreads(),
        )
    else:
        connector = aiohttp.UnixConnector(socket_path, limit=0, keepalive_timeout=_KEEPALIVE_SECONDS)
    session = aiohttp.ClientSession(
        connector=connector,
        cookie_jar=aiohttp.DummyCookieJar(),
        headers=sent_headers,
        auto_decompress=False,
        middlewares=middlewares,
    )
    # By itself it repeats a GET or DELETE on a connection that broke: a deletion done twice is answered "not found".
    session._retry_connection = False
    return session


async def _send_shown(
    shown: Callable[[], bytes], request: aiohttp.ClientRequest, send: aiohttp.ClientHandlerType
) -> aiohttp.ClientResponse:
    request.headers["Authorization"] = bearer(shown())
    return await send(request)


async def _send_sealed(
    seal: Seal, request: aiohttp.ClientRequest, send: aiohttp.ClientHandlerType
) -> aiohttp.ClientResponse:
    body = await request.body.as_bytes() if request.body else b""
    request.headers["Authorization"] = seal(request.method, request.url.raw_path_qs, request.headers, body)
    return await send(request)


@dataclass(frozen=True, slots=True)
class Request:
    """A request to be sent. Times in milliseconds."""

    method: str
    path: str
    timeout_ms: float
    parameters: Mapping[str, str | int] | None = None
    body: BaseModel | None = None
    as_msgpack: bool = False
    #: The answer is given up after so long without a byte of it; None: only when the time is up.
    silence_ms: float | None = None
    #: Headers beside those that every request has.
    headers: Mapping[str, str] | None = None
    #: Whether processes of brokers answer it, too. Under some paths they serve something else than controllers do.
    is_for_brokers: bool = False


@dataclass(frozen=True, slots=True)
class NodeState:
    """The part of every answer that is about the node that made it."""

    node_id: int
    cluster_id: str
    #: None while it knows of no active controller.
    active_id: int | None
    #: Newest leader epoch that it knows of.
    epoch: int
    #: Exclusive end of what it knows to be committed.
    high_watermark: int


@dataclass(frozen=True, slots=True)
class Answer:
    """A successful answer."""

    status: int
    headers: Mapping[str, str]
    data: bytes
    #: Who was asked; empty where it is nobody with an address.
    url: str = ""

    def number(self, name: str) -> int:
        """A header that is a number.

        Raises:
            NoAnswer: it is missing, or none.
        """
        text = self.headers.get(name, "")
        try:
            return int(text)
        except ValueError as error:
            raise NoAnswer(f"the answer's header {name} is {text[:50]!r}, not a number") from error

    def node_state(self) -> NodeState:
        """The answer's account of its node.

        Raises:
            NoAnswer: it does not.
        """
        return NodeState(
            node_id=self.number(headers.NODE),
            cluster_id=self.headers.get(headers.CLUSTER, ""),
            active_id=self.number(headers.ACTIVE) if self.headers.get(headers.ACTIVE) else None,
            epoch=self.number(headers.EPOCH),
            high_watermark=self.number(headers.HIGH_WATERMARK),
        )

    def model(self, reply: type[R]) -> R:
        """The body as a model.

        Raises:
            NoAnswer: it is none.
        """
        try:
            if self.headers.get("Content-Type", "").startswith(MSGPACK):
                return reply.model_validate(unpack(self.data))
            return reply.model_validate_json(self.data)
        except (ValidationError, QuorateError) as error:
            is_known = not self.url or headers.NODE in self.headers
            suspicion = "" if is_known else f"; {self.url} does not look like a Quorate controller"
            raise NoAnswer(f"the answer is no {reply.__name__}: {_problem(error)}{suspicion}") from error


def _problem(error: ValidationError | QuorateError) -> str:
    """The trouble with an answer in one line: of many things the first."""
    if isinstance(error, QuorateError):
        return str(error)
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    return ": ".join([*filter(None, [".".join(map(str, first["loc"]))]), first["msg"]])


def body_to_send(data: bytes | None) -> bytes | io.BytesIO | None:
    """A body in the form in which the library sends it piece by piece if it is large, and does not hold up the loop."""
    return data if data is None or len(data) <= _PIECE_BYTES else io.BytesIO(data)


def reason_of(error: Exception) -> str:
    """The reason why a connection or an answer did not come about, in a few words."""
    if (refusal := refusal_by_tls(error)) is not None:
        return refusal
    if isinstance(error, aiohttp.ClientConnectorError) and isinstance(error.os_error, socket.gaierror):
        return f"the name does not resolve ({error.os_error.strerror})"
    if isinstance(error, aiohttp.ClientConnectorError) and error.os_error.errno:
        return os.strerror(error.os_error.errno).lower()
    return str(error) or type(error).__name__


class Authorizing(Protocol):
    """``controller.client.login.LoginSession``."""

    async def authorization(self, url: str, timeout_ms: float) -> str:
        """The `Authorization` header of a request to a controller."""

    def forget(self, authorization: str) -> None:
        """It was refused: a token may end before its time, as when the password is changed."""


def is_silence(error: NotSent) -> bool:
    """Whether nothing takes a connection there; else somebody does, who is no controller or where TLS is at fault."""
    return not isinstance(error, (NotAController, Untrusted))


class Connection:
    """One controller. The session is its owner's, who makes it when the first request asks for it."""

    def __init__(
        self,
        session: Callable[[], aiohttp.ClientSession],
        url: str,
        tls: TlsContexts | None = None,
        login: Authorizing | None = None,
        *,
        through_socket: bool = False,
    ) -> None:
        """``tls``: of whom a controller must show to be, where the URL wants TLS; None: of whom the system trusts.

        ``login``: gives the header that says who asks; None: the session has it, or there is none.
        ``through_socket``: the session asks nobody but the controller at a Unix socket, which the URL only names.
        """
        self._session = session
        self._tls = tls
        self._login = login
        self.url = url
        self._base = _BASE_AT_SOCKET if through_socket else url
        #: Who answered there last; None before anybody did.
        self.node_id: int | None = None
        #: End of what it then knew to be committed (exclusive); None where it did not say.
        self.high_watermark: int | None = None

    async def send(self, request: Request) -> Answer:
        """Send a request once.

        Raises:
            ApiError: it was refused, by the controller or by ``client.targets``. NotSent, NoAnswer: see the module.
        """
        check_target(request.path, request.parameters or {})
        if self._login is None:
            return await self._send(request, {})
        authorization = await self._login.authorization(self._base, request.timeout_ms)
        try:
            return await self._send(request, {"Authorization": authorization})
        except HttpRefusal as error:
            if not is_unknown(error):
                raise
        # Whoever refuses so has done nothing: the token has ended before its time.
        self._login.forget(authorization)
        authorization = await self._login.authorization(self._base, request.timeout_ms)
        return await self._send(request, {"Authorization": authorization})

    async def _send(self, request: Request, said: Mapping[str, str]) -> Answer:
        """The same, with these headers besides."""
        sent_headers = {headers.TIMEOUT_MS: str(max(1, int(request.timeout_ms))), **(request.headers or {}), **said}
        data = None
        if request.body is not None:
            data = pack(request.body) if request.as_msgpack else request.body.model_dump_json().encode()
            sent_headers["Content-Type"] = MSGPACK if request.as_msgpack else JSON
        try:
            async with self._session().request(
                request.method,
                self._base + request.path,
                params=request.parameters,
                data=body_to_send(data),
                headers=sent_headers,
                allow_redirects=False,
                timeout=_patience(request),
                **tls_options(self._tls),
            ) as response:
                if is_strange(response.headers):
                    begin = await response.content.read(QUOTED_BYTES)
                    raise self._stranger(response.status, description(response.status, response.headers, begin))
                if headers.PROCESS in response.headers and not request.is_for_brokers:
                    raise NotAController(self.url, "as a process of brokers: name its controllers")
                answer = Answer(response.status, response.headers, await response.read(), self.url)
        except CertificateEnded as error:
            raise Untrusted(f"{self.url} is not asked: {error}") from error
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
            raise self._unreached(error) from error
        except aiohttp.SocketTimeoutError as error:
            raise NoAnswer(f"{self.url} was silent for {request.silence_ms:.0f} ms") from error
        except TimeoutError as error:
            raise NoAnswer(f"{self.url} did not answer within {request.timeout_ms:.0f} ms") from error
        except aiohttp.ClientResponseError as error:
            raise NotAController(self.url, "what is not HTTP") from error
        except aiohttp.ClientError as error:
            if refusal_by_tls(error) is not None:
                raise self._unreached(error) from error
            raise BrokeOff(f"{self.url} broke off: {reason_of(error)}{self._suspicion()}") from error
        node_id = number_said(answer.headers, headers.NODE)
        self.node_id = self.node_id if node_id is None else node_id
        self.high_watermark = number_said(answer.headers, headers.HIGH_WATERMARK)
        if answer.status < 400:
            return answer
        try:
            reply = answer.model(ErrorReply)
        except NoAnswer:
            if headers.NODE in answer.headers:
                raise
            raise self._stranger(answer.status, f"an error of another form, status {answer.status}") from None
        raise error_from_reply(reply, answer.status)

    def _unreached(self, error: Exception) -> NotSent:
        """The failure for a connection that did not come about."""
        kind = NotSent if refusal_by_tls(error) is None else Untrusted
        return kind(f"{self.url} cannot be reached: {reason_of(error)}")

    def _suspicion(self) -> str:
        """A server may end its handshake without a word when the client's is through."""
        if self.node_id is not None or not self.url.startswith("https:"):
            return ""
        return " (or this is the port of the quorum, or it refuses this client's certificate: its log says so)"

    def _stranger(self, status: int, answered: str) -> NotAController | NoAnswer:
        """The failure for an answer that no controller gives."""
        error = NotAController(self.url, answered)
        return NoAnswer(str(error)) if is_gateway(status) else error


def _patience(request: Request) -> aiohttp.ClientTimeout:
    silence_s = None if request.silence_ms is None else request.silence_ms / 1000
    return aiohttp.ClientTimeout(total=request.timeout_ms / 1000, sock_connect=CONNECT_SECONDS, sock_read=silence_s)
