"""Peer addresses: a fixed address, or those of a name, looked up on a thread that nobody waits for long."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import threading
from collections.abc import Callable
from contextlib import suppress

Resolve = Callable[[str], list[str]]


def resolve_host(name: str) -> list[str]:
    """The addresses of a name by the system's name service, the preferred one first; empty when it knows none."""
    try:
        found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    except (OSError, ValueError):  # ValueError: a name that cannot even be asked for
        return []
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


class PeerHost:
    """One peer's. A name is asked for again when dialling failed; what it meant before is used until there is news.

    A question is never given up: name services answer after many seconds, and threads that ask must not pile up.
    """

    def __init__(self, host: str, resolve: Resolve = resolve_host) -> None:
        self._host = host
        self._resolve = resolve
        self._is_name = not _is_address(host)
        self._known = [] if self._is_name else [host]
        self._turn = 0
        #: Set whenever the question that is out is answered.
        self._answered: asyncio.Event | None = None

    async def current(self) -> str:
        """The address to dial; waits for the first answer of the name service.

        Raises:
            OSError: the name has no address, or there is no thread to ask for it on.
        """
        if not self._known:
            await self._ask().wait()
        if not self._known:
            raise OSError(f"{self._host} has no address")
        return self._known[self._turn % len(self._known)]

    def failed(self) -> None:
        """The current address did not answer: the next one's turn, and the name may mean something else by now."""
        self._turn += 1
        if self._is_name:
            with suppress(OSError):  # no thread to ask on: after the next attempt, then
                self._ask()

    def _ask(self) -> asyncio.Event:
        if self._answered is None:
            loop = asyncio.get_running_loop()
            asking = threading.Thread(target=self._ask_outside, args=(loop,), name=f"resolve-{self._host}", daemon=True)
            try:
                asking.start()
            except RuntimeError as error:
                raise OSError(f"{self._host} cannot be asked for: {error}") from error
            # Only now: a question that was never put would be waited for for ever.
            self._answered = asyncio.Event()
        return self._answered

    def _ask_outside(self, loop: asyncio.AbstractEventLoop) -> None:
        found = self._resolve(self._host)
        with suppress(RuntimeError):  # the loop has ended meanwhile
            loop.call_soon_threadsafe(self._learn, found)

    def _learn(self, found: list[str]) -> None:
        self._known = found or self._known
        assert self._answered is not None
        self._answered.set()
        self._answered = None


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
