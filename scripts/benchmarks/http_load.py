"""A client that costs next to nothing: the requests of ``client.client`` byte for byte, without its comforts.

Load and controllers share the processor here; what is measured is to be theirs.
"""

from __future__ import annotations

import asyncio
import ssl
from dataclasses import dataclass
from typing import Final, Self, cast
from urllib.parse import urlsplit

from aiohttp.http import SERVER_SOFTWARE
from pydantic import BaseModel

from quorate.controller.api import headers
from quorate.controller.api.content import JSON, MSGPACK, pack
from quorate.metadata_log.errors import QuorateError

_HEAD_END: Final = b"\r\n\r\n"
_LENGTH: Final = b"Content-Length: "
_HIGH_WATERMARK: Final = f"{headers.HIGH_WATERMARK}: ".encode()


@dataclass(frozen=True, slots=True)
class PlainAnswer:
    """The bytes of an answer."""

    head: bytes
    body: bytes

    @property
    def high_watermark(self) -> int:
        """Exclusive end of what the node knows to be committed."""
        return _number(self.head, _HIGH_WATERMARK)


class PlainConnection(asyncio.Protocol):
    """One connection, one request at a time."""

    def __init__(self, address: str, bearer: bytes | None = None) -> None:
        """``bearer``: the secret or token that is sent with every request."""
        self._host = address
        self._authorization = "" if bearer is None else f"Authorization: Bearer {bearer.decode('ascii')}\r\n"
        self._transport: asyncio.Transport
        self._answer: asyncio.Future[PlainAnswer] | None = None
        self._data = b""
        self._expected = b""

    @classmethod
    async def open(cls, url: str, tls: ssl.SSLContext | None = None, bearer: bytes | None = None) -> Self:
        """Connect to a controller; ``tls``: with which it is spoken to where the URL wants that."""
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
        assert host is not None
        assert port is not None
        loop = asyncio.get_running_loop()
        _, connection = await loop.create_connection(lambda: cls(parts.netloc, bearer), host, port, ssl=tls)
        return connection

    def request(self, path: str, body: BaseModel, timeout_ms: int, *, as_msgpack: bool) -> bytes:
        """The bytes of a POST."""
        data = pack(body) if as_msgpack else body.model_dump_json().encode()
        head = (
            f"POST {path} HTTP/1.1\r\nHost: {self._host}\r\n{self._authorization}{headers.TIMEOUT_MS}: {timeout_ms}\r\n"
            f"Content-Type: {MSGPACK if as_msgpack else JSON}\r\nAccept: */*\r\nAccept-Encoding: gzip, deflate\r\n"
            f"User-Agent: {SERVER_SOFTWARE}\r\nContent-Length: {len(data)}\r\n\r\n"
        )
        return head.encode() + data

    def send(self, request: bytes, status: int = 200) -> asyncio.Future[PlainAnswer]:
        """Send a request; its answer.

        The future raises QuorateError: the answer is of another status, or the connection broke.
        """
        self._expected = b"HTTP/1.1 %d " % status
        self._answer = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        return self._answer

    def close(self) -> None:
        """Close the connection."""
        self._transport.close()

    # --- asyncio.Protocol ----------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def connection_lost(self, error: Exception | None) -> None:
        self._fail("the controller closed the connection")

    def data_received(self, data: bytes) -> None:
        self._data = data = self._data + data if self._data else data
        end = data.find(_HEAD_END)
        if end < 0:
            return
        head, body = data[:end], data[end + len(_HEAD_END) :]
        if len(body) < _number(head, _LENGTH):
            return
        self._data = b""
        if not head.startswith(self._expected):
            self._fail(f"answered otherwise: {body.decode(errors='replace')[:500]}")
        elif self._answer is not None and not self._answer.done():
            self._answer.set_result(PlainAnswer(head, body))

    def _fail(self, reason: str) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(QuorateError(reason))


def _number(head: bytes, name: bytes) -> int:
    start = head.index(name) + len(name)
    end = head.find(b"\r", start)
    return int(head[start:] if end < 0 else head[start:end])
