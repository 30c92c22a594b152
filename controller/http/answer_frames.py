"""The bytes of the express lane's answers: header for header what the web framework sends.

What the answers of one second say of themselves and of the node is put together once, and so is the whole of the last
reply that was given at once, but for the request's name: most are one and the same object.
"""

from __future__ import annotations

from email.utils import formatdate
from http import HTTPStatus
from typing import NamedTuple

from pydantic import BaseModel

from quorate.controller.api import headers
from quorate.controller.api.content import JSON
from quorate.controller.http.answers import is_refusal, node_headers, status_headers
from quorate.controller.http.dispatch import NO_ROUTE, encode
from quorate.controller.http.ports import Node, NodePosition
from quorate.controller.http.routing import Route

_SECOND_MS = 1_000


class _Ready(NamedTuple):
    """All that there is to send for a reply, before and after the request's name, and as what it is counted."""

    reply: BaseModel
    route: Route
    media: str
    before: bytes
    after: bytes
    counted_as: tuple[str, int]


class AnswerFrames:
    """Makes the bytes of answers, and counts them."""

    def __init__(self, node: Node) -> None:
        self._node = node
        #: Before and after the request's name, the latter up to the value of the content's length.
        self._frames: dict[tuple[int, str, int, bool], tuple[bytes, bytes]] = {}
        self._ready: _Ready | None = None
        #: What both are of: the beginning of a second, and what the node said of itself.
        self._second_ms = 0.0
        self._position: NodePosition | None = None

    def answer(self, route: Route, request_id: str, status: int, body: bytes, media: str, retry_after_s: int) -> bytes:
        """The bytes of an answer. ``retry_after_s``: said where the status is 429."""
        self._node.cluster.counters().note_answer((route.name, status))
        self._refresh()
        before, after = self._frame(status, media, retry_after_s)
        return b"%b%b%b%d\r\n\r\n%b" % (before, request_id.encode("ascii"), after, len(body), body)

    def last_answer(self, request_id: str, status: int, body: bytes) -> bytes:
        """The bytes of an error that no request was the reason of: the connection is closed behind them.

        Nobody knows who is told it, so it says nothing of the cluster.
        """
        self._node.cluster.counters().note_answer((NO_ROUTE, status))
        self._refresh()
        before, after = self._frame(status, JSON, is_told_all=False)
        return b"%b%b\r\nConnection: close%b%d\r\n\r\n%b" % (before, request_id.encode("ascii"), after, len(body), body)

    def answer_at_once(self, route: Route, request_id: str, reply: BaseModel, media: str) -> bytes:
        """The same for a reply that may be the object that was given last."""
        self._refresh()
        ready = self._ready
        if ready is None or ready.reply is not reply or ready.route is not route or ready.media != media:
            ready = self._make_ready(route, reply, media)
        self._node.cluster.counters().note_answer(ready.counted_as)
        return b"%b%b%b" % (ready.before, request_id.encode("ascii"), ready.after)

    def _refresh(self) -> None:
        """Forget what is not so any more."""
        cluster = self._node.cluster
        wall_ms, position = cluster.wall_ms(), cluster.position()
        if position != self._position or not 0 <= wall_ms - self._second_ms < _SECOND_MS:
            self._second_ms, self._position = wall_ms - wall_ms % _SECOND_MS, position
            self._frames.clear()
            self._ready = None

    def _make_ready(self, route: Route, reply: BaseModel, media: str) -> _Ready:
        status, body = encode(reply, media, is_bulk=route.is_bulk)
        before, after = self._frame(status, media)
        whole = b"%b%d\r\n\r\n%b" % (after, len(body), body)
        self._ready = _Ready(reply, route, media, before, whole, (route.name, status))
        return self._ready

    def _frame(
        self, status: int, media: str, retry_after_s: int = 1, *, is_told_all: bool = True
    ) -> tuple[bytes, bytes]:
        frame = self._frames.get((status, media, retry_after_s, is_told_all))
        if frame is None:
            before = (
                f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\nContent-Type: {media}\r\n"
                f"Date: {formatdate(self._second_ms // _SECOND_MS, usegmt=True)}\r\n"
                f"{headers.REQUEST_ID}: "
            )
            about_node = node_headers(self._node, is_told_all=is_told_all and not is_refusal(status))
            said = (*about_node, *status_headers(status, retry_after_s))
            named = "".join(f"{name}: {value}\r\n" for name, value in said)
            after = f"\r\n{named}Content-Length: "
            frame = before.encode("latin-1"), after.encode("latin-1")
            self._frames[status, media, retry_after_s, is_told_all] = frame
        return frame
