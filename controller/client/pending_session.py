"""The session of a client, which may be made before there is a loop."""

from __future__ import annotations

import aiohttp

from quorate.controller.client.connection import make_session


class PendingSession:
    """A session that is made when it is first asked for; it belongs to the loop of then."""

    def __init__(self, shared_secret: bytes | None, principal: str | None) -> None:
        """See ``make_session``."""
        self._shared_secret = shared_secret
        self._principal = principal
        self._open: aiohttp.ClientSession | None = None

    def __call__(self) -> aiohttp.ClientSession:
        if self._open is None:
            self._open = make_session(self._shared_secret, self._principal)
        return self._open

    async def close(self) -> None:
        """Close all its connections."""
        session, self._open = self._open, None
        if session is not None:
            await session.close()
