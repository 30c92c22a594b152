"""Listening sockets on which TLS is spoken: a connection reaches its protocol when the handshake is through.

Whoever connects is a stranger until then: the door gives him a place from the first moment, and the handshake has a
time. Each handshake takes the context of its moment, so that changed certificates hold for all who come later.
"""

from __future__ import annotations

import asyncio
import errno
import socket
import ssl
from collections.abc import Sequence
from contextlib import suppress
from typing import Final, Protocol

import structlog
from aiohttp import web

from quorate.controller.api.tls_contexts import TlsContexts

log = structlog.get_logger()

#: The first byte of every TLS connection: a record of a handshake.
_HANDSHAKE_RECORD: Final = b"\x16"
_SAYS_HTTPS: Final = b"TLS is spoken on this port: ask it with https://, not http://\n"
_PLAIN_ANSWER: Final = (
    b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n"
    b"Content-Length: %d\r\n\r\n%s" % (len(_SAYS_HTTPS), _SAYS_HTTPS)
)
_THROWN_AWAY_BYTES: Final = 65_536
#: Connections taken in one turn of the loop.
_TAKEN_AT_ONCE: Final = 64
#: The process has as many files open as it may: some are closed before long.
_NO_FILES: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
_NO_FILES_S: Final = 1.0
#: The refusal of a client that shows no certificate where one is wanted.
NO_CERTIFICATE: Final = "a client certificate is wanted here, and none was shown"
#: Seconds between two lines of the log about handshakes that came to nothing.
_QUIET_S: Final = 10.0


class Handshake:
    """A connection before TLS is spoken on it."""

    def __init__(self, connected: socket.socket, address: str) -> None:
        """``address``: the other end's, without the port."""
        self.address = address
        self._socket = connected
        self._task: asyncio.Task[None] | None = None

    def begin(self, task: asyncio.Task[None]) -> None:
        """Note who works on it."""
        self._task = task

    def close(self) -> None:
        """Give it up."""
        if self._task is None:
            self._socket.close()
        else:
            self._task.cancel()


class Door(Protocol):
    """The server that stands behind the entrance."""

    def enter(self, handshake: Handshake) -> bool:
        """Whether there is a place for one more; it is taken."""

    def leave(self, handshake: Handshake) -> None:
        """It came to nothing, or its place is a connection's by now."""

    def protocol(self, handshake: Handshake) -> asyncio.Protocol:
        """The protocol of a connection whose handshake is through; the place is its own from now on."""


