"""Heads of requests of the usual form, read without the web framework: see ``express``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from quorate.controller.api import headers
from quorate.controller.api.models import Nothing
from quorate.controller.http.dispatch import timeout_of
from quorate.controller.http.ports import Node
from quorate.controller.http.routing import Route, Serving
from quorate.controller.http.usual_fields import usual_fields
from quorate.controller.identity.claims import RequestClaims
from quorate.controller.identity.identity import Caller
from quorate.controller.identity.other_ends import OtherEnd
from quorate.metadata_log.errors import ApiError

_NUMBER_DIGITS_MAX: Final = 7


@dataclass(frozen=True, slots=True)
class RequestHead:
    """All that a request says before its body."""

    route: Route
    #: As which it is counted.
    name: str
    media: str
    timeout_ms: float
    #: Empty where the client gave none.
    request_id: str
    body_bytes: int
    caller: Caller
    #: See ``AccessControl.owner_of_connection``.
    owner: str | None
    #: See ``AccessControl.owner_of_body``.
    owner_of_body: str | None
    #: Of the access control, when it said who that is.
    generation: int


class RequestHeads:
    """Of one server."""

    def __init__(self, node: Node, routes: Sequence[Route]) -> None:
        self._node = node
        self._routes = {f"POST {route.path} HTTP/1.1": route for route in routes if _is_usual(route)}

    def read(self, data: bytes, end: OtherEnd) -> RequestHead | None:
        """The head of a request; None if it is not of the usual form, or anything about it is to be refused."""
        line, *lines = data.decode("latin-1").split("\r\n")
        route = self._routes.get(line)
        if route is None:
            return None
        fields = usual_fields(lines)
        if fields is None:
            return None
        size, media = fields.get("content-length", ""), fields.get("content-type", "")
        if not size.isdigit() or len(size) > _NUMBER_DIGITS_MAX or media not in route.media or "host" not in fields:
            return None
        access = self._node.access
        generation = access.generation
        try:
            caller = access.identify(RequestClaims("POST", route.path, end.address, fields, end.certificate, end.uid))
            timeout_ms = timeout_of(route, fields.get(headers.TIMEOUT_MS.lower()), self._node)
        except ApiError:
            return None
        if not caller.is_proved or caller.body_digest is not None:
            return None  # whom the framework bounds, and what only it looks at
        request_id = fields.get(headers.REQUEST_ID.lower(), "")
        owners = access.owner_of_connection(caller), access.owner_of_body(caller)
        return RequestHead(route, route.name, media, timeout_ms, request_id, int(size), caller, *owners, generation)


def _is_usual(route: Route) -> bool:
    return (
        route.method == "POST"
        and route.serving is Serving.ACTIVE
        and route.has_body
        and route.parameters is Nothing
        and not route.is_raw
    )
