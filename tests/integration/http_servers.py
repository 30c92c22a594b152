"""Servers that listen where a controller should, and misbehave."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from aiohttp import web


@asynccontextmanager
async def server(handler: Callable[[web.Request], Awaitable[web.StreamResponse]]) -> AsyncIterator[str]:
    """One handler for every request; yields the base URL."""
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handler)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


@asynccontextmanager
async def frozen_server() -> AsyncIterator[str]:
    """Takes connections and never answers, as a stopped process does; yields the base URL."""

    end = asyncio.Event()

    async def hold(request: web.Request) -> web.StreamResponse:
        # A handler outlives its connection: whoever hung up must not leave one behind for ever.
        await end.wait()
        return web.Response()

    async with server(hold) as url:
        try:
            yield url
        finally:
            end.set()


@asynccontextmanager
async def closed_port() -> AsyncIterator[str]:
    """A URL whose port refuses connections, as that of a dead process does.

    The port stays bound and nobody listens on it: given back, another test's server could get it.
    """
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{held.getsockname()[1]}"
