"""A standby passes on what only the active controller may answer: once, never further.

A failure before the request can have arrived is retriable; after that a write's outcome is unknown.
"""

from __future__ import annotations

from typing import Final

import aiohttp
from aiohttp import web

from controller.answered_while import answered_while
from controller.connection import CONNECT_SECONDS, body_to_send, reason_of
from controller.http import headers
from controller.http.errors import HttpRefusal
from controller.http.ports import Node, Peer
from controller.origin import Origin
from metadata_log.errors import ApiError, ErrorCode, NotController, OutcomeUnknown

HOPS_MAX: Final = 1
#: Between two looks at who is active, while an answer is waited for: one that takes longer is rare.
_LOOK_S: Final = 0.1

_PASSED_ON: Final = ("Content-Type", "Accept", "Authorization", headers.TIMEOUT_MS, headers.PRINCIPAL)
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


def hops_of(request: web.Request) -> int:
    """How many times the request was passed on.

    Raises:
        HttpRefusal: the header is no number.
    """
    text = request.headers.get(headers.HOPS, "0")
    if not text.isascii() or not text.isdigit() or len(text) > 2:
        raise HttpRefusal(400, f"header {headers.HOPS} must be a small number, not {text[:20]!r}")
    return int(text)


def active_peer(node: Node, hops: int) -> Peer:
    """Whom to pass a request on to.

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
    origin: Origin,
    is_write: bool,
    timeout_ms: float,
) -> web.Response:
    """The active controller's answer, as it is. It is waited for as long as that controller is the active one.

    Raises:
        NotController: it could not be reached. OutcomeUnknown: it did not answer a write. ApiError: nor a read.
    """
    passed_on = {name: request.headers[name] for name in _PASSED_ON if name in request.headers}
    passed_on[headers.HOPS] = str(HOPS_MAX)
    passed_on[headers.REQUEST_ID] = origin.request_id
    passed_on[headers.CLIENT] = origin.address

    async def ask() -> web.Response:
        async with session.request(
            request.method,
            f"{peer.url}{request.path_qs}",
            data=body_to_send(body or None),
            headers=passed_on,
            allow_redirects=False,
            timeout=aiohttp.ClientTimeout(total=timeout_ms / 1000, sock_connect=CONNECT_SECONDS),
        ) as answer:
            data = await answer.read()
            passed_back = {name: answer.headers[name] for name in _PASSED_BACK if name in answer.headers}
            return web.Response(status=answer.status, body=data, headers=passed_back)

    async def is_active() -> bool:
        return node.controller.active_id in (peer.node_id, None)

    try:
        answer = await answered_while(ask, is_active, _LOOK_S)
        if answer is None:
            raise _Deposed(f"controller {node.controller.active_id} has taken over meanwhile")
        return answer
    except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
        raise NotController(
            peer.node_id, f"controller {peer.node_id} is active and cannot be reached: {reason_of(error)}"
        ) from error
    except (aiohttp.ClientError, TimeoutError, _Deposed) as error:
        raise _no_answer(peer, error, is_write=is_write) from error


def _no_answer(peer: Peer, error: Exception, *, is_write: bool) -> ApiError:
    reason = reason_of(error)
    if is_write:
        message = f"controller {peer.node_id} did not answer ({reason}): the change may have been made"
        return OutcomeUnknown(f"{message}, read before repeating it")
    return ApiError(ErrorCode.REQUEST_TIMED_OUT, f"controller {peer.node_id} did not answer: {reason}")
