"""Chooses the failed requests that are logged as refusals, and what is written of each."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable
from typing import Final, NamedTuple, Protocol

from aiohttp import web

from quorate.controller.decisions.origin import Origin
from quorate.controller.identity.claims import NoAccess
from quorate.controller.identity.other_ends import address_of
from quorate.controller.protocol import ItemResult
from quorate.metadata_log.audit.refusal_lines import Refusal, RefusalLine
from quorate.metadata_log.errors import ApiError, ErrorCode

#: Of one reply: each has a line of its own.
_ERRORS_MAX: Final = 16


class RefusedRequest(NamedTuple):
    """The facts about a request that is refused, whatever part of the server read it."""

    method: str
    #: Path of its route, with the names of parameters.
    route: str
    #: None where it was refused before anybody knew who asks.
    principal: str | None
    address: str | None
    request_id: str
    #: How it was proved who asks.
    proof: str | None


class RefusalLines(Protocol):
    """``controller.logs.refusal_log.RefusalLog``."""

    def note(self, refusal: Refusal, request_id: str, message: str, count: int = 1) -> None:
        """Requests were refused."""

    def newest(self, lines_max: int) -> list[RefusalLine]:
        """The newest lines, oldest first. Blocks."""


class Refusals:
    """The refusals of one node."""

    def __init__(self, lines: RefusalLines | None = None) -> None:
        """None: the node writes nothing down."""
        self._lines = lines
        #: Refused requests, and things within requests, by the name of the error.
        self.counts: Counter[str] = Counter()

    def note(self, asked: RefusedRequest, error: Exception, status: int) -> None:
        """A request failed. One that would have changed something, or lacks the secret, and was the asker's fault."""
        is_refusal = 400 <= status < 500 and (asked.method not in ("GET", "HEAD") or status in (401, 403))
        if not is_refusal:
            return
        code = error.code if isinstance(error, ApiError) else ErrorCode.INVALID_REQUEST
        self.counts[code.name] += 1
        if self._lines is None:
            return
        said = error.noted if isinstance(error, NoAccess) else str(error)
        self._lines.note(_refusal(asked, code), asked.request_id, said)

    def note_items(self, asked: RefusedRequest, results: Iterable[ItemResult]) -> None:
        """Some of the things that a request asked for were refused."""
        counts: dict[ErrorCode, int] = {}
        messages: dict[ErrorCode, str] = {}
        for result in results:
            code = result.error_code
            if code is not ErrorCode.NONE:
                counts[code] = counts.get(code, 0) + 1
                messages.setdefault(code, result.error_message or code.name)
        for code, count in counts.items():
            self.counts[code.name] += count
        if self._lines is None:
            return
        for code, count in list(counts.items())[:_ERRORS_MAX]:
            self._lines.note(_refusal(asked, code), asked.request_id, messages[code], count)

    async def newest(self, lines_max: int) -> list[RefusalLine]:
        """The newest lines, oldest first."""
        return [] if self._lines is None else await asyncio.to_thread(self._lines.newest, lines_max)


def asked_by(request: web.Request, origin: Origin | None, request_id: str) -> RefusedRequest:
    """A request that the web framework has read."""
    resource = request.match_info.route.resource
    route = "an unknown path" if resource is None else resource.canonical
    if origin is None:
        return RefusedRequest(request.method, route, None, address_of(request) or None, request_id, None)
    return refused_request(request.method, route, origin)


def refused_request(method: str, route: str, origin: Origin) -> RefusedRequest:
    """A request of whoever is known."""
    return RefusedRequest(method, route, origin.principal, origin.address, origin.request_id, origin.proof or None)


def _refusal(asked: RefusedRequest, code: ErrorCode) -> Refusal:
    return Refusal(f"{asked.method} {asked.route}", asked.principal, asked.address, code.name, asked.proof)
