"""The ways from one client to controllers: which session asks each, by TLS or not, and what may be sent there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial

from quorate.controller.api.tls_contexts import TlsContexts
from quorate.controller.client.connection import Connection
from quorate.controller.client.login import LoginSession, PasswordLogin
from quorate.controller.client.pending_session import PendingSession
from quorate.controller.client.targets import UNIX, InvalidUrl, check_way, controller_url


class Ways:
    """Those of one client."""

    def __init__(
        self,
        session: PendingSession,
        tls: TlsContexts | None,
        login: PasswordLogin | None,
        sockets: Mapping[str, str] | None,
        *,
        is_secret: bool,
    ) -> None:
        """See ``ControllerClient``. ``is_secret``: what the session sends is for nobody on the way."""
        self._session = session
        self._sockets = sockets or {}
        self._tls = tls
        self._login = login
        #: By the path of the socket through which they ask; None: by no socket.
        self._logins: dict[str | None, LoginSession] = {}
        # To who logs in on an open way no controller gives a token.
        self._is_secret = is_secret or login is not None

    def base_url(self, text: str) -> str:
        """The base URL of a controller that is named by ``host:port`` or a URL.

        Raises:
            InvalidUrl: it names none. SecretInPlaintext: the way there is open, and what is sent is not for everybody.
        """
        url = controller_url(text, "http" if self._tls is None else "https")
        if self._is_secret and url not in self._sockets:
            check_way(url)
        return url

    def base_urls(self, texts: Iterable[str], *, are_needed: bool) -> tuple[str, ...]:
        """Those of several, each once.

        Raises:
            As ``base_url``; InvalidUrl also where there must be one, and none is.
        """
        urls = tuple(dict.fromkeys(map(self.base_url, texts)))
        if are_needed and not urls:
            raise InvalidUrl("no controller was named: a client needs at least one")
        return urls

    def connect(self, url: str) -> Connection:
        """The connection to a controller.

        Raises:
            As ``base_url``.
        """
        base = self.base_url(url)
        path = base.removeprefix(UNIX) if base.startswith(UNIX) else self._sockets.get(base)
        session, tls = partial(self._session, path), self._tls if path is None else None
        if self._login is not None and path not in self._logins:
            self._logins[path] = LoginSession(self._login, session, tls)
        return Connection(session, base, tls, self._logins.get(path), through_socket=path is not None)
