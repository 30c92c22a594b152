"""Whoever knocks at a quorum's port and speaks for itself, frame by frame."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Final

from quorate.quorum.config import QuorumConfig
from quorate.quorum.messages.outbox import Channel
from quorate.quorum.transport.frames import FrameReader, framed
from quorate.quorum.transport.handshake import NONCE_BYTES, encode_hello, own_hello, proof
from tests.integration.forgetful_link import HOST

#: Of the cluster that it knocks at.
SECRET: Final = b"shared"


class Stranger:
    """Speaks to a port with frames of its own making."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self.writer = reader, writer
        self._frames = FrameReader()
        self._read: list[bytes] = []

    @classmethod
    async def at(cls, port: int) -> Stranger:
        return cls(*await asyncio.open_connection(HOST, port))

    async def frame(self) -> bytes:
        while not self._read:
            data = await self._reader.read(65536)
            assert data, "closed"
            self._read += self._frames.feed(data)
        return self._read.pop(0)

    async def prove(self, known: QuorumConfig) -> None:
        """Become node 2 of the cluster that node 1 knows."""
        own = replace(known, node_id=2, directory_id=bytes([2]) * 16)
        hello = encode_hello(own_hello(own, Channel.CONSENSUS, is_voter=True, nonce=bytes(NONCE_BYTES)))
        self.writer.write(framed(hello))
        theirs = await self.frame()
        self.writer.write(framed(proof(SECRET, hello, theirs)))
        await self.frame()

    async def closed(self) -> None:
        """Wait until the other side has closed."""
        async with asyncio.timeout(10):
            try:
                while await self._reader.read(65536):
                    pass
            except OSError:
                pass
        self.writer.close()
