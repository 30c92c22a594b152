"""The sessions of a client, which may be made before there is a loop."""

from __future__ import annotations

import aiohttp

from quorate.controller.client.connection import make_session
from quorate.controller.decisions.origin import check_client_id, check_principal
from quorate.controller.identity.seals import Seal
from quorate.controller.identity.secrets import ShownSecret
from quorate.metadata_log.errors import InvalidArgument, QuorateError
from quorate.metadata_log.private_files import secret_problem


class ClientClosed(QuorateError):
    """A client was asked after it had been closed. Nothing was sent: make another one."""


class PendingSession:
    """A session, and one for each socket, made when it is first asked for; it belongs to the loop of then. Closed, all
    stay closed.
    """

    def __init__(
        self,
        shared_secret: ShownSecret,
        principal: str | None,
        seal: Seal | None = None,
        client_id: str | None = None,
    ) -> None:
        """See ``make_session``.

        Raises:
            InvalidArgument: no request can show such a secret. ApiError: INVALID_REQUEST, no such principal or client
                id can be.
        """
        if isinstance(shared_secret, bytes) and (problem := secret_problem(shared_secret)) is not None:
            raise InvalidArgument(f"shared_secret {problem}")
        self._shared_secret = shared_secret
        self._principal = None if principal is None else check_principal(principal)
        self._client_id = None if client_id is None else check_client_id(client_id)
        self._seal = seal
        #: By the path of the socket that they go through; None: those that go where URLs say.
        self._open: dict[str | None, aiohttp.ClientSession] = {}
        self._is_closed = False

    def __call__(self, socket_path: str | None = None) -> aiohttp.ClientSession:
        self.check_open()
        session = self._open.get(socket_path)
        if session is None:
            session = make_session(
                self._shared_secret, self._principal, self._seal, self._client_id, socket_path=socket_path
            )
            self._open[socket_path] = session
        return session

    def check_open(self) -> None:
        """Check that it may still be asked for.

        Raises:
            ClientClosed: it was closed.
        """
        if self._is_closed:
            raise ClientClosed("this client was closed, and nothing is sent by it any more: make another one")

    async def close(self) -> None:
        """Close all its connections, for good. More than once is no harm."""
        self._is_closed = True
        sessions, self._open = self._open, {}
        for session in sessions.values():
            await session.close()
