"""Names of hosts, looked up on threads that nobody waits for: a name service that is down answers after many seconds.

On those of the loop, as ``aiohttp`` has it by itself, a program ends only when they do, however often it is told to.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, Final

from aiohttp.abc import AbstractResolver, ResolveResult

_NUMERIC: Final = socket.AI_NUMERICHOST | socket.AI_NUMERICSERV


class NameThreads(AbstractResolver):
    """The system's name service. ``aiohttp`` asks for one name once at a time, so threads do not pile up."""

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """The addresses of a name.

        Raises:
            OSError: it has none, or there is no thread to ask for it on.
        """
        ask = partial(
            socket.getaddrinfo, host, port, family=family, type=socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG
        )
        return [
            ResolveResult(
                hostname=host,
                # With the interface of an address that means something on one only.
                host=socket.getnameinfo(address, socket.NI_NUMERICHOST | socket.NI_NUMERICSERV)[0],
                port=int(address[1]),
                family=its_family,
                proto=protocol,
                flags=_NUMERIC,
            )
            for its_family, _, protocol, _, address in await _answer(ask, f"resolve-{host}")
        ]

    async def close(self) -> None:
        """Nobody is waited for."""


async def _answer(ask: Callable[[], Any], name: str) -> Any:
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[Any] = loop.create_future()

    def tell(found: Any, error: Exception | None) -> None:
        if answer.cancelled():
            return
        if error is None:
            answer.set_result(found)
        else:
            answer.set_exception(error)

    def asking() -> None:
        found: Any = None
        failure: Exception | None = None
        try:
            found = ask()
        except (OSError, ValueError, OverflowError) as error:  # ValueError: what can be no name
            failure = error
        with suppress(RuntimeError):  # the loop has ended meanwhile
            loop.call_soon_threadsafe(tell, found, failure)

    try:
        threading.Thread(target=asking, name=name, daemon=True).start()
    except RuntimeError as error:
        raise OSError(f"no thread: {error}") from error
    return await answer
