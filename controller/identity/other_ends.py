"""The other ends of connections: their address and, as far as the connection itself says it, who is there.

There is one rule for the address that ACLs, quotas, bounds and logs go by: it is the connection's, and of a Unix socket
this machine's. What a header says counts for nothing, but for that of a controller that passes a request on
(``identity.claims``): behind a proxy all clients have the proxy's address.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Mapping
from typing import Final, NamedTuple

from aiohttp import web

from quorate.controller.api import headers
from quorate.controller.api.errors import HttpRefusal
from quorate.controller.api.tls_entrance import certificate_of, peer_certificate
from quorate.controller.identity.claims import RequestClaims

#: Where whoever asks through a Unix socket asks from.
LOCAL_ADDRESS: Final = "127.0.0.1"
#: The headers that say who asks. Of two, one program takes the first, and another the last: each knows somebody else.
_ONCE: Final = (
    "Authorization",
    headers.PRINCIPAL,
    headers.CLIENT_ID,
    headers.CLIENT,
    headers.IDENTITY,
    headers.PROXY,
    headers.HOPS,
)
#: Process, user and group at the other end.
_CREDENTIALS: Final = struct.Struct("3i")


class OtherEnd(NamedTuple):
    """The other end of a connection, as that itself says."""

    #: IP address; empty where nobody knows it.
    address: str
    #: The certificate (DER) that it was made with, of a CA that is trusted; None: none was shown.
    certificate: bytes | None = None
    #: The user at the other end of a Unix socket, as the kernel says; None: it is no such socket.
    uid: int | None = None


def other_end(transport: asyncio.BaseTransport) -> OtherEnd:
    """The other end of a connection."""
    connected, peer = transport.get_extra_info("socket"), transport.get_extra_info("peername")
    if connected is not None and connected.family == socket.AF_UNIX:
        return OtherEnd(LOCAL_ADDRESS, uid=_uid(connected))
    return OtherEnd(peer[0] if peer else "", certificate_of(transport))


def sender_of(request: web.Request) -> OtherEnd:
    """The other end of the connection that a request came on."""
    if request.remote == "" and request.transport is not None:
        return other_end(request.transport)
    return OtherEnd(address_of(request), peer_certificate(request))


def claims_of(request: web.Request) -> RequestClaims:
    """A request's account of who makes it.

    Raises:
        HttpRefusal: 400, a header that says who asks is there more than once.
    """
    end, fields = sender_of(request), _fields_of(request)
    return RequestClaims(request.method, request.raw_path, end.address, fields, end.certificate, end.uid)


def _fields_of(request: web.Request) -> Mapping[str, str]:
    """The headers, by their names in any case."""
    for name in _ONCE:
        if len(request.headers.getall(name, ())) > 1:
            raise HttpRefusal(400, f"header {name} was given more than once: it says who asks, send one")
    return request.headers


def address_of(request: web.Request) -> str:
    """IP address of whoever sent a request; empty where nobody knows: the connection was lost before it was asked."""
    return LOCAL_ADDRESS if request.remote == "" else request.remote or ""


def _uid(connected: socket.socket) -> int:
    _, uid, _ = _CREDENTIALS.unpack(connected.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))
    return int(uid)
