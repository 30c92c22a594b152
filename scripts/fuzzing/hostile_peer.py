"""A voter that holds the shared secret, completes the handshake, and then does what it likes on its connections."""

from __future__ import annotations

import asyncio
import struct
import time
from collections import Counter, deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from random import Random
from typing import Final

from quorate.quorum.config import QuorumConfig, VoterAddress
from quorate.quorum.messages.outbox import Channel
from quorate.quorum.transport.frames import FRAME_BYTES_MAX, PING, FrameReader, framed
from quorate.quorum.transport.handshake import NONCE_BYTES, decode_hello, encode_hello, own_hello, proof
from quorate.scripts.fuzzing.hostile_messages import HostileMessages
from quorate.scripts.fuzzing.mutating import mutated

_READ_BYTES: Final = 256 * 1024
#: Messages a second on one connection, on the average: a flood of anything would only measure the machine.
_RATE: Final = 100.0
#: Of all that begins: to speak to a connection that is not yet proved, to break the frames themselves.
_UNPROVED_SHARE: Final = 0.05
#: Of the messages on one connection: some last, and are heard with all that they say.
_DAMAGED_SHARES: Final = (0.0, 0.01, 0.1, 0.5)
_BROKEN_FRAME_SHARE: Final = 0.005
_HANDSHAKE_SECONDS: Final = 3.0
_REDIAL_SECONDS: Final = 0.02


class Closed(Exception):
    """The other side closed the connection: it may."""


class HostilePeer:
    """Speaks to one honest node on one channel."""

    def __init__(
        self, config: QuorumConfig, target: VoterAddress, channel: Channel, said: HostileMessages, rng: Random
    ) -> None:
        """``config`` of the voter it plays; ``said`` may be shared among all its connections."""
        self._config = config
        self._target = target
        self._channel = channel
        self._said = said
        self._rng = rng
        #: What it did, and how often.
        self.counts: Counter[str] = Counter()
        self._frames = FrameReader()
        self._waiting: deque[bytes] = deque()
        self._damaged_share = 0.0
        self._reader: asyncio.StreamReader
        self._writer: asyncio.StreamWriter

    async def run(self, ends_at: float) -> None:
        """Until then, on the clock of ``time.monotonic``, or until it is cancelled."""
        while time.monotonic() < ends_at:
            try:
                self._reader, self._writer = await asyncio.open_connection(self._target.host, self._target.port)
            except OSError:
                self.counts["refused connections"] += 1
            else:
                self._frames, self._waiting = FrameReader(), deque()
                self._frames.bytes_max = FRAME_BYTES_MAX
                try:
                    with suppress(Closed, OSError, TimeoutError):
                        await self._use()
                    self.counts["connections that ended"] += 1
                finally:
                    self._writer.transport.abort()
            await asyncio.sleep(_REDIAL_SECONDS)

    async def _use(self) -> None:
        if self._rng.random() < _UNPROVED_SHARE:
            self.counts["wrong handshakes"] += 1
            await self._shake_hands_wrongly()
            return
        async with asyncio.timeout(_HANDSHAKE_SECONDS):
            await self._shake_hands()
        self.counts["proved connections"] += 1
        self._damaged_share = self._rng.choice(_DAMAGED_SHARES)
        try:
            async with asyncio.TaskGroup() as both:
                both.create_task(self._listen())
                both.create_task(self._speak())
        except* (Closed, OSError):
            pass

    # --- handshake -----------------------------------------------------------------------------------

    def _hello(self) -> bytes:
        nonce = self._rng.randbytes(NONCE_BYTES)
        return encode_hello(own_hello(self._config, self._channel, is_voter=self._rng.random() < 0.9, nonce=nonce))

    async def _shake_hands(self) -> None:
        hello = self._hello()
        self._writer.write(framed(hello))
        theirs = await self._frame()
        decode_hello(theirs)
        self._writer.write(framed(proof(b"", hello, theirs)))
        await self._frame()

    async def _shake_hands_wrongly(self) -> None:
        hello = mutated([self._hello()], self._rng)
        self._writer.write(self._rng.choice((framed(hello), hello, framed(b""), struct.pack(">I", 2**31))))
        self._writer.write(framed(self._rng.randbytes(32)))
        async with asyncio.timeout(_HANDSHAKE_SECONDS):
            while await self._reader.read(_READ_BYTES):
                pass

    async def _frame(self) -> bytes:
        while not self._waiting:
            data = await self._reader.read(_READ_BYTES)
            if not data:
                raise Closed
            self._waiting.extend(map(bytes, self._frames.feed(data)))
        return self._waiting.popleft()

    def _payload(self) -> bytes:
        return self._said.payload(time.monotonic(), self._damaged_share)

    # --- behind it -----------------------------------------------------------------------------------

    async def _listen(self) -> None:
        while True:
            frame = await self._frame()
            if frame:  # else a ping
                self._said.heard.note(frame, self._rng)

    async def _speak(self) -> None:
        breaks: tuple[Callable[[], Awaitable[None]], ...] = (
            self._say_too_long,
            self._cut,
            self._dribble,
            self._hold_half,
            self._fall_silent,
        )
        while True:
            if self._rng.random() < _BROKEN_FRAME_SHARE:
                broken = self._rng.choice(breaks)
                self.counts[broken.__name__.strip("_").replace("_", " ")] += 1
                await broken()
            else:
                self.counts["messages"] += 1
                self._writer.write(framed(self._payload()))
            await self._writer.drain()
            await asyncio.sleep(self._rng.expovariate(_RATE))

    async def _say_too_long(self) -> None:
        length = self._rng.choice((FRAME_BYTES_MAX + 1, 2**31, 2**32 - 1))
        self._writer.write(struct.pack(">I", length) + bytes(1000))

    async def _cut(self) -> None:
        frame = framed(self._payload())
        self._writer.write(frame[: self._rng.randrange(len(frame))])
        await self._writer.drain()
        raise Closed

    async def _dribble(self) -> None:
        frame = framed(self._payload())
        for byte in frame[:200]:
            self._writer.write(bytes([byte]))
            await self._writer.drain()
        self._writer.write(frame[200:] + PING * 100)

    async def _hold_half(self) -> None:
        """Memory is taken for the largest frame, and never given a whole one."""
        self._writer.write(struct.pack(">I", FRAME_BYTES_MAX) + bytes(FRAME_BYTES_MAX // 2))
        await self._fall_silent()

    async def _fall_silent(self) -> None:
        """Longer than any connection is left standing in silence."""
        await asyncio.sleep(2 * self._config.timing.silence_max)
