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

from quorate.controller.http.routes.table import ROUTES
from quorate.controller.permissions.permission import ByItem, Open
from quorate.scripts.certificates.authority import CertificateAuthority, KeyPair, Validity
from quorate.scripts.certificates.certificate_files import write_whole
from quorate.scripts.certificates.holders import CertificateHolder, broker_holder, client_holder
from quorate.scripts.cluster.ports import LOOPBACK

#: Of one attempt, in seconds: beyond it, whoever is attacked has let the intruder wait.
ATTEMPT_S: Final = 3.0
_SLOW_S: Final = 0.5
_BIG_BYTES: Final = 2_000_000
_FLOOD: Final = 64
_DAYS: Final = 1
_TRIED: Final = [route for route in ROUTES if not isinstance(route.permission, Open)]


@dataclass(frozen=True, slots=True)
class Doors:
    """The ports of a cluster."""

    quorum: Sequence[int]
    controllers: Sequence[int]
    brokers: Sequence[int]


#: Knocks once, and returns what came of it.
Attempt = Callable[[], Awaitable[str]]


class Intruders:
    """All that is tried. ``rng`` draws the port, the route and the bytes."""

    def __init__(self, doors: Doors, ca: CertificateAuthority, place: Path, rng: Random) -> None:
        """``ca``: of the cluster, which has issued a certificate to a broker and to a user without rights."""
        self._doors = doors
        self._rng = rng
        self._place = place
        valid, now = Validity.of(_DAYS), datetime.now(UTC)
        over = Validity(now - timedelta(days=2), now - timedelta(days=1))
        broker = broker_holder(ca.cluster_id, [4_000], [LOOPBACK])
        foreign = CertificateAuthority.make(ca.cluster_id, valid)
        admin = CertificateHolder("admin", "admin")
        self._nobody = self._context("nobody", ca, None)
        self._user = self._context("user", ca, ca.issue(client_holder("intruder"), valid))
        self._broker = self._context("broker", ca, ca.issue(broker, valid))
        self._expired = self._context("expired", ca, ca.issue(admin, over))
        self._foreign = self._context("foreign", ca, foreign.issue(admin, valid))

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
            "route without a proof": lambda: self._route(self._nobody),
            "route with a wrong token": lambda: self._route(self._nobody, f"Bearer {secrets.token_hex(32)}"),
            "route with a forged seal": lambda: self._route(self._nobody, _forged_seal()),
            "route as a user without rights": lambda: self._route(self._user),
            "route as a broker of another id": lambda: self._route(self._broker),
            "route of a broker process": self._broker_route,
            "head that dribbles": lambda: self._slow(at_http),
            "body that is too big": self._big,
            "flood of connections": lambda: self._flood(at_http),
        }

    def _context(self, name: str, ca: CertificateAuthority, shown: KeyPair | None) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(cadata=ca.pair.certificate.decode())
        context.check_hostname = False
        if shown is not None:
            write_whole(self._place, {f"{name}.pem": shown.certificate, f"{name}.key": shown.key})
            context.load_cert_chain(self._place / f"{name}.pem", self._place / f"{name}.key")
        return context

    async def _bytes(self, ports: Sequence[int], said: bytes) -> str:
        return await _told(self._rng.choice(ports), None, said)

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
        return await _told(self._rng.choice(ports), context, b"GET /v1/status HTTP/1.1\r\nHost: localhost\r\n\r\n")

    async def _route(self, context: ssl.SSLContext, authorization: str = "") -> str:
        """A route that asks for something."""
        route = self._rng.choice(_TRIED)
        path = "/".join("1" if part.startswith("{") else part for part in route.path.split("/"))
        head = _head(route.method, path, b"{}" if route.method != "GET" else b"", authorization)
        came = await _told(self._rng.choice(self._doors.controllers), context, head)
        # What is asked of each item is no refusal of the whole; whether one got through is seen in the state.
        return f"{came} about items" if isinstance(route.permission, ByItem) and came.startswith("2") else came

    async def _broker_route(self) -> str:
        context = self._rng.choice((self._nobody, self._foreign, self._expired))
        path = self._rng.choice(("/v1/process", "/v1/image", "/v1/topics", "/metrics"))
        return await _told(self._rng.choice(self._doors.brokers), context, _head("GET", path, b"", ""))

    async def _slow(self, ports: Sequence[int]) -> str:
        _, writer = await asyncio.open_connection(LOOPBACK, self._rng.choice(ports), ssl=self._nobody)
        for part in (b"GET ", b"/v1/st", b"atus"):
            writer.write(part)
            await asyncio.sleep(_SLOW_S / 3)
        writer.transport.abort()
        return "left"

    async def _big(self) -> str:
        head = _head("POST", "/v1/topics", b"[" * _BIG_BYTES, "")
        return await _told(self._rng.choice(self._doors.controllers), self._nobody, head)

    async def _flood(self, ports: Sequence[int]) -> str:
        port = self._rng.choice(ports)
        opened = await asyncio.gather(*(asyncio.open_connection(LOOPBACK, port) for _ in range(_FLOOD)))
        await asyncio.sleep(_SLOW_S)
        for _, writer in opened:
            writer.transport.abort()
        return "left"


def _forged_seal() -> str:
    now_ms = int(datetime.now(UTC).timestamp() * 1000)
    return f"Quorate-Seal 1.{now_ms}.{secrets.token_hex(32)}.{secrets.token_hex(32)}"


def _head(method: str, path: str, body: bytes, authorization: str) -> bytes:
    lines = [f"{method} {path} HTTP/1.1", "Host: localhost", "Connection: close"]
    if body:
        lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
    if authorization:
        lines.append(f"Authorization: {authorization}")
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


async def _told(port: int, context: ssl.SSLContext | None, said: bytes) -> str:
    """The status of the answer, or how the connection ended without one."""
    try:
        async with asyncio.timeout(ATTEMPT_S):
            reader, writer = await asyncio.open_connection(LOOPBACK, port, ssl=context)
            try:
                writer.write(said)
                line = (await reader.readline()).split()
                return line[1].decode() if line[:1] == [b"HTTP/1.1"] else "closed"
            finally:
                writer.transport.abort()
    except TimeoutError:
        return "no answer"
    except ssl.SSLError:
        return "refused in TLS"
    except OSError:
        return "closed"
