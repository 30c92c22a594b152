"""Whoever knocks at a quorum's port and speaks for itself, frame by frame."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Final

from quorate.quorum.config import QuorumConfig
from quorate.quorum.messages.outbox import Channel
from quorate.quorum.transport.frames import FrameReader, framed
from quorate.quorum.transport.handshake import NONCE_BYTES, encode_hello, own_hello, proof
from quorate.quorum.versions import OLDEST_VERSION
from tests.integration.forgetful_link import HOST
from tests.waiting import PATIENCE_S

#: Of the cluster that it knocks at.
SECRET: Final = b"shared"


class Stranger:
    """Speaks to a port with frames of its own making."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self.writer = reader, writer
        self._frames = FrameReader()
        self._read: list[bytes] = []
        self._after = b""

    @property
    def was_told_more(self) -> bool:
        """Whether anything came that was not taken as a frame, the end being waited for."""
        return bool(self._read or self._after)

    @classmethod
    async def at(cls, port: int) -> Stranger:
        return cls(*await asyncio.open_connection(HOST, port))

    async def frame(self) -> bytes:
        while not self._read:
            data = await self._reader.read(65536)
            assert data, "closed"
            self._read += map(bytes, self._frames.feed(data))
        return self._read.pop(0)

    async def say_hello(self, known: QuorumConfig, oldest_version: int = OLDEST_VERSION) -> tuple[bytes, bytes]:
        """As node 2 of the cluster that node 1 knows; returns both hellos, the own one first.

        ``oldest_version``: of messages that it speaks.
        """
        own = replace(known, node_id=2, directory_id=bytes([2]) * 16)
        said = own_hello(own, Channel.CONSENSUS, is_voter=True, nonce=bytes(NONCE_BYTES))
        newest_version = max(oldest_version, said.newest_version)
        hello = encode_hello(replace(said, oldest_version=oldest_version, newest_version=newest_version))
        self.writer.write(framed(hello))
        return hello, await self.frame()

    async def prove(self, known: QuorumConfig) -> None:
        """Become node 2 of the cluster that node 1 knows."""
        hello, theirs = await self.say_hello(known)
        self.writer.write(framed(proof(SECRET, hello, theirs)))
        await self.frame()

    async def closed(self) -> None:
        """Wait until the other side has closed."""
        async with asyncio.timeout(PATIENCE_S):
            try:
                while data := await self._reader.read(65536):
                    self._after += data
            except OSError:
                pass
        self.writer.close()
