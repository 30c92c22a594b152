"""The HTTP server of one node: its listening sockets, the express lane, and behind it the web framework."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Final

from aiohttp import web, web_app

from quorate.controller.api.tls_contexts import TlsContexts
from quorate.controller.connections.framework_connection import mark_answering
from quorate.controller.connections.framework_handler import FrameworkHandler
from quorate.controller.connections.listening import IDLE_S, ListeningPort
from quorate.controller.http.app import make_app
from quorate.controller.http.dispatch import BODIES_KEY, COUNTS_KEY
from quorate.controller.http.express import ExpressLane
from quorate.controller.http.ports import Node
from quorate.controller.http.routes.table import ROUTES
from quorate.controller.http.routing import Route
from quorate.metadata_log.local_sockets import LocalSocket, SocketUnusable

#: Connections that may wait to be accepted: all brokers come at once after a failover.
_BACKLOG: Final = 1_024


class _LocalListener:
    """A Unix socket, and who takes connections from it."""

    def __init__(self, opened: LocalSocket, server: asyncio.AbstractServer) -> None:
        self._opened = opened
        self._server = server

    @classmethod
    async def open(cls, lane: ExpressLane, path: Path) -> _LocalListener:
        opened = LocalSocket.open(path, _BACKLOG)
        loop = asyncio.get_running_loop()
        return cls(opened, await loop.create_unix_server(lane, sock=opened.socket, backlog=_BACKLOG))

    def close(self) -> None:
        self._server.close()
        self._opened.close()


class HttpServer:
    """Serves until it is closed."""

    def __init__(
        self,
        runner: web.AppRunner,
        lane: ExpressLane,
        listener: ListeningPort,
        at_path: _LocalListener | None,
        grace_s: float,
    ) -> None:
        """See ``start``."""
        self._at_path = at_path
        self._runner = runner
        self._lane = lane
        self._listener = listener
        self._grace_s = grace_s

    @classmethod
    async def start(
        cls,
        node: Node,
        host: str,
        port: int,
        grace_s: float,
        routes: Sequence[Route] = ROUTES,
        *,
        tls: TlsContexts | None = None,
        wants_certificates: bool = False,
        local: Path | None = None,
        idle_s: float = IDLE_S,
    ) -> HttpServer:
        """Listen; port 0 takes a free one. Requests under way get ``grace_s`` when the server is closed.

        ``tls``: with which TLS is spoken to whoever connects; None: none is. A handshake may take as long as a head.
        ``wants_certificates``: who shows none is refused; for ``tls`` then lets clients show one.
        ``local``: path of a Unix socket at which it listens, too; no TLS is spoken there, and no certificate wanted.
        ``idle_s``: for how long a connection may be idle.

        Raises:
            OSError: nobody can listen there. SocketUnusable: nobody can at the path.
        """
        app = make_app(node, routes)
        app.middlewares.insert(0, mark_answering)
        runner = web.AppRunner(app, shutdown_timeout=grace_s)
        await runner.setup()
        server = runner.server
        assert server is not None
        framework, bodies, counts = partial(FrameworkHandler, server, idle_s), app[BODIES_KEY], app[COUNTS_KEY]
        lane = ExpressLane(
            node, routes, framework, bodies, counts, idle_s, tls=tls, wants_certificates=wants_certificates
        )
        at_path = None
        try:
            at_path = None if local is None else await _LocalListener.open(lane, local)
            head_s = node.limits.head_timeout_ms / 1000
            listener = await ListeningPort.open(lane, host, port, _BACKLOG, tls, head_s)
        except (OSError, SocketUnusable):
            if at_path is not None:
                at_path.close()
            await lane.close(0)
            await runner.cleanup()
            raise
        node.cluster.counters().standstills.open(time.monotonic())
        return cls(runner, lane, listener, at_path, grace_s)

    @property
    def port(self) -> int:
        """The port on which it listens."""
        return self._listener.port

    async def close(self) -> None:
        """Take no more connections, let requests under way end, close all connections."""
        await self._listener.close()
        if self._at_path is not None:
            self._at_path.close()
        await self._lane.close(self._grace_s)
        await self._runner.cleanup()
        _forget_ended()


def _forget_ended() -> None:
    """aiohttp keeps handlers of up to 1,024 routes for as long as the process lives, each with its application, and so
    with all of a controller that has ended. What is forgotten of those that serve on is made again when it is wanted.
    """
    kept = getattr(web_app, "_cached_build_middleware", None)  # a part of its own: another version may have none
    if kept is not None:
        kept.cache_clear()
