"""Connections to a broker process as they come: each has a place, or is told that there is none."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from http import HTTPStatus
from typing import Final, cast

from quorate.broker.settings import BrokerHttpSettings
from quorate.controller.api import sockets
from quorate.controller.api.errors import error_reply, status_of
from quorate.controller.api.request_ids import request_id_of
from quorate.controller.api.tls_contexts import TlsContexts
from quorate.controller.api.tls_entrance import Handshake
from quorate.controller.connections.gate import SWEEP_SHARE, Gate, GateLimits
from quorate.controller.connections.http_counts import HttpCounts
from quorate.controller.connections.open_files import places
from quorate.controller.identity.other_ends import other_end
from quorate.metadata_log.errors import ApiError

#: What a process of brokers opens besides the connections of its HTTP API: those to the controllers and to other
#: processes, files that are read again, and what the system takes from its queue in one turn of the loop.
_OTHER_FILES: Final = 192


class Arrivals:
    """Makes the protocol of each connection to one server. ``ConnectionServer``, and ``gate.Server``."""

    def __init__(
        self,
        framework: Callable[[], asyncio.Protocol],
        settings: BrokerHttpSettings,
        tls: TlsContexts | None,
        counts: HttpCounts,
    ) -> None:
        """``framework`` makes the protocol that reads requests. ``tls``: that is spoken; None: none is."""
        self.framework = framework
        self.counts = counts
        #: Those on which nothing has come yet.
        self.connections: set[Arrival] = set()
        #: Connections that were refused, or closed for others.
        self.refused = 0
        most, head_s = places(settings.connections_max, _OTHER_FILES), settings.head_timeout_ms / 1000
        # All come from this machine: an address tells nobody from others, and bounds nobody.
        self.gate = Gate(self, GateLimits(most, most + 1, head_s, head_s), tls)
        self._sweep_s = head_s * SWEEP_SHARE
        self._sweep_timer = self._schedule_sweep()

    def __call__(self) -> Arrival:
        return Arrival(self, None)

    def enter(self, handshake: Handshake) -> bool:
        """See ``Door``."""
        return self.gate.enter(handshake, handshake.address)

    def leave(self, handshake: Handshake) -> None:
        """See ``Door``."""
        self.gate.places.leave(handshake)

    def protocol(self, handshake: Handshake) -> Arrival:
        """See ``Door``."""
        return Arrival(self, handshake)

    def admit(self, address: str, now_ms: float) -> None:
        """See ``gate.Server``: connections have no rate here."""

    def last_answer(self, error: ApiError) -> bytes:
        """See ``gate.Server``."""
        status, body = HTTPStatus(status_of(error)), error_reply(error, request_id_of("")).model_dump_json().encode()
        come_again = "Retry-After: 1\r\n" if status == HTTPStatus.TOO_MANY_REQUESTS else ""
        head = (
            f"HTTP/1.1 {status.value} {status.phrase}\r\nContent-Type: application/json\r\n{come_again}"
            f"Connection: close\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        return head.encode("ascii") + body

    def note_refused(self) -> None:
        """See ``gate.Server``."""
        self.refused += 1

    def note_displaced(self, whose: str) -> None:
        """See ``gate.Server``: it is among the refused."""

    def close(self) -> None:
        """Close those on which nothing came; the framework closes the others."""
        self._sweep_timer.cancel()
        for connection in list(self.connections):
            connection.close()

    def _schedule_sweep(self) -> asyncio.TimerHandle:
        return asyncio.get_running_loop().call_later(self._sweep_s, self._sweep)

    def _sweep(self) -> None:
        self.gate.sweep()
        self._sweep_timer = self._schedule_sweep()


class Arrival(asyncio.Protocol):
    """One connection, until the first bytes come on it."""

    def __init__(self, arrivals: Arrivals, handshake: Handshake | None) -> None:
        """``handshake``: the one that it had before; None: no TLS is spoken."""
        self._arrivals = arrivals
        self._handshake = handshake
        self._opened_at = asyncio.get_running_loop().time()
        self.transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        if self._arrivals.gate.enter_after(self, self._handshake, other_end(transport).address):
            self._arrivals.connections.add(self)
            sockets.watch(transport.get_extra_info("socket"), sockets.TO_A_CLIENT)

    def data_received(self, data: bytes) -> None:
        self._arrivals.connections.discard(self)
        self._arrivals.gate.hand_over(self, self._arrivals.framework(), data, self._opened_at)

    def connection_lost(self, error: Exception | None) -> None:
        self._arrivals.connections.discard(self)
        self._arrivals.gate.places.leave(self)

    def close(self) -> None:
        """Close the connection."""
        self.transport.close()