class TlsEntrance:
    """Takes connections until it is closed; those that are through are then the server's alone."""

    def __init__(self, listening: list[socket.socket], door: Door, contexts: TlsContexts, handshake_s: float) -> None:
        """See ``open``."""
        self._listening = listening
        self._door = door
        self._contexts = contexts
        self._handshake_s = handshake_s
        self._loop = asyncio.get_running_loop()
        self._handshakes: set[asyncio.Task[None]] = set()
        self._again: asyncio.TimerHandle | None = None
        self._failed, self._silent_until = 0, 0.0
        self._listen()

    @classmethod
    async def open(
        cls, door: Door, host: str, port: int, backlog: int, contexts: TlsContexts, handshake_s: float
    ) -> TlsEntrance:
        """Listen on all addresses of a host; port 0 takes a free one.

        Raises:
            OSError: nobody can listen there.
        """
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        listening: list[socket.socket] = []
        try:
            for family, address in dict.fromkeys((family, address) for family, _, _, _, address in found):
                listening.append(made := socket.create_server(address, family=family, backlog=backlog))
                made.setblocking(False)
        except OSError:
            for made in listening:
                made.close()
            raise
        return cls(listening, door, contexts, handshake_s)

    @property
    def sockets(self) -> Sequence[socket.socket]:
        """Those that it listens on."""
        return self._listening

    async def close(self) -> None:
        """Take no more connections, and give up handshakes that are under way."""
        if self._again is not None:
            self._again.cancel()
        for listening in self._listening:
            self._loop.remove_reader(listening)
            listening.close()
        for task in self._handshakes:
            task.cancel()
        if self._handshakes:
            await asyncio.wait(self._handshakes)

    def _listen(self) -> None:
        for listening in self._listening:
            self._loop.add_reader(listening, self._take, listening)

    def _take(self, listening: socket.socket) -> None:
        for _ in range(_TAKEN_AT_ONCE):
            try:
                connected, address = listening.accept()
            except (BlockingIOError, ConnectionAbortedError, InterruptedError):
                return
            except OSError as error:
                if error.errno not in _NO_FILES:
                    raise
                self._pause(error)
                return
            connected.setblocking(False)
            handshake = Handshake(connected, address[0])
            if not self._door.enter(handshake):
                connected.close()
                continue
            task = self._loop.create_task(self._shake_hands(handshake, connected))
            handshake.begin(task)
            self._handshakes.add(task)
            task.add_done_callback(self._handshakes.discard)

    def _pause(self, error: OSError) -> None:
        log.error("http.no_connection_taken", why=error.strerror)
        for listening in self._listening:
            self._loop.remove_reader(listening)
        self._again = self._loop.call_later(_NO_FILES_S, self._listen)

    async def _shake_hands(self, handshake: Handshake, connected: socket.socket) -> None:
        is_through = False
        try:
            async with asyncio.timeout(self._handshake_s):
                if await _first_byte(connected) in (_HANDSHAKE_RECORD, b""):
                    await self._loop.connect_accepted_socket(
                        lambda: self._door.protocol(handshake), connected, ssl=self._contexts()
                    )
                    is_through = True
                else:
                    _answer_plainly(connected)
                    self._note(handshake, "it spoke no TLS")
        except TimeoutError:
            self._note(handshake, f"it took longer than {self._handshake_s:g} s")
        except OSError as error:  # those of ssl among them
            self._note(handshake, failure_of(error))
        finally:
            if not is_through:
                connected.close()
            self._door.leave(handshake)

    def _note(self, handshake: Handshake, why: str) -> None:
        """Say it, but not of each of many."""
        self._failed += 1
        now = self._loop.time()
        if now >= self._silent_until:
            self._silent_until = now + _QUIET_S
            log.warning("http.handshakes_failed", failed=self._failed, last=handshake.address, why=why)
            self._failed = 0


async def _first_byte(connected: socket.socket) -> bytes:
    """Wait for it, and leave it where it is; empty: the other end has closed."""
    loop = asyncio.get_running_loop()
    is_readable = asyncio.Event()
    loop.add_reader(connected, is_readable.set)
    try:
        await is_readable.wait()
    finally:
        loop.remove_reader(connected)
    return connected.recv(1, socket.MSG_PEEK)


def _answer_plainly(connected: socket.socket) -> None:
    """Answer somebody who asked by plain HTTP. What he sent is taken first, or he might not get to read it."""
    with suppress(OSError):
        connected.recv(_THROWN_AWAY_BYTES)
        connected.send(_PLAIN_ANSWER)


def failure_of(error: OSError) -> str:
    """The reason why a handshake failed, in a few words."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is refused: {error.verify_message}"
    if isinstance(error, ssl.SSLError) and error.reason:
        return error.reason.lower().replace("_", " ")
    return error.strerror or type(error).__name__


def peer_certificate(request: web.Request) -> bytes | None:
    """The certificate (DER) of whoever sends a request, of a CA that is trusted here; None: none was shown."""
    return None if request.transport is None else certificate_of(request.transport)


def certificate_of(transport: asyncio.BaseTransport) -> bytes | None:
    """The same of a connection."""
    secured = transport.get_extra_info("ssl_object")
    shown: bytes | None = None if secured is None else secured.getpeercert(binary_form=True)
    return shown


def is_secured(request: web.Request) -> bool:
    """Whether a request came over TLS."""
    return request.transport is not None and request.transport.get_extra_info("ssl_object") is not None
