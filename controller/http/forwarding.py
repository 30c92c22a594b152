"""A standby passes on what only the active controller may answer: once, never further.

A failure before the request can have arrived is retriable; after that a write's outcome is unknown.

That a connection does not come about in time may be due to this node, which is so busy that it looks too late, or to
the other one. As long as the quorum hears the active controller the connection is tried again, and in the end too much
is waiting: whom the quorum hears is not called unreachable.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

import aiohttp
from aiohttp import web

from quorate.controller.api import headers
from quorate.controller.api.tls_contexts import CertificateEnded, TlsContexts
from quorate.controller.client.answered_while import answered_while
from quorate.controller.client.connecting.secured import refusal_by_tls, tls_options
from quorate.controller.client.connection import CONNECT_SECONDS, body_to_send, reason_of
from quorate.controller.engine.marks import MARKS
from quorate.controller.http.forward_line import LIMIT
from quorate.controller.http.ports import Node, Peer
from quorate.controller.identity.authentication import forwarded_identity
from quorate.controller.identity.identity import Caller
from quorate.metadata_log.errors import ApiError, ErrorCode, NotController, OutcomeUnknown, Overloaded

HOPS_MAX: Final = 1
#: Between two looks at who is active, while an answer is waited for: one that takes longer is rare.
_LOOK_S: Final = 0.1
#: Attempts to connect to a controller that the quorum hears.
_CONNECTS_MAX: Final = 4

_PASSED_ON: Final = ("Content-Type", "Accept", headers.CLIENT_ID, headers.TIMEOUT_MS, headers.EXPECTED_FACTS)
#: ... and where nobody has to show who it is: the secret, and in whose name is asked.
_SAID: Final = ("Authorization", headers.PRINCIPAL)
_PASSED_BACK: Final = (
    "Content-Type",
    "Retry-After",
    headers.NODE,
    headers.CLUSTER,
    headers.ACTIVE,
    headers.EPOCH,
    headers.HIGH_WATERMARK,
)


class _Deposed(Exception):
    """Another controller took over while this one's answer was waited for: a frozen one never gives it."""


def active_peer(node: Node, hops: int) -> Peer:
    """The peer to pass a request on to.

    Raises:
        NotController: nobody is known, or the request was passed on before.
    """
    active = node.controller.active_id
    if active is None:
        raise NotController(None)
    if active == node.node_id:
        raise NotController(active, f"controller {active} is becoming active: try again")
    if hops >= HOPS_MAX:
        raise NotController(active, f"this node is not the active controller, {active} may be: not passed on twice")
    return node.peers[active]


async def forward(
    session: aiohttp.ClientSession,
    node: Node,
    peer: Peer,
    request: web.Request,
    body: bytes,
    *,
    caller: Caller,
    request_id: str,
    is_write: bool,
    ends_at: float,
) -> web.Response:
    """The active controller's answer, as it is. It is waited for as long as that controller is the active one.

    Args:
        ends_at: by the loop's clock.

    Raises:
        NotController: it could not be reached. Overloaded: there was no time left to ask, or it took no connection,
            and the quorum hears it.
        OutcomeUnknown: it did not answer a write. ApiError: nor a read.
    """
    sent_headers = _sent_headers(node, request, caller, request_id)
    ask = partial(_ask, session, peer, request, body, sent_headers, ends_at, node.tls)

    async def is_active() -> bool:
        return node.controller.active_id in (peer.node_id, None)

    try:
        answer = await answered_while(partial(_ask_while_heard, ask, node, peer), is_active, _LOOK_S)
        if answer is None:
            raise _Deposed(f"controller {node.controller.active_id} has taken over meanwhile")
        return answer
    except CertificateEnded as error:
        raise NotController(peer.node_id, f"controller {peer.node_id} is active and is not asked: {error}") from error
    except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
        raise _not_sent(node, peer, error) from error
    except (aiohttp.ClientError, TimeoutError, _Deposed) as error:
        if (why := refusal_by_tls(error)) is not None:
            raise NotController(peer.node_id, f"controller {peer.node_id} is active and refuses TLS: {why}") from error
        raise _no_answer(peer, error, is_write=is_write) from error


def _sent_headers(node: Node, request: web.Request, caller: Caller, request_id: str) -> dict[str, str]:
    names = _PASSED_ON if node.access.is_enforced else (*_PASSED_ON, *_SAID)
    passed_on = {name: request.headers[name] for name in names if name in request.headers}
    named = {headers.HOPS: str(HOPS_MAX), headers.REQUEST_ID: request_id, headers.CLIENT: caller.address}
    if node.access.is_enforced:
        # This node has found out who asks, and the other believes it: what the client showed is for this node alone.
        named |= {headers.PRINCIPAL: caller.principal, headers.IDENTITY: forwarded_identity(caller.identity)}
        named |= {headers.PROXY: caller.proxy} if caller.proxy else {}
    marks = MARKS.get()
    return passed_on | named | ({} if marks is None else {headers.TRACE_PARENT: marks.sent_as})


async def _ask(
    session: aiohttp.ClientSession,
    peer: Peer,
    request: web.Request,
    body: bytes,
    sent_headers: dict[str, str],
    ends_at: float,
    tls: TlsContexts | None,
) -> web.Response:
    left_s = ends_at - asyncio.get_running_loop().time()
    if left_s <= 0:
        message = f"this standby was too busy to pass the request on to controller {peer.node_id} in time"
        raise Overloaded(message, LIMIT)
    async with session.request(
        request.method,
        f"{peer.url}{request.path_qs}",
        data=body_to_send(body or None),
        headers=sent_headers,
        allow_redirects=False,
        timeout=aiohttp.ClientTimeout(total=left_s, sock_connect=CONNECT_SECONDS),
        **tls_options(tls),
    ) as answer:
        data = await answer.read()
        passed_back = {name: answer.headers[name] for name in _PASSED_BACK if name in answer.headers}
        return web.Response(status=answer.status, body=data, headers=passed_back)


async def _ask_while_heard(ask: Callable[[], Awaitable[web.Response]], node: Node, peer: Peer) -> web.Response:
    for _ in range(1, _CONNECTS_MAX):
        try:
            return await ask()
        except aiohttp.ConnectionTimeoutError:
            if not _is_heard(node, peer):
                raise
    return await ask()


def _is_heard(node: Node, peer: Peer) -> bool:
    """Whether the quorum's connection to a controller stands."""
    voter = node.cluster.quorum().voters.get(peer.node_id)
    return voter is not None and voter.is_connected


def _not_sent(node: Node, peer: Peer, error: aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError) -> ApiError:
    """A connection that is refused is so by a host on which nobody listens; one that takes long may be in a queue."""
    if isinstance(error, aiohttp.ConnectionTimeoutError) and _is_heard(node, peer):
        seconds = f"{_CONNECTS_MAX * CONNECT_SECONDS:g} s"
        message = f"controller {peer.node_id} is active and took no connection for {seconds}: it is busy"
        return Overloaded(message, LIMIT)
    why = reason_of(error)
    return NotController(peer.node_id, f"controller {peer.node_id} is active and cannot be reached: {why}")


def _no_answer(peer: Peer, error: Exception, *, is_write: bool) -> ApiError:
    reason = reason_of(error)
    if is_write:
        message = f"controller {peer.node_id} did not answer ({reason}): the change may have been made"
        return OutcomeUnknown(f"{message}, read before repeating it")
    return ApiError(ErrorCode.REQUEST_TIMED_OUT, f"controller {peer.node_id} did not answer: {reason}")
