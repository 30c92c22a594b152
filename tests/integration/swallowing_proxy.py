"""A wire that swallows: it takes connections and bytes, and from a moment on passes none, without a sign of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit


class SwallowingProxy:
    """Stands before a server. Its connections stay open whatever it swallows."""

    def __init__(self, target: str) -> None:
        self._target = urlsplit(target)
        self.url = ""
        self.is_swallowing = False
        #: Answers are passed on only so many bytes at a time, with a pause in seconds; None: as they come.
        self.drip: tuple[int, float] | None = None
        #: What came from clients while it swallowed.
        self.swallowed = bytearray()
        self._ends: list[asyncio.StreamWriter] = []
        self._serving: set[asyncio.Task[None]] = set()
        self._is_closed = False

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._serving.add(task)
        self._ends.append(writer)
        assert self._target.hostname is not None
        there, to_there = await asyncio.open_connection(self._target.hostname, self._target.port)
        self._ends.append(to_there)
        async with asyncio.TaskGroup() as both:
            both.create_task(self._pass(reader, to_there, is_request=True))
            both.create_task(self._pass(there, writer, is_request=False))

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, is_request: bool) -> None:
        try:
            while data := await reader.read(65_536):
                if self.is_swallowing:
                    self.swallowed += data if is_request else b""
                elif is_request or self.drip is None:
                    writer.write(data)
                else:
                    size, pause_s = self.drip
                    for start in range(0, len(data), size):
                        writer.write(data[start : start + size])
                        if not self._is_closed:
                            await asyncio.sleep(pause_s)
        except OSError:
            pass
        if not self.is_swallowing:
            writer.close()

    async def close(self) -> None:
        self._is_closed = True
        for end in self._ends:
            end.close()
        if self._serving:
            await asyncio.wait(self._serving)


@asynccontextmanager
async def swallowing_proxy(target: str) -> AsyncIterator[SwallowingProxy]:
    """One before a base URL; it passes everything until it is told otherwise."""
    proxy = SwallowingProxy(target)
    listener = await asyncio.start_server(proxy._serve, "127.0.0.1", 0)
    proxy.url = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}"
    try:
        yield proxy
    finally:
        listener.close()
        await proxy.close()
