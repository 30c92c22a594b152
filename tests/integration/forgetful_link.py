"""A middle-box between a dialler and a port, over real sockets."""

from __future__ import annotations

import asyncio

HOST = "127.0.0.1"


class ForgetfulLink:
    """Stands between a dialler and a port; swallows a direction without a sign of it, as a network does."""

    def __init__(self, target: int) -> None:
        self.target = target
        #: Way and number of connection, as ``out 1``. New ones pass.
        self.swallowed: set[str] = set()
        self.streams: list[asyncio.StreamWriter] = []
        self.made = 0
        #: One for each connection that was taken and has not ended.
        self._serving: set[asyncio.Task[None]] = set()
        self._is_closed = False
        #: New ones are taken, and nothing passes on them either.
        self.is_down = False
        #: What passes is kept here, too.
        self.keep = bytearray()

    async def start(self) -> int:
        self.server = await asyncio.start_server(self._take, HOST, 0)
        port: int = self.server.sockets[0].getsockname()[1]
        return port

    def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(self._serve(reader, writer))
        self._serving.add(task)
        task.add_done_callback(self._serving.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.made += 1
        number = self.made
        if self.is_down:
            self.swallow("out", "back")
        try:
            there, to_there = await asyncio.open_connection(HOST, self.target)
        except OSError:
            writer.close()
            return
        self.streams += [writer, to_there]
        if self._is_closed:
            writer.transport.abort()
            to_there.transport.abort()
        await asyncio.gather(self._pass(reader, to_there, f"out {number}"), self._pass(there, writer, f"back {number}"))

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, name: str) -> None:
        try:
            while data := await reader.read(65536):
                if name not in self.swallowed:
                    writer.write(data)
                    self.keep += data
        except OSError:
            pass
        if name not in self.swallowed:
            writer.close()

    async def close(self) -> None:
        """End every connection, and wait until nobody serves one."""
        self._is_closed = True
        self.server.close()
        for stream in self.streams:
            stream.transport.abort()
        if self._serving:
            await asyncio.wait(self._serving)

    def go_down(self) -> None:
        """Nothing passes, on whatever connection."""
        self.is_down = True
        self.swallow("out", "back")

    def come_up(self) -> None:
        """New connections pass; those that were there, or were made meanwhile, are forgotten."""
        self.is_down = False

    def swallow(self, *ways: str) -> None:
        """From now on, of the connections that stand: nothing passes, and nobody is told. Ways: ``out``, ``back``."""
        self.swallowed |= {f"{way} {number}" for way in ways for number in range(1, self.made + 1)}
