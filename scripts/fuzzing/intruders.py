"""Intruders: whoever knocks at a port with no, a wrong or too little right, and what comes of it, in a word."""

from __future__ import annotations

import asyncio
import secrets
import ssl
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Final

from quorate.controller.api.resources import BrokerReply
from quorate.controller.http.routes.table import ROUTES
from quorate.controller.permissions.permission import ByItem, Open
from quorate.scripts.certificates.authority import CertificateAuthority, KeyPair, Validity
from quorate.scripts.certificates.certificate_files import write_whole
from quorate.scripts.certificates.holders import CertificateHolder, broker_holder, client_holder
from quorate.scripts.cluster.ports import LOOPBACK
from quorate.scripts.fuzzing.knocking import knock, request
from quorate.scripts.fuzzing.replays import replay
from quorate.scripts.fuzzing.weak_identities import LISTS, FalseBrokers, as_another_user, listed

_SLOW_S: Final = 0.5
_BIG_BYTES: Final = 2_000_000
_FLOOD: Final = 64
_DAYS: Final = 1
_BROKERS_TELL: Final = ("/v1/process", "/v1/image", "/v1/topics", "/metrics")
#: Of these, what is asked is asked of each item: whoever is known and may describe nothing is told an empty list.
_BROKERS_LIST: Final = ("/v1/topics",)
_TRIED: Final = [route for route in ROUTES if not isinstance(route.permission, Open)]


@dataclass(frozen=True, slots=True)
class Doors:
    """The ports of a cluster, and the Unix sockets of its controllers."""

    quorum: Sequence[int]
    controllers: Sequence[int]
    brokers: Sequence[int]
    sockets: Sequence[Path]


@dataclass(frozen=True, slots=True)
class Overheard:
    """The knowledge that intruders have of a cluster."""

    #: Its CA, which has issued certificates to a broker that there is not, and to a user without rights.
    ca: CertificateAuthority
    brokers: Sequence[BrokerReply]
    #: Makes the bytes of a request as a controller sends it to another.
    sealed: Callable[[str, str], bytes]
    #: The wire's bytes of sessions of honest nodes: a voter's at the quorum, the administrator's at a controller.
    sessions: Sequence[tuple[Sequence[int], bytes]]


#: Knocks once, and returns what came of it.
Attempt = Callable[[], Awaitable[str]]


