"""The socket that a server listens on, with TLS or without."""

from __future__ import annotations

import asyncio
from typing import Final, Protocol

from quorate.controller.api.tls_contexts import TlsContexts
from quorate.controller.api.tls_entrance import Door, TlsEntrance

#: A connection on which nothing is asked for so long is closed; a little longer than what proxies keep theirs for.
IDLE_S: Final = 3_630.0


class ConnectionServer(Door, Protocol):
    """Makes the protocol of each connection: after its handshake, or at once where no TLS is spoken."""

    def __call__(self) -> asyncio.Protocol: ...


class ListeningPort:
    """Takes connections until it is closed."""

    def __init__(self, listening: asyncio.Server | TlsEntrance) -> None:
        """See ``open``."""
        self._listening = listening

    @classmethod
    async def open(
        cls, server: ConnectionServer, host: str, port: int, backlog: int, tls: TlsContexts | None, handshake_s: float
    ) -> ListeningPort:
        """Listen; port 0 takes a free one. ``tls``: None: none is spoken.

        Raises:
            OSError: nobody can listen there.
        """
        if tls is None:
            return cls(await asyncio.get_running_loop().create_server(server, host, port, backlog=backlog))
        return cls(await TlsEntrance.open(server, host, port, backlog, tls, handshake_s))

    @property
    def port(self) -> int:
        """The port on which it listens."""
        port: int = self._listening.sockets[0].getsockname()[1]
        return port

    async def close(self) -> None:
        """Take no more connections, and give up handshakes that are under way."""
        if isinstance(self._listening, TlsEntrance):
            await self._listening.close()
        else:
            self._listening.close()
