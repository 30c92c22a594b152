"""The ways from one client to controllers: which session asks each, by TLS or not, and what may be sent there."""

from __future__ import annotations

from quorate.controller.api.tls_contexts import TlsContexts
from quorate.controller.client.connection import Connection, controller_url
from quorate.controller.client.login import LoginSession, PasswordLogin
from quorate.controller.client.pending_session import PendingSession
from quorate.controller.client.secured import check_way


class Ways:
    """Those of one client."""

    def __init__(
        self, session: PendingSession, tls: TlsContexts | None, login: PasswordLogin | None, *, is_secret: bool
    ) -> None:
        """See ``ControllerClient``. ``is_secret``: what the session sends is for nobody on the way."""
        self._session = session
        self._tls = tls
        self._login = None if login is None else LoginSession(login, session, tls)
        # To who logs in on an open way no controller gives a token.
        self._is_secret = is_secret or login is not None

    def base_url(self, text: str) -> str:
        """The base URL of a controller that is named by ``host:port`` or a URL.

        Raises:
            InvalidUrl: it names none. SecretInPlaintext: the way there is open, and what is sent is not for everybody.
        """
        url = controller_url(text, "http" if self._tls is None else "https")
        if self._is_secret:
            check_way(url)
        return url

    def connect(self, url: str) -> Connection:
        """The connection to a controller.

        Raises:
            As ``base_url``.
        """
        return Connection(self._session, self.base_url(url), self._tls, self._login)
