"""Many requests at once, each on a new connection: what comes back on each, and when."""

from __future__ import annotations

import asyncio
import resource
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final, cast
from urllib.parse import urlsplit

_HEAD_END: Final = b"\r\n\r\n"
#: Files of a process besides the connections.
_OTHER_FILES: Final = 256


@dataclass(frozen=True, slots=True)
class BurstAnswer:
    """The end of one of them."""

    #: None: none came; ``said`` says why not.
    status: int | None
    #: Seconds from when all of them began.
    after_s: float
    #: None: it has no ``Retry-After``.
    retry_after_s: int | None
    #: The body, where it is an error's.
    said: str

    @property
    def is_done_or_may_come_again(self) -> bool:
        """Whether it was carried out, or refused for a time that it was told: all that overload may do."""
        may_come_again = self.status == HTTPStatus.TOO_MANY_REQUESTS and self.retry_after_s is not None
        return self.status == HTTPStatus.OK or may_come_again


class _Asking(asyncio.Protocol):
    """Sends its request when it is connected, and reads one answer."""

    def __init__(self, request: bytes) -> None:
        self._request = request
        self._data = b""
        self.answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        cast(asyncio.Transport, transport).write(self._request)

    def data_received(self, data: bytes) -> None:
        self._data += data
        head, end, body = self._data.partition(_HEAD_END)
        length = _header(head, b"content-length")
        if end and length is not None and len(body) >= length and not self.answer.done():
            self.answer.set_result(self._data)

    def connection_lost(self, error: Exception | None) -> None:
        if not self.answer.done():
            self.answer.set_exception(error or ConnectionResetError("closed without an answer"))


async def burst(url: str, requests: Sequence[bytes], patience_s: float) -> list[BurstAnswer]:
    """Send them all at once to a server; their answers, in the same order. ``patience_s``: for all of them."""
    with _room_for(len(requests)):
        begun = asyncio.get_running_loop().time()
        return await asyncio.gather(*(_ask(url, request, begun, patience_s) for request in requests))


async def _ask(url: str, request: bytes, begun: float, patience_s: float) -> BurstAnswer:
    loop, parts = asyncio.get_running_loop(), urlsplit(url)
    host, port = parts.hostname or "", parts.port or 0
    transport: asyncio.BaseTransport | None = None
    try:
        async with asyncio.timeout(patience_s):
            transport, asking = await loop.create_connection(lambda: _Asking(request), host, port)
            data = await asking.answer
    except (OSError, TimeoutError) as error:
        return BurstAnswer(None, loop.time() - begun, None, f"{type(error).__name__}: {error}")
    finally:
        if transport is not None:
            transport.close()
    head, _, body = data.partition(_HEAD_END)
    status = int(head.split(b" ", 2)[1])
    said = "" if status == HTTPStatus.OK else body.decode(errors="replace")
    return BurstAnswer(status, loop.time() - begun, _header(head, b"retry-after"), said)


def _header(head: bytes, name: bytes) -> int | None:
    for line in head.split(b"\r\n")[1:]:
        key, _, value = line.partition(b":")
        if key.lower() == name:
            return int(value)
    return None


@contextmanager
def _room_for(connections: int) -> Iterator[None]:
    """Let this process open so many files for a while, as far as the system lets it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = connections + _OTHER_FILES
    if soft != resource.RLIM_INFINITY and soft < wanted:
        allowed = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