class Intruders:
    """All that is tried. ``rng`` draws the port, the route and the bytes."""

    def __init__(self, doors: Doors, known: Overheard, place: Path, rng: Random) -> None:
        """``place``: for the files of their certificates."""
        self._doors = doors
        self._known = known
        self._rng = rng
        self._place = place
        ca = known.ca
        valid, now = Validity.of(_DAYS), datetime.now(UTC)
        over = Validity(now - timedelta(days=2), now - timedelta(days=1))
        foreign = CertificateAuthority.make(ca.cluster_id, valid)
        admin = CertificateHolder("admin", "admin")
        self._nobody = self._context("nobody", ca, None)
        self._user = self._context("user", ca, ca.issue(client_holder("intruder"), valid))
        self._broker = self._context("broker", ca, self._of_broker(4_000))
        self._expired = self._context("expired", ca, ca.issue(admin, over))
        self._foreign = self._context("foreign", ca, foreign.issue(admin, valid))
        own = {one.id: self._context(f"broker-{one.id}", ca, self._of_broker(one.id)) for one in known.brokers}
        self._false = FalseBrokers(doors.controllers, known.brokers, own, self._broker, ca.cluster_id, rng)

    @property
    def attempts(self) -> dict[str, Attempt]:
        """By what is tried."""
        at_http = (*self._doors.controllers, *self._doors.brokers)
        everywhere = (*self._doors.quorum, *at_http)
        return {
            "garbage": lambda: self._bytes(everywhere, self._rng.randbytes(self._rng.randrange(1, 4_000))),
            "plain HTTP": lambda: self._bytes(everywhere, b"GET /v1/status HTTP/1.1\r\nHost: localhost\r\n\r\n"),
            "half a handshake": lambda: self._half(everywhere),
            "broker's certificate at the quorum": lambda: self._shake(self._doors.quorum, self._broker),
            "user's certificate at the quorum": lambda: self._shake(self._doors.quorum, self._user),
            "another CA's certificate": lambda: self._shake(everywhere, self._foreign),
            "expired certificate": lambda: self._shake(everywhere, self._expired),
            "recorded session, once more": self._session_again,
            "recorded seal, once more": self._seal_again,
            "route without a proof": lambda: self._route(self._nobody),
            "route with a wrong token": lambda: self._route(self._nobody, f"Bearer {secrets.token_hex(32)}"),
            "route with a forged seal": lambda: self._route(self._nobody, _forged_seal()),
            "route as a user without rights": lambda: self._route(self._user),
            "route as a broker of another id": lambda: self._route(self._broker),
            "route of a broker process": self._broker_route,
            "list for who may describe nothing": self._list,
            "heartbeat for another broker": self._false.heartbeat_for_another,
            "heartbeat of another incarnation": self._false.heartbeat_of_before,
            "second incarnation of a broker": self._false.second_incarnation,
            "socket as another user": lambda: self._socket(gets_by_modes=False),
            "socket past the modes of files": lambda: self._socket(gets_by_modes=True),
            "head that dribbles": lambda: self._slow(at_http),
            "body that is too big": self._big,
            "flood of connections": lambda: self._flood(at_http),
        }

    def _of_broker(self, broker_id: int) -> KeyPair:
        ca = self._known.ca
        return ca.issue(broker_holder(ca.cluster_id, [broker_id], [LOOPBACK]), Validity.of(_DAYS))

    def _context(self, name: str, ca: CertificateAuthority, shown: KeyPair | None) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(cadata=ca.pair.certificate.decode())
        context.check_hostname = False
        if shown is not None:
            write_whole(self._place, {f"{name}.pem": shown.certificate, f"{name}.key": shown.key})
            context.load_cert_chain(self._place / f"{name}.pem", self._place / f"{name}.key")
        return context

    async def _bytes(self, ports: Sequence[int], said: bytes) -> str:
        return await knock(self._rng.choice(ports), None, said)

    async def _half(self, ports: Sequence[int]) -> str:
        """A ClientHello, or a part of one, and nothing more for a while."""
        to_server = ssl.MemoryBIO()
        ends = self._nobody.wrap_bio(ssl.MemoryBIO(), to_server, server_hostname=LOOPBACK)
        with suppress(ssl.SSLWantReadError):
            ends.do_handshake()
        hello = to_server.read()
        _, writer = await asyncio.open_connection(LOOPBACK, self._rng.choice(ports))
        writer.write(hello[: self._rng.randrange(1, len(hello) + 1)])
        await asyncio.sleep(_SLOW_S)
        writer.transport.abort()
        return "left"

    async def _shake(self, ports: Sequence[int], context: ssl.SSLContext) -> str:
        return await knock(self._rng.choice(ports), context, b"GET /v1/status HTTP/1.1\r\nHost: localhost\r\n\r\n")

    async def _route(self, context: ssl.SSLContext, authorization: str = "") -> str:
        """A route that asks for something."""
        route = self._rng.choice(_TRIED)
        head = request(route.method, _some(route.path), b"{}" if route.method != "GET" else b"", authorization)
        came = await knock(self._rng.choice(self._doors.controllers), context, head)
        # What is asked of each item is no refusal of the whole; whether one got through is seen in the state.
        return f"{came} about items" if isinstance(route.permission, ByItem) and came.startswith("2") else came

    async def _broker_route(self) -> str:
        context = self._rng.choice((self._nobody, self._foreign, self._expired, self._user))
        path, port = self._rng.choice(_BROKERS_TELL), self._rng.choice(self._doors.brokers)
        if path in _BROKERS_LIST:
            return await listed(port, path, context)
        return await knock(port, context, request("GET", path))

    async def _session_again(self) -> str:
        ports, sent = self._rng.choice(self._known.sessions)
        return await replay(self._rng.choice(ports), sent)

    async def _seal_again(self) -> str:
        """By whoever has read it, over a connection of his own."""
        context, route = self._rng.choice((self._nobody, self._user, self._broker)), self._rng.choice(_TRIED)
        said = self._known.sealed(route.method, _some(route.path))
        came = await knock(self._rng.choice(self._doors.controllers), context, said)
        # A controller may do little by HTTP: any other answer than this one was given to a controller.
        return f"let in as a controller: {came}" if came.isdigit() and came != "401" else came

    async def _list(self) -> str:
        context = self._rng.choice((self._nobody, self._user, self._broker))
        return await listed(self._rng.choice(self._doors.controllers), self._rng.choice(LISTS), context)

    async def _socket(self, *, gets_by_modes: bool) -> str:
        return await as_another_user(self._rng.choice(self._doors.sockets), gets_by_modes=gets_by_modes)

    async def _slow(self, ports: Sequence[int]) -> str:
        _, writer = await asyncio.open_connection(LOOPBACK, self._rng.choice(ports), ssl=self._nobody)
        for part in (b"GET ", b"/v1/st", b"atus"):
            writer.write(part)
            await asyncio.sleep(_SLOW_S / 3)
        writer.transport.abort()
        return "left"

    async def _big(self) -> str:
        head = request("POST", "/v1/topics", b"[" * _BIG_BYTES)
        return await knock(self._rng.choice(self._doors.controllers), self._nobody, head)

    async def _flood(self, ports: Sequence[int]) -> str:
        port = self._rng.choice(ports)
        opened = await asyncio.gather(*(asyncio.open_connection(LOOPBACK, port) for _ in range(_FLOOD)))
        await asyncio.sleep(_SLOW_S)
        for _, writer in opened:
            writer.transport.abort()
        return "left"


def _some(path: str) -> str:
    """The path of a route, with something in the place of each of its names."""
    return "/".join("1" if part.startswith("{") else part for part in path.split("/"))


def _forged_seal() -> str:
    now_ms = int(datetime.now(UTC).timestamp() * 1000)
    return f"Quorate-Seal 1.{now_ms}.{secrets.token_hex(32)}.{secrets.token_hex(32)}"
