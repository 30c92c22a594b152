"""TLS between voters, without the socket: bytes of the wire go in, those of frames come out, and the reverse.

Both sides show a certificate of a trusted CA that names them as controllers of this cluster. It is no server's
business of asyncio here, so that a connection is one of the transport's from its first byte: counted among strangers,
bounded in time, and told in the log when it is refused.
"""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from quorate.metadata_log.errors import QuorateError
from quorate.metadata_log.peer_certificates import PeerCertificate
from quorate.quorum.errors import HandshakeRefused, ProtocolError

#: More than the largest record holds: the library gives one at a time.
_READ_BYTES: Final = 65_536
#: Bytes of both sides' certificates and what is around them, before anybody has shown that he is one of us.
_HANDSHAKE_BYTES_MAX: Final = 65_536
#: The first byte of every connection that speaks TLS.
_HANDSHAKE_RECORD: Final = b"\x16"


@dataclass(frozen=True, slots=True)
class QuorumTls:
    """Certificates and CAs, as they are at the moment: each new connection asks again."""

    as_server: Callable[[], ssl.SSLContext]
    as_client: Callable[[], ssl.SSLContext]
    #: Ids of the controllers of this cluster that a certificate (DER) names; raises ``QuorateError`` if it names none.
    controllers: Callable[[bytes], frozenset[int]]
    #: Seconds since 1970, by which certificates end.
    wall_s: Callable[[], float] = time.time


class TlsChannel:
    """One end of one connection."""

    def __init__(self, tls: QuorumTls, *, is_server: bool) -> None:
        self._controllers, self._wall_s = tls.controllers, tls.wall_s
        self._contexts = tls.as_server if is_server else tls.as_client
        self._from_wire, self._to_wire = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._ends = self._contexts().wrap_bio(self._from_wire, self._to_wire, server_side=is_server)
        self._shaken_bytes = 0
        self._shown: PeerCertificate | None = None
        #: Controllers that the peer's certificate names; None until the handshake is through.
        self.peers: frozenset[int] | None = None

    def shake_hands(self, data: bytes = b"") -> bool:
        """Go on with the handshake, with what came from the wire; whether it is through. ``taken`` has to be sent then.

        Raises:
            HandshakeRefused: it failed, or the peer is no controller of this cluster. The alert still has to be sent.
        """
        if data and self._shaken_bytes == 0 and not data.startswith(_HANDSHAKE_RECORD):
            raise HandshakeRefused("it speaks no TLS, and this node has certificates (`tls`): give all voters some")
        self._shaken_bytes += len(data)
        if self._shaken_bytes > _HANDSHAKE_BYTES_MAX:
            raise HandshakeRefused(f"a TLS handshake of more than {_HANDSHAKE_BYTES_MAX} bytes")
        self._from_wire.write(data)
        try:
            self._ends.do_handshake()
        except ssl.SSLWantReadError:
            return False
        except ssl.SSLError as error:
            raise HandshakeRefused(_failure(error)) from error
        shown = self._ends.getpeercert(binary_form=True)
        if shown is None:
            raise HandshakeRefused("it shows no certificate")
        try:
            self.peers = self._controllers(shown)
        except QuorateError as error:
            raise HandshakeRefused(f"its certificate makes no voter: {error}") from error
        self._shown = PeerCertificate.of(self._ends)
        return True

    @property
    def is_renewed(self) -> bool:
        """Whether this node has other certificates or CAs now than this connection was made with."""
        return self._ends.context is not self._contexts()

    def fault(self) -> str | None:
        """The reason for which the peer would be refused now by the certificate that it showed; None: it would not."""
        return None if self._shown is None else self._shown.fault(self._contexts(), self._wall_s())

    def opened(self, data: bytes = b"") -> Iterator[bytes]:
        """The words of the peer, in pieces, once the handshake is through.

        Raises:
            ProtocolError: it is not what the peer sent, or the peer has refused this node's certificate.
        """
        self._from_wire.write(data)
        while True:
            try:
                piece = self._ends.read(_READ_BYTES)
            except ssl.SSLWantReadError:
                return
            except ssl.SSLError as error:  # its farewell, too
                raise ProtocolError(_failure(error)) from error
            if not piece:
                raise ProtocolError("it has ended TLS")
            yield piece

    def seal(self, data: bytes) -> bytes:
        """The bytes that go to the wire for ``data``."""
        rest = memoryview(data)
        while rest:
            rest = rest[self._ends.write(rest) :]
        return self.taken()

    def taken(self) -> bytes:
        """The bytes that have to be sent: parts of a handshake, an alert, or nothing."""
        return self._to_wire.read()


def speaks_tls(data: bytes) -> bool:
    """Whether the first bytes of a connection begin a handshake of TLS, which no frame of a stranger does."""
    return data.startswith(_HANDSHAKE_RECORD + b"\x03")


def _failure(error: ssl.SSLError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is refused: {error.verify_message}"
    said = (error.reason or type(error).__name__).lower().replace("_", " ")
    return f"it refuses this node's certificate: {said}" if " alert " in said else f"TLS failed: {said}"
