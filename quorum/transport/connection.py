"""One TCP connection to a peer, from its first byte to its last: handshake, frames, and what closes it.

Whatever is wrong with what a peer sends ends the connection it came on, and nothing else.
"""

from __future__ import annotations

import asyncio
import secrets
import socket
import time
from typing import Final, Protocol

from quorate.quorum.config import QuorumConfig
from quorate.quorum.errors import HandshakeRefused, ProtocolError, Superseded
from quorate.quorum.messages.outbox import Channel
from quorate.quorum.transport.frames import FRAME_BYTES_MAX, PING, Frame, FrameReader, pieces
from quorate.quorum.transport.handshake import Hello, agreed_version, check_generation, check_hello, decode_hello, proof
from quorate.quorum.transport.silence import Pulse
from quorate.quorum.transport.stray_http import http_answer, is_http
from quorate.quorum.transport.tls import QuorumTls, TlsChannel, speaks_tls
from quorate.quorum.versions import OLDEST_VERSION

#: Seconds from the first byte to the second proof, TLS included.
HANDSHAKE_TIMEOUT: Final = 2.0
#: What is not acknowledged for this many times the silence that ends a connection, its kernel gives up by itself.
_USER_TIMEOUT_FACTOR: Final = 2
_MILLISECONDS: Final = 1000
#: Seconds that what came may take of a turn of the loop, such as the replay of what is committed by it.
_TURN_S_MAX: Final = 0.005


class ConnectionOwner(Protocol):
    """All connections of a node."""

    @property
    def config(self) -> QuorumConfig:
        """Of the node."""

    def secrets(self) -> tuple[bytes, ...]:
        """Those that prove a voter at the moment; the first is the one that this node proves."""

    @property
    def tls(self) -> QuorumTls | None:
        """With which connections are secured; None: they are not."""

    def make_hello(self, channel: Channel) -> bytes:
        """A fresh hello of this node."""

    def opened(self, connection: PeerConnection) -> None:
        """It was made; it may still be refused."""

    def established(self, connection: PeerConnection) -> None:
        """Both proofs are through."""

    def closes(self, connection: PeerConnection, reason: str, sentence: str, bug: Exception | None = None) -> None:
        """It is about to be closed for what ``sentence`` says; ``reason`` is the same for all of a kind.

        ``bug``: what nobody thought of, to be logged with its traceback.
        """

    def lost(self, connection: PeerConnection) -> None:
        """It ended, established or not."""

    def received(self, peer: int, frame: Frame) -> None:
        """A message on an established connection; raises ProtocolError to have it closed."""

    def read_through(self) -> None:
        """The messages so far were handed over."""

    def superseded(self, error: Superseded) -> None:
        """The peer has proved that this node is of an older generation."""


