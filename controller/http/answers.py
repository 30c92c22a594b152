"""Headers that every answer carries about itself and the node that made it."""

from __future__ import annotations

from http import HTTPStatus
from typing import Final

from quorate.controller.api import headers
from quorate.controller.http.ports import Node
from quorate.controller.scram.http_fields import challenge

#: Where clients log in.
LOGIN_PATH: Final = "/v1/login"
#: The same of every cluster: whoever may not ask is told nothing of it.
_REALM: Final = "quorate"
#: To browsers: take no answer for anything but what it says it is, and show none to a page of another site.
_BROWSER_HEADERS: Final = (("X-Content-Type-Options", "nosniff"), ("Cross-Origin-Resource-Policy", "same-origin"))


def node_headers(node: Node, *, is_told_all: bool = True) -> tuple[tuple[str, str], ...]:
    """Names and values. Who may not ask is told by whom he was refused, and nothing of the cluster."""
    if not is_told_all:
        return ((headers.NODE, str(node.node_id)), *_BROWSER_HEADERS)
    position = node.cluster.position()
    return (
        (headers.NODE, str(node.node_id)),
        (headers.CLUSTER, node.cluster_id),
        (headers.ACTIVE, "" if position.leader_id is None else str(position.leader_id)),
        (headers.EPOCH, str(position.epoch)),
        (headers.HIGH_WATERMARK, str(position.high_watermark)),
        *_BROWSER_HEADERS,
    )


def challenge_headers(node: Node, path: str, status: int) -> tuple[tuple[str, str], ...]:
    """Names and values by which a 401 says how to prove who asks (RFC 9110, RFC 7804)."""
    if status != HTTPStatus.UNAUTHORIZED:
        return ()
    logins = node.access.logins if path == LOGIN_PATH else None
    offered = [challenge(mechanism, _REALM) for mechanism in ([] if logins is None else logins.mechanisms)]
    return (("WWW-Authenticate", ", ".join([*offered, f'Bearer realm="{_REALM}"'])),)


def is_refusal(status: int) -> bool:
    """Whether a status is that of somebody who may not ask."""
    return status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)


def status_headers(status: int, retry_after_s: int) -> tuple[tuple[str, str], ...]:
    """Names and values that belong to a status. ``retry_after_s``: where it is 429, when to come again."""
    return (("Retry-After", str(retry_after_s)),) if status == HTTPStatus.TOO_MANY_REQUESTS else ()
