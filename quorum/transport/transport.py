"""All connections of one node: two to every other voter, over asyncio's sockets.

The node with the higher id dials. A connection counts once both hellos and both proofs are through; a newer one
takes the place of an older one. Bytes that came on a connection that has been replaced are never looked at. One on
which nothing is heard, or a frame gets nowhere, is closed: see ``silence``.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable
from functools import partial
from typing import Final, Protocol

from quorate.quorum.config import QuorumConfig
from quorate.quorum.errors import Superseded
from quorate.quorum.messages.outbox import Channel
from quorate.quorum.transport.addresses import PeerHost
from quorate.quorum.transport.closed_log import ClosedLog
from quorate.quorum.transport.connection import PeerConnection
from quorate.quorum.transport.dialling import keep_connected
from quorate.quorum.transport.frames import Frame
from quorate.quorum.transport.handshake import (
    NONCE_BYTES,
    Secrets,
    check_binding,
    encode_hello,
    no_secret,
    own_hello,
)
from quorate.quorum.transport.silence import SilenceWatch
from quorate.quorum.transport.tls import QuorumTls

#: Connections that were accepted and have proved nothing yet, at most. Over it the oldest one goes: a handshake takes
#: milliseconds, so a peer's is never the oldest for long, however many others come and say nothing.
UNPROVED_MAX: Final = 64


class TransportOwner(Protocol):
    """The node that is told of connections and messages."""

    @property
    def is_voter(self) -> bool:
        """Whether this node is a voter, as its hello says."""

    def now(self) -> float:
        """Monotonic seconds."""

    def connected(self, peer: int, directory_id: bytes, *, is_voter: bool, version: int) -> None:
        """A consensus connection stands, on which messages are of this version."""

    def disconnected(self, peer: int) -> None:
        """The consensus connection broke."""

    def received(self, peer: int, payload: Frame) -> None:
        """A message; raises ProtocolError to have the connection closed."""

    def read_through(self) -> None:
        """All messages that a connection had were handed over."""

    def superseded(self, error: Superseded) -> None:
        """A peer has proved that this node is of an older generation."""

    def failed(self, error: BaseException) -> None:
        """Report the failure of the task that keeps the connections: the loop would log it and go on without."""


class PeerTransport:
    """See the module."""

    def __init__(
        self, config: QuorumConfig, owner: TransportOwner, secrets: Secrets = no_secret, tls: QuorumTls | None = None
    ) -> None:
        self.config = config
        self.secrets = secrets
        self.tls = tls
        self._owner = owner
        self._server: asyncio.Server | None = None
        #: All that are open, in the order they were made.
        self._open: dict[PeerConnection, None] = {}
        self._established: dict[tuple[int, Channel], PeerConnection] = {}
        self._diallers: list[asyncio.Task[None]] = []
        self._watch = SilenceWatch(config.timing, owner.now())
        self._closed_log = ClosedLog()
        self._timer: asyncio.TimerHandle | None = None
        self._is_closed = False
        #: Set once the last connection is gone after ``close``.
        self._all_gone = asyncio.Event()

    @property
    def port(self) -> int:
        """The port on which this node listens."""
        assert self._server is not None
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    async def start(self) -> None:
        """Listen, and dial every peer with a lower id.

        Raises:
            InvalidQuorumConfig: no secret, and not loopback. OSError: the address is taken.
        """
        own = next(voter for voter in self.config.voters if voter.node_id == self.config.node_id)
        check_binding(own.host, self.secrets())
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: PeerConnection(self, None), own.host, own.port)
        connect_timeout = self.config.timing.connect_timeout
        for voter in self.config.voters:
            if voter.node_id < self.config.node_id:
                addresses = PeerHost(voter.host)
                for channel in Channel:
                    make: Callable[[], PeerConnection] = partial(PeerConnection, self, (voter.node_id, channel))
                    keeping = keep_connected(addresses, voter.port, make, connect_timeout)
                    dialler = asyncio.create_task(keeping)
                    dialler.add_done_callback(self._dialler_ended)
                    self._diallers.append(dialler)
        self._watch = SilenceWatch(self.config.timing, self._owner.now())
        self._look_later()

    async def close(self) -> None:
        """Close everything; nobody is told any more."""
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()
        for task in self._diallers:
            task.cancel()
        await asyncio.gather(*self._diallers, return_exceptions=True)
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

    def silence(self, peer: int) -> float | None:
        """Seconds for which nothing was read on the consensus connection to a peer; None where none stands."""
        connection = self._established.get((peer, Channel.CONSENSUS))
        return None if connection is None else connection.pulse.silence

    # --- from connections ----------------------------------------------------------------------------

    def make_hello(self, channel: Channel) -> bytes:
        """A fresh hello of this node."""
        nonce = secrets.token_bytes(NONCE_BYTES)
        return encode_hello(own_hello(self.config, channel, is_voter=self._owner.is_voter, nonce=nonce))

    def opened(self, connection: PeerConnection) -> None:
        """See ``ConnectionOwner``."""
        self._open[connection] = None
        if self._is_closed:
            connection.close()
            return
        unproved = [one for one in self._open if one.is_open and one.is_accepted and not one.is_established]
        if len(unproved) > UNPROVED_MAX:
            unproved[0].close()

    def established(self, connection: PeerConnection) -> None:
        """See ``ConnectionOwner``."""
        hello = connection.hello
        assert hello is not None
        key = (hello.node_id, hello.channel)
        older = self._established.pop(key, None)
        if older is not None:
            older.close()
            self._tell_lost(key)
        self._established[key] = connection
        if hello.channel is Channel.CONSENSUS:
            self._owner.connected(
                hello.node_id, hello.directory_id, is_voter=hello.is_voter, version=connection.version
            )

    def closes(self, connection: PeerConnection, reason: str, sentence: str, bug: Exception | None = None) -> None:
        """See ``ConnectionOwner``."""
        self._closed_log.closed(connection.peer_name, reason, sentence, self._owner.now(), bug)

    def lost(self, connection: PeerConnection) -> None:
        """See ``ConnectionOwner``."""
        self._open.pop(connection, None)
        if self._is_closed and not self._open:
            self._all_gone.set()
        if connection.hello is not None:
            key = (connection.hello.node_id, connection.hello.channel)
            if self._established.get(key) is connection:
                del self._established[key]
                self._tell_lost(key)

    def received(self, peer: int, frame: Frame) -> None:
        """See ``ConnectionOwner``."""
        self._owner.received(peer, frame)

    def read_through(self) -> None:
        """See ``ConnectionOwner``."""
        self._owner.read_through()

    def superseded(self, error: Superseded) -> None:
        """See ``ConnectionOwner``."""
        self._owner.superseded(error)

    # --- inside --------------------------------------------------------------------------------------

    def _tell_lost(self, key: tuple[int, Channel]) -> None:
        if key[1] is Channel.CONSENSUS and not self._is_closed:
            self._owner.disconnected(key[0])

    def _look_later(self) -> None:
        delay = max(self._watch.next_look - self._owner.now(), 0.0)
        self._timer = asyncio.get_running_loop().call_later(delay, self._look)

    def _dialler_ended(self, dialler: asyncio.Task[None]) -> None:
        error = None if dialler.cancelled() else dialler.exception()
        if error is not None:
            self._owner.failed(error)

    def _look(self) -> None:
        try:
            self._ping_or_close()
            self._closed_log.look(self._owner.now())
        except Exception as error:  # noqa: BLE001  # see ``quorum.fail_stop``
            self._owner.failed(error)
        else:
            self._look_later()

    def _ping_or_close(self) -> None:
        """Ping the idle connections, and close the dead ones and those that got stuck or have lost their right."""
        for connection in list(self._established.values()):
            connection.look_at_certificates()
        look = self._watch.look(self._owner.now(), self._established.values())
        for connection in look.idle:
            connection.ping()
        for connection in look.dead:
            self.closes(connection, "silent", f"silent for {connection.pulse.silence:.1f} s")
            connection.close()
        for connection in look.stuck:
            got, seconds = connection.frames.under_way, connection.pulse.frame_seconds
            self.closes(connection, "stuck", f"{got} bytes of one frame in {seconds:.1f} s, and not its end")
            connection.close()
