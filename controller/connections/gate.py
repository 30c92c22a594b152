"""The gate of one server: which connections may be, and what is told to one that may not, or not any more.

A server's protocol enters each connection here. The web framework's requests are read by a ``FrameworkConnection``, so
that those are ended here whose head takes too long.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, Protocol, TypeAlias

import structlog

from quorate.controller.api.errors import HttpRefusal
from quorate.controller.api.networks import network_of
from quorate.controller.api.tls_contexts import TlsContexts
from quorate.controller.api.tls_entrance import Handshake
from quorate.controller.connections.framework_connection import FrameworkConnection
from quorate.controller.connections.http_counts import HttpCounts
from quorate.controller.connections.places import LIMIT, Leaving, Places
from quorate.controller.connections.unread_answers import UnreadAnswers
from quorate.metadata_log.errors import ApiError, ErrorCode, Overloaded
from quorate.metadata_log.peer_certificates import PeerCertificate

log = structlog.get_logger()

#: Connections that have had their time are looked for this often, as a share of the shortest time.
SWEEP_SHARE: Final = 0.05
#: Whoever comes by the Unix socket has no address of his own, and shares none with those who come from this machine.
_LOCAL: Final = "the Unix socket"
#: Seconds between two lines of the log about connections that there is no place for.
_QUIET_S: Final = 10.0


class ServedConnection(Protocol):
    """A connection on which requests come."""

    transport: asyncio.Transport

    def close(self) -> None:
        """Close the connection, and give up what is under way."""


class CertifiedConnection(Protocol):
    """A connection that was made with a certificate, or without."""

    @property
    def certificate(self) -> PeerCertificate | None:
        """Shown by the client; None: none was."""

    def leave(self) -> None:
        """Close the connection behind the next answer or, where nothing is asked until this is said again, then."""


#: Whoever has a place.
Holder: TypeAlias = ServedConnection | Handshake


class Server(Protocol):
    """The server behind the gate."""

    counts: HttpCounts

    def admit(self, address: str, now_ms: float) -> None:
        """Count one more connection from an IP address, where connections have a rate.

        Raises:
            Overloaded: it is one too many.
        """

    def last_answer(self, error: ApiError) -> bytes:
        """The bytes of an answer that no request was the reason of: the connection is closed behind them."""

    def note_refused(self) -> None:
        """Count a connection that was refused, or closed for others that asked."""

    def note_displaced(self, whose: str) -> None:
        """Count one that was closed for others: a ``stranger``'s, a ``principal``'s, or a ``reader``'s, who did not
        read.
        """


@dataclass(frozen=True, slots=True)
class GateLimits:
    """The limits of one server's connections."""

    connections_max: int
    connections_per_address_max: int
    #: That the head of a request may take.
    head_s: float
    #: For which a stranger may be silent.
    silence_s: float


