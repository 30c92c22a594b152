"""Connections between nodes: length-prefixed frames over asyncio streams of our own, two connections to every peer.

The node with the higher id dials. A connection counts once both hellos and both proofs are through; a newer one
takes the place of an older one. Bytes that came on a connection that has been replaced are never looked at.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import struct
from collections.abc import Callable
from typing import Final, Protocol

from quorum.config import QuorumConfig
from quorum.errors import HandshakeRefused, ProtocolError, Superseded
from quorum.handshake import (
    NONCE_BYTES,
    Hello,
    check_binding,
    check_generation,
    check_hello,
    decode_hello,
    encode_hello,
    own_hello,
    proof,
)
from quorum.outbox import Channel

_LENGTH: Final = struct.Struct(">I")
#: Above the largest batch that is read (64 MiB) and its message around it.
_FRAME_BYTES_MAX: Final = 80 * 1024 * 1024
_HANDSHAKE_BYTES_MAX: Final = 1024
#: Seconds between two attempts to reach a peer: doubled from the first to the last.
_REDIAL_MIN: Final = 0.02
_REDIAL_MAX: Final = 0.5
_HANDSHAKE_TIMEOUT: Final = 2.0

logger = logging.getLogger(__name__)


class TransportOwner(Protocol):
    """Who is told of connections and messages."""

    @property
    def is_voter(self) -> bool:
        """What the hello says."""

    def connected(self, peer: int, directory_id: bytes, *, is_voter: bool) -> None:
        """A consensus connection stands."""

    def disconnected(self, peer: int) -> None:
        """The consensus connection broke."""

    def received(self, peer: int, payload: bytes) -> None:
        """A message; raises ProtocolError to have the connection closed."""

    def read_through(self) -> None:
        """All messages that a connection had were handed over."""

    def superseded(self, error: Superseded) -> None:
        """A peer has proved that this node is of an older generation."""


class Connection(asyncio.Protocol):
    """One TCP connection, from its first byte to its last."""

    def __init__(self, transport: PeerTransport, dialled: tuple[int, Channel] | None) -> None:
        self._owner = transport
        self._dialled = dialled
        self._buffer = bytearray()
        self._own_hello = b""
        self._peer_hello = b""
        self.hello: Hello | None = None
        self.is_open = False
        self.is_established = False
        #: Set once it is established or gone.
        self.settled = asyncio.Event()
        self.stream: asyncio.Transport | None = None
        self._timeout: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport) or hasattr(transport, "write")
        self.stream = transport  # type: ignore[assignment]  # uvloop's transports are not asyncio.Transport
        self.is_open = True
        self._owner.opened(self)
        self._timeout = asyncio.get_running_loop().call_later(_HANDSHAKE_TIMEOUT, self._give_up)
        if self._dialled is not None:
            self._say_hello(self._dialled[1])

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_open = False
        self.settled.set()
        if self._timeout is not None:
            self._timeout.cancel()
        self._owner.lost(self, self._dialled)

    def data_received(self, data: bytes) -> None:
        buffer = self._buffer
        if buffer:
            buffer += data
            data = bytes(buffer)
            buffer.clear()
        position, size = 0, len(data)
        try:
            while self.is_open and size - position >= _LENGTH.size:
                (length,) = _LENGTH.unpack_from(data, position)
                if length > (_FRAME_BYTES_MAX if self.is_established else _HANDSHAKE_BYTES_MAX):
                    raise ProtocolError(f"a frame of {length} bytes")
                end = position + _LENGTH.size + length
                if end > size:
                    break
                self._frame(data[position + _LENGTH.size : end])
                position = end
        except ProtocolError as error:
            logger.warning("connection closed: %s", error)
            self.close()
            return
        except Superseded as error:
            self.close()
            self._owner.superseded(error)
            return
        if position < size:
            buffer += data[position:]
        if self.is_established:
            self._owner.read_through()

    def send(self, payload: bytes) -> None:
        """Send a frame."""
        if self.is_open and self.stream is not None:
            self.stream.write(_LENGTH.pack(len(payload)) + payload)

    def close(self) -> None:
        """Cut the connection; nothing of it is looked at any more."""
        self.is_open = False
        if self.stream is not None:
            self.stream.abort()

    def _give_up(self) -> None:
        if not self.is_established:
            self.close()

    def _say_hello(self, channel: Channel) -> None:
        self._own_hello = self._owner.make_hello(channel)
        self.send(self._own_hello)

    def _frame(self, frame: bytes) -> None:
        if self.is_established:
            assert self.hello is not None
            self._owner.received(self, self.hello.node_id, frame)
        elif self.hello is None:
            self._on_hello(frame)
        else:
            self._on_proof(frame)

    def _on_hello(self, frame: bytes) -> None:
        hello = decode_hello(frame)
        check_hello(self._owner.config, hello, None if self._dialled is None else self._dialled[0])
        if self._dialled is None:
            self._say_hello(hello.channel)
        elif hello.channel is not self._dialled[1]:
            raise HandshakeRefused(f"node {hello.node_id} answers on another channel")
        self.hello = hello
        self._peer_hello = frame
        self.send(proof(self._owner.secret, self._own_hello, frame))

    def _on_proof(self, frame: bytes) -> None:
        if not secrets.compare_digest(frame, proof(self._owner.secret, self._peer_hello, self._own_hello)):
            raise HandshakeRefused("the shared secret differs")
        assert self.hello is not None
        check_generation(self._owner.config, self.hello)
        self.is_established = True
        self.settled.set()
        if self._timeout is not None:
            self._timeout.cancel()
        self._owner.established(self)


class PeerTransport:
    """All connections of one node."""

    def __init__(self, config: QuorumConfig, owner: TransportOwner, secret: bytes = b"") -> None:
        self.config = config
        self.secret = secret
        self._owner = owner
        self._server: asyncio.Server | None = None
        self._open: set[Connection] = set()
        self._established: dict[tuple[int, Channel], Connection] = {}
        self._dialers: dict[tuple[int, Channel], asyncio.Task[None]] = {}
        self._wanted: dict[tuple[int, Channel], asyncio.Event] = {}
        self._is_closed = False
        #: Set once the last connection is gone after ``close``.
        self._all_gone = asyncio.Event()

    @property
    def port(self) -> int:
        """Where this node listens."""
        assert self._server is not None
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    async def start(self) -> None:
        """Listen, and dial every peer with a lower id.

        Raises:
            InvalidQuorumConfig: no secret, and not loopback. OSError: the address is taken.
        """
        own = next(voter for voter in self.config.voters if voter.node_id == self.config.node_id)
        check_binding(own.host, self.secret)
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: Connection(self, None), own.host, own.port)
        for voter in self.config.voters:
            if voter.node_id < self.config.node_id:
                for channel in Channel:
                    key = (voter.node_id, channel)
                    self._wanted[key] = asyncio.Event()
                    self._wanted[key].set()
                    self._dialers[key] = asyncio.create_task(self._dial(key, voter.host, voter.port))

    async def close(self) -> None:
        """Close everything; nobody is told any more."""
        self._is_closed = True
        for task in self._dialers.values():
            task.cancel()
        await asyncio.gather(*self._dialers.values(), return_exceptions=True)
        if self._server is not None:
            self._server.close()
        for connection in list(self._open):
            connection.close()
        if self._open:
            await self._all_gone.wait()
        if self._server is not None:
            await self._server.wait_closed()

    def send(self, peer: int, channel: Channel, payload: bytes) -> None:
        """Send if a connection stands; otherwise the message is lost."""
        connection = self._established.get((peer, channel))
        if connection is not None:
            connection.send(payload)

    # --- from connections ----------------------------------------------------------------------------

    def make_hello(self, channel: Channel) -> bytes:
        """A fresh hello of this node."""
        nonce = secrets.token_bytes(NONCE_BYTES)
        return encode_hello(own_hello(self.config, channel, is_voter=self._owner.is_voter, nonce=nonce))

    def opened(self, connection: Connection) -> None:
        """A connection was made; it may still be refused."""
        self._open.add(connection)
        if self._is_closed:
            connection.close()

    def established(self, connection: Connection) -> None:
        """Both proofs are through."""
        hello = connection.hello
        assert hello is not None
        key = (hello.node_id, hello.channel)
        older = self._established.pop(key, None)
        if older is not None:
            older.close()
            self._tell_lost(key)
        self._established[key] = connection
        if hello.channel is Channel.CONSENSUS:
            self._owner.connected(hello.node_id, hello.directory_id, is_voter=hello.is_voter)

    def lost(self, connection: Connection, dialled: tuple[int, Channel] | None) -> None:
        """A connection ended, established or not."""
        self._open.discard(connection)
        if self._is_closed and not self._open:
            self._all_gone.set()
        if connection.hello is not None:
            key = (connection.hello.node_id, connection.hello.channel)
            if self._established.get(key) is connection:
                del self._established[key]
                self._tell_lost(key)
        if dialled is not None:
            self._wanted[dialled].set()

    def received(self, connection: Connection, peer: int, frame: bytes) -> None:
        """A message on an established connection."""
        self._owner.received(peer, frame)

    def read_through(self) -> None:
        """A connection's messages so far were handed over."""
        self._owner.read_through()

    def superseded(self, error: Superseded) -> None:
        """A peer has proved that this node is of an older generation."""
        self._owner.superseded(error)

    # --- inside --------------------------------------------------------------------------------------

    def _tell_lost(self, key: tuple[int, Channel]) -> None:
        if key[1] is Channel.CONSENSUS and not self._is_closed:
            self._owner.disconnected(key[0])

    async def _dial(self, key: tuple[int, Channel], host: str, port: int) -> None:
        """Keep one connection to a peer, for ever."""
        loop = asyncio.get_running_loop()
        make: Callable[[], Connection] = lambda: Connection(self, key)  # noqa: E731  # named for its type
        pause = _REDIAL_MIN
        while True:
            await self._wanted[key].wait()
            self._wanted[key].clear()
            try:
                _, connection = await loop.create_connection(make, host, port)
            except OSError:
                self._wanted[key].set()
            else:
                await connection.settled.wait()
                if connection.is_established:
                    pause = _REDIAL_MIN
                    continue
            await asyncio.sleep(pause)
            pause = min(2 * pause, _REDIAL_MAX)
