"""A route: one row of the table that aiohttp's routes and the OpenAPI document are both made from."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, TypeVar, get_type_hints

from aiohttp import web
from pydantic import BaseModel

from quorate.controller.api.content import JSON
from quorate.controller.api.models import MomentParameters, Nothing
from quorate.controller.http.ports import Node
from quorate.controller.operations.operations import Operations
from quorate.controller.permissions.permission import Permission
from quorate.controller.permissions.rights import Rights

#: Largest body of a request that is about one thing. Of lists of many the node's own setting is the bound.
_BODY_BYTES_OF_ONE: Final = 65_536

P = TypeVar("P", bound=BaseModel)
B = TypeVar("B", bound=BaseModel)
R = TypeVar("R", bound=BaseModel)
T = TypeVar("T")
Part = TypeVar("Part")


class Serving(Enum):
    """The controller that answers a route."""

    #: The one that is asked.
    HERE = "here"
    #: The active one; a standby passes the request on.
    ACTIVE = "active"
    #: The one that is asked from its committed state; the active one where `consistency=linearizable` is asked for.
    CONSISTENT = "consistent"
    #: The active one if there is one that answers, else the one that is asked; `local=true`: always that one.
    VIEW = "view"


@dataclass(frozen=True, slots=True)
class Call:
    """The circumstances of a call: all that a handler is told beside parameters and body."""

    node: Node
    #: How long the client waits, within the node's limit.
    timeout_ms: float
    #: What whoever asks may do.
    rights: Rights

    @property
    def write_timeout_ms(self) -> float:
        """The time that a write is given: for its turn at most, and as long again for its commit."""
        return self.timeout_ms / 2

    async def on_thread(self, work: Callable[[], T]) -> T:
        """The result of work that takes long where the state is large, when whoever asks has his turn."""
        return await self.node.read_turns.run(self.rights.owner, work)


@dataclass(frozen=True, slots=True)
class Route:
    """One row. ``handler`` takes (call, parameters, body), or (node, parameters, request) where it is raw."""

    method: str
    path: str
    summary: str
    serving: Serving
    #: What whoever asks has to have; asked on the node that answers, before the handler is.
    permission: Permission
    parameters: type[BaseModel]
    body: type[BaseModel]
    reply: type[BaseModel] | None
    handler: Callable[[Any, Any, Any], Awaitable[Any]]
    #: Content types of bodies; the answer has the one of the request, and the first where that has none.
    media: tuple[str, ...]
    #: Whether a reply about several things, some of which failed, is 207, and about one that failed an error.
    is_bulk: bool
    #: Statuses an error may have, beside those that any request may be answered with.
    errors: tuple[int, ...]
    #: Whether the handler makes the answer itself.
    is_raw: bool
    #: Response headers of its own: name and meaning.
    headers: tuple[tuple[str, str], ...]
    tag: str
    #: Takes (node, body) and gives the reply that needs no waiting; None where it does: then the handler is asked.
    at_once: Callable[[Node, Any], BaseModel | None] | None = None
    #: Takes (node, body, its bytes in msgpack) of a request that ``at_once`` has answered; gives what answers bodies of
    #: nearly the same bytes, and has None for all others. None: no such bodies are to be expected. The permission is
    #: not asked for again while the head is the same, so it must not depend on ACLs.
    repeated: Callable[[Node, Any, bytes], Callable[[bytes], BaseModel | None] | None] | None = None
    #: Whether a body may list many things, and be as large as the node lets bodies be.
    takes_lists: bool = False
    #: Whether `HEAD` is answered like `GET`, without the body: the status says it all.
    takes_head: bool = False

    @property
    def name(self) -> str:
        """As it is counted: method and path, with the names of parameters in braces."""
        return f"{self.method} {self.path}"

    @property
    def is_write(self) -> bool:
        """Whether the state may change: a failure on the way may then be an unknown outcome."""
        return self.serving is Serving.ACTIVE

    def body_bytes_max(self, of_node: int) -> int:
        """Largest body; ``of_node``: the largest that the node takes at all."""
        return of_node if self.takes_lists else min(of_node, _BODY_BYTES_OF_ONE)

    @property
    def has_body(self) -> bool:
        """Whether a request carries a body."""
        return self.body is not Nothing


def route(
    method: str,
    path: str,
    summary: str,
    handler: Callable[[Call, P, B], Awaitable[R]],
    *,
    tag: str,
    parameters: type[P],
    body: type[B],
    reply: type[R],
    serving: Serving,
    permission: Permission,
    media: tuple[str, ...] = (JSON,),
    is_bulk: bool = False,
    takes_lists: bool = False,
    errors: Sequence[int] = (),
    at_once: Callable[[Node, B], R | None] | None = None,
    repeated: Callable[[Node, B, bytes], Callable[[bytes], R | None] | None] | None = None,
) -> Route:
    """A route whose handler takes and gives models."""
    return Route(
        method=method,
        path=path,
        summary=summary,
        serving=serving,
        permission=permission,
        parameters=parameters,
        body=body,
        reply=reply,
        handler=handler,
        media=media,
        is_bulk=is_bulk,
        # Who asks for an old state may ask for one that is too old.
        errors=tuple(dict.fromkeys((*errors, 409))) if issubclass(parameters, MomentParameters) else tuple(errors),
        is_raw=False,
        headers=(),
        tag=tag,
        at_once=at_once,
        repeated=repeated,
        takes_lists=takes_lists or is_bulk,
    )


def _whole(operations: Operations) -> Any:
    return operations


def write(
    path: str,
    summary: str,
    operation: Callable[[Part, B, float], Awaitable[R]],
    *,
    tag: str,
    permission: Permission,
    of: Callable[[Operations], Part] = _whole,
    media: tuple[str, ...] = (JSON,),
    is_bulk: bool = False,
    takes_lists: bool = False,
    errors: Sequence[int] = (),
) -> Route:
    """A `POST` that is one operation of the active controller and no more: its signature says body and reply.

    Args:
        operation: a method `(self, request, timeout_ms)` of ``Operations``, or of a part of it.
        of: which part that is.
    """
    models = get_type_hints(operation)

    async def handler(call: Call, parameters: Nothing, body: B) -> R:
        return await operation(of(call.node.operations), body, call.write_timeout_ms)

    handler.__name__ = operation.__name__
    return route(
        "POST",
        path,
        summary,
        handler,
        tag=tag,
        parameters=Nothing,
        body=models["request"],
        reply=models["return"],
        serving=Serving.ACTIVE,
        permission=permission,
        media=media,
        is_bulk=is_bulk,
        takes_lists=takes_lists,
        errors=errors,
    )


def raw_route(
    path: str,
    summary: str,
    handler: Callable[[Node, P, web.Request], Awaitable[web.StreamResponse]],
    *,
    tag: str,
    permission: Permission,
    parameters: type[P],
    media: str | tuple[str, ...],
    reply: type[BaseModel] | None = None,
    headers: Sequence[tuple[str, str]] = (),
    errors: Sequence[int] = (),
    takes_head: bool = False,
) -> Route:
    """A `GET` whose handler makes the answer itself; it is served by the node that is asked.

    ``media``: content type of the answer, or those that it may have.
    """
    return Route(
        method="GET",
        path=path,
        summary=summary,
        serving=Serving.HERE,
        permission=permission,
        parameters=parameters,
        body=Nothing,
        reply=reply,
        handler=handler,
        media=(media,) if isinstance(media, str) else media,
        is_bulk=False,
        errors=tuple(errors),
        is_raw=True,
        headers=tuple(headers),
        tag=tag,
        takes_head=takes_head,
    )
