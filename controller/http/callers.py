"""The caller of a request that the web framework has read: found out once, by the guard, and kept for its task."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Final

from quorate.controller.decisions.origin import Grounds, Origin
from quorate.controller.http.ports import Node
from quorate.controller.identity.identity import Caller
from quorate.controller.permissions.rights import Rights
from quorate.controller.permissions.standing import StandingRight
from quorate.metadata_log.errors import ApiError

#: Who makes the request that this task answers; None on open routes, of who has not shown it.
CALLER: Final[ContextVar[Caller | None]] = ContextVar("caller", default=None)

#: The same caller's right, for an answer that takes its time.
STANDING: Final[ContextVar[StandingRight]] = ContextVar("standing")


def rights_here(node: Node) -> Rights:
    """The rights of who makes the request that this task answers, of a route that is not open."""
    caller = CALLER.get()
    assert caller is not None
    return node.access.rights(caller)


def may_describe(node: Node) -> bool:
    """Whether whoever makes the request that this task answers may ask for the cluster's status."""
    caller = CALLER.get()
    if caller is None:
        return False
    try:
        return node.access.rights(caller).may_on_cluster("DESCRIBE")
    except ApiError:  # nobody's name
        return False


def origin_of(caller: Caller, request_id: str, grounds: Grounds | None = None) -> Origin:
    """The origin of a request. Of one that was passed on it is its client's. ``grounds``: why it may ask."""
    return Origin(
        principal=caller.principal,
        address=caller.address,
        request_id=request_id,
        client_id=caller.client_id,
        proof=caller.identity.proof,
        proxy=caller.proxy,
        grounds=grounds,
        proof_ends_ms=caller.identity.ends_ms,
    )