class Gate:
    """Lets connections in, and sends away those that have had their time. Owned by the loop thread."""

    def __init__(
        self,
        server: Server,
        limits: GateLimits,
        tls: TlsContexts | None = None,
        wall_s: Callable[[], float] = time.time,
    ) -> None:
        """``tls``: with whose CAs clients' certificates are looked at. ``wall_s``: seconds since 1970."""
        self._server = server
        self._tls, self._wall_s = tls, wall_s
        self._head_s, self._silence_s = limits.head_s, limits.silence_s
        self._refused, self._silent_until = 0, 0.0
        self._clock = asyncio.get_running_loop().time
        #: Of all connections, and of handshakes.
        self.places: Places[Holder] = Places(limits.connections_max, limits.connections_per_address_max)
        server.counts.connections = self.places
        #: Those that the framework answers.
        self.handed_over: set[FrameworkConnection] = set()
        #: On which answers are not taken as fast as they come.
        self.unread: UnreadAnswers[ServedConnection] = UnreadAnswers()

    def enter(self, holder: Holder, address: str, *, is_local: bool = False) -> bool:
        """Whether one more connection may be; the one that may not is told so, if it can be, and closed.

        ``is_local``: it came by the Unix socket.
        """
        now = self._clock()
        try:
            if not is_local:
                self._server.admit(address, now * 1000)
            leaving = self.places.enter(holder, _LOCAL if is_local else network_of(address), now)
        except Overloaded as error:
            self._send_away(holder, error)
            return False
        if leaving is not None:
            self._displace(leaving)
        return True

    def enter_after(
        self, connection: ServedConnection, handshake: Handshake | None, address: str, *, is_local: bool = False
    ) -> bool:
        """The same for one whose handshake is through; that has a place already. None: there was no handshake."""
        if handshake is None:
            return self.enter(connection, address, is_local=is_local)
        self.places.pass_on(handshake, connection)
        return True

    def prove(self, connection: ServedConnection, owner: str | None) -> None:
        """Whoever is at its other end has shown that he may ask: this principal; None: one of the cluster's own.

        Raises:
            NoPlace: there is none for one more of his.
        """
        leaving = self.places.prove(connection, owner, self._clock())
        if leaving is not None:
            self._displace(leaving)

    def hand_over(
        self, connection: ServedConnection, framework: asyncio.Protocol, data: bytes, head_since: float
    ) -> None:
        """A request that begins so, and all that follow on the connection, are the framework's.

        ``head_since``: when its head began to come, by the loop's clock.
        """
        successor = FrameworkConnection(connection.transport, framework, self)
        self.places.pass_on(connection, successor)
        self.look_at_certificates([successor])
        successor.take_over(data, head_since, is_paused=self.unread.end(connection))

    def begin_unread(self, connection: ServedConnection) -> None:
        """An answer is not taken as fast as it comes: ``unread.end`` says when it is. Cut it where there is no room."""
        if not self.unread.begin(connection, self.places.owner(connection), self._clock()):
            self._cut(connection)

    def sweep(self) -> None:
        """Close the connections that have had their time."""
        now = self._clock()
        for reader in self.unread.slow(now):
            self._cut(reader)
        for slow in list(self.handed_over):
            if slow.head_since is not None and slow.head_since <= now - self._head_s:
                message = f"the head of a request may take {self._head_s:g} s: line, headers and an empty line"
                self.dismiss(slow.transport, HttpRefusal(408, message, ErrorCode.REQUEST_TIMED_OUT))
        for stranger in self.places.silent_strangers(now - self._silence_s):
            stranger.close()
        self.look_at_certificates(list(self.handed_over))

    def look_at_certificates(self, connections: Iterable[CertifiedConnection]) -> None:
        """Let those go, between two requests, whose client's certificate has ended, or is of a CA that is trusted no
        more: the right that it was made with is gone.
        """
        if self._tls is None:
            return
        context, now_s = self._tls(), self._wall_s()
        for connection in connections:
            if connection.certificate is not None and connection.certificate.fault(context, now_s) is not None:
                connection.leave()

    def dismiss(self, transport: asyncio.Transport, error: ApiError) -> None:
        """Say why, and close the connection."""
        self._server.counts.note_failure(error)
        transport.write(self._server.last_answer(error))
        transport.close()

    def _cut(self, reader: ServedConnection) -> None:
        """Nothing can be told: an answer is under way."""
        reader.transport.abort()
        self._server.note_displaced("reader")
        why = "an answer was not taken, or answers of one principal, or all, had too many bytes that were not"
        self._server.counts.note_failure(Overloaded(why, "unread_answers"))
        self._note(why)

    def _displace(self, leaving: Leaving[Holder]) -> None:
        self._server.note_displaced("stranger" if leaving.was_stranger else "principal")
        why = Overloaded(leaving.why, LIMIT)
        if leaving.was_waiting:
            self._close(leaving.holder, why)  # nobody can say that nothing was changed
            self._note(leaving.why)
        else:
            self._send_away(leaving.holder, why)

    def _send_away(self, holder: Holder, why: Overloaded) -> None:
        if isinstance(holder, Handshake):
            self._close(holder, why)  # before the handshake nothing can be told
        else:
            self.dismiss(holder.transport, why)
        self._note(str(why))

    def _close(self, holder: Holder, why: Overloaded) -> None:
        self._server.counts.note_failure(why)
        holder.close()

    def _note(self, why: str) -> None:
        self._refused += 1
        self._server.note_refused()
        now = self._clock()
        if now >= self._silent_until:
            self._silent_until = now + _QUIET_S
            log.warning("http.connections_refused", most=self.places.most, refused=self._refused, why=why)
            self._refused = 0