class PeerConnection(asyncio.Protocol):
    """See the module."""

    def __init__(self, owner: ConnectionOwner, dialled: tuple[int, Channel] | None) -> None:
        """``dialled``: whom this node dialled, and on which channel; None where it was dialled."""
        self._owner = owner
        self._dialled = dialled
        self.frames = FrameReader()
        self._own_hello = b""
        self._peer_hello = b""
        self.hello: Hello | None = None
        #: Of the messages on it, once both hellos are said.
        self.version = OLDEST_VERSION
        #: The secret that is proved on this connection: of those that this node believes, whoever dials says which.
        self._secret = b""
        self.is_open = False
        self.is_established = False
        self._tls = None if owner.tls is None else TlsChannel(owner.tls, is_server=dialled is None)
        #: Nothing has come yet.
        self._is_fresh = True
        #: Seconds that what came took in this turn of the loop; None: nothing came yet.
        self._turn_s: float | None = None
        #: It was answered, and nothing that still comes is looked at.
        self._is_astray = False
        self.pulse = Pulse()
        #: Set once whoever dialled it is to dial again: it has ended, or gives up its place.
        self.is_over = asyncio.Event()
        self.stream: asyncio.Transport | None = None
        self._timeout: asyncio.TimerHandle | None = None

    # --- from the loop -------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport) or hasattr(transport, "write")
        self.stream = transport  # type: ignore[assignment]  # uvloop's transports are not asyncio.Transport
        self.is_open = True
        self._timeout = asyncio.get_running_loop().call_later(HANDSHAKE_TIMEOUT, self._give_up)
        self._owner.opened(self)
        try:
            self._bound(self._owner.config)
        except OSError as error:  # it broke as it was made
            self._close_for("broke", str(error))
        if self._dialled is not None and self._tls is None:
            self._say_hello(self._dialled[1])
        elif self._dialled is not None:
            self._open_or_close(b"")

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_open = False
        self.is_over.set()
        if self._timeout is not None:
            self._timeout.cancel()
        self._owner.lost(self)

    def pause_writing(self) -> None:
        """More waits to be sent than may: the peer takes too little, and what comes is dropped from now on."""
        waiting = 0 if self.stream is None else self.stream.get_write_buffer_size()
        self._close_for("takes too little", f"{waiting} bytes wait to be sent")

    def data_received(self, data: bytes) -> None:
        self.pulse.has_read = True
        if self._is_astray or not self.is_open:
            return
        is_first, self._is_fresh = self._is_fresh, False
        if is_first and self.is_accepted and is_http(data):
            self._send_away()
            return
        if is_first and self._tls is None and speaks_tls(data):
            self._close_for(
                "speaks TLS", "it speaks TLS, and this node has no certificates (`tls`): give all voters some"
            )
            return
        begun_s = time.monotonic()
        self._open_or_close(data)
        if self.is_established:
            self._owner.read_through()
        self._took(time.monotonic() - begun_s)

    # --- from the owner ------------------------------------------------------------------------------

    @property
    def is_accepted(self) -> bool:
        """Whether the peer dialled."""
        return self._dialled is None

    @property
    def peer_name(self) -> str:
        """For log lines."""
        if self.hello is not None:
            return f"node {self.hello.node_id}"
        if self._dialled is not None:
            return f"node {self._dialled[0]}"
        address = None if self.stream is None else self.stream.get_extra_info("peername")
        return f"an unknown peer at {address[0]}" if address else "an unknown peer"

    def send(self, payload: bytes) -> None:
        """Send a frame."""
        if self.is_open and self.stream is not None:
            self.pulse.has_sent = True
            for piece in pieces(payload):
                self._write(piece)

    def ping(self) -> None:
        """Let the peer hear that this end lives."""
        if self.is_open and self.stream is not None:
            self._write(PING)

    def look_at_certificates(self) -> None:
        """End the connection when it rests on certificates that are not those of the moment.

        Whoever has dialled it dials another, which takes its place once it stands: nobody is without one in between,
        and no leader is missed. Only if none comes about is it closed. Whoever was dialled can do nothing but close it.
        """
        if self._tls is None or not self.is_open or self.is_over.is_set():
            return
        fault = self._tls.fault()
        if self._dialled is None:
            if fault is not None:
                self._close_for("certificate", fault)
        elif fault is not None or self._tls.is_renewed:
            self.is_over.set()
            why = fault or "this node's certificates or CAs have changed, and it takes no connection by the new ones"
            self._timeout = asyncio.get_running_loop().call_later(
                HANDSHAKE_TIMEOUT, self._close_for, "certificate", why
            )

    def close(self) -> None:
        """Cut the connection; nothing of it is looked at any more, and what waits to be sent is dropped."""
        self.is_open = False
        if self.stream is not None:
            self.stream.abort()

    # --- inside --------------------------------------------------------------------------------------

    def _open_or_close(self, data: bytes) -> None:
        """Do what came, or close for what is wrong with it."""
        try:
            if self._tls is None:
                self._read(data)
            else:
                self._open(self._tls, data)
        except Superseded as error:
            self.close()
            self._owner.superseded(error)
        except ProtocolError as error:
            self._close_for(type(error).__name__, str(error))
        except Exception as error:  # noqa: BLE001
            # The node ends by itself over what is its own fault. What is left is what nobody thought of in a frame.
            self._close_for(type(error).__name__, "a frame of it could not be handled", error)

    def _open(self, tls: TlsChannel, data: bytes) -> None:
        """Do what came in TLS."""
        try:
            if tls.peers is None:
                if not tls.shake_hands(data):
                    return
                data = b""
                if self._dialled is not None:
                    self._say_hello(self._dialled[1])
            for piece in tls.opened(data):
                self._read(piece)
                if not self.is_open:
                    return
        finally:
            if self.is_open and self.stream is not None and (waiting := tls.taken()):
                self.stream.write(waiting)

    def _read(self, data: bytes) -> None:
        """Do what was said."""
        for frame in self.frames.feed(data):
            self._frame(frame)
            if not self.is_open:
                return

    def _took(self, elapsed_s: float) -> None:
        """Let all else that waits for the loop come first: it may read on thirty times in one turn."""
        if self._turn_s is None:
            self._turn_s = 0.0
            asyncio.get_running_loop().call_soon(self._end_turn)
        self._turn_s += elapsed_s
        if self._turn_s > _TURN_S_MAX and self.is_open and self.stream is not None:
            self.stream.pause_reading()

    def _end_turn(self) -> None:
        self._turn_s = None
        if self.is_open and self.stream is not None:
            self.stream.resume_reading()  # of one that was not paused nothing comes of it

    def _check_certificate(self, node_id: int, shown: frozenset[int] | None) -> None:
        if shown is not None and node_id not in shown:
            ids = ", ".join(map(str, sorted(shown)))
            raise HandshakeRefused(f"its certificate is that of controller {ids}, and not of {node_id}")

    def _write(self, data: bytes) -> None:
        assert self.stream is not None
        self.stream.write(data if self._tls is None else self._tls.seal(data))

    def _bound(self, config: QuorumConfig) -> None:
        assert self.stream is not None
        self.stream.set_write_buffer_limits(high=config.limits.write_buffer_bytes)
        user_timeout = getattr(socket, "TCP_USER_TIMEOUT", None)  # Linux; the rule of silence needs no help of it
        if user_timeout is not None:
            milliseconds = int(_USER_TIMEOUT_FACTOR * config.timing.silence_max * _MILLISECONDS)
            self.stream.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, user_timeout, milliseconds)

    def _close_for(self, reason: str, sentence: str, bug: Exception | None = None) -> None:
        self._owner.closes(self, reason, sentence, bug)
        if self.is_established or self.stream is None:
            self.close()
            return
        # What was said in the handshake still leaves: by it the peer may learn why it is refused.
        self.is_open = False
        self.stream.close()

    def _send_away(self) -> None:
        """Somebody speaks HTTP: say where. The client closes, or the time for the handshake is up.

        Closing at once could take the answer back from a client that is still sending.
        """
        assert self.stream is not None
        self._is_astray = True
        config = self._owner.config
        self._owner.closes(self, "speaks HTTP", "it speaks HTTP, and this is the port of the quorum")
        self.stream.write(http_answer(config.node_id, config.http_url))
        self.stream.write_eof()

    def _give_up(self) -> None:
        if not self.is_established:
            self.close()

    def _say_hello(self, channel: Channel) -> None:
        self._own_hello = self._owner.make_hello(channel)
        self.send(self._own_hello)

    def _frame(self, frame: Frame) -> None:
        if self.is_established:
            if frame:  # else a ping
                assert self.hello is not None
                self._owner.received(self.hello.node_id, frame)
        elif self.hello is None:
            self._on_hello(bytes(frame))
        else:
            self._on_proof(bytes(frame))

    def _on_hello(self, frame: bytes) -> None:
        hello = decode_hello(frame)
        check_hello(self._owner.config, hello, None if self._dialled is None else self._dialled[0])
        if self._tls is not None:
            self._check_certificate(hello.node_id, self._tls.peers)
        if self._dialled is None:
            self._say_hello(hello.channel)
        elif hello.channel is not self._dialled[1]:
            raise HandshakeRefused(f"node {hello.node_id} answers on another channel")
        self.version = agreed_version(self._owner.config, hello)
        self.hello = hello
        self._peer_hello = frame
        if not self.is_accepted:
            self._secret = self._owner.secrets()[0]
            self._prove()

    def _prove(self) -> None:
        self.send(proof(self._secret, self._own_hello, self._peer_hello))

    def _is_proof_of(self, secret: bytes, frame: bytes) -> bool:
        return secrets.compare_digest(frame, proof(secret, self._peer_hello, self._own_hello))

    def _on_proof(self, frame: bytes) -> None:
        believed = self._owner.secrets() if self.is_accepted else (self._secret,)
        proved = [secret for secret in believed if self._is_proof_of(secret, frame)]
        if not proved:
            raise HandshakeRefused("the shared secret differs")
        self._secret = proved[0]
        assert self.hello is not None
        if self.is_accepted:
            self._prove()  # also to one of an older generation: by nothing else would it believe that it is
        check_generation(self._owner.config, self.hello)
        self.is_established = True
        self.frames.bytes_max = FRAME_BYTES_MAX
        if self._timeout is not None:
            self._timeout.cancel()
        self._owner.established(self)
