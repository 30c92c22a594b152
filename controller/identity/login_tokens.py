"""Tokens of those who have logged in: short-lived, known by every controller, kept by none.

Each says who has it and until when, with a MAC by a key of the quorum over that and over the credential of the login:
when the credential is changed or removed, the tokens of before are nobody's.
"""

from __future__ import annotations

import math
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable
from typing import Final, NamedTuple

from quorate.controller.identity.identity import Identity
from quorate.controller.identity.keys import DerivedKeys
from quorate.controller.identity.login_credentials import LoginCredentials
from quorate.controller.identity.secrets import Secrets
from quorate.controller.scram.credentials import ServerCredential

_LABEL: Final = b"quorate login token 1"
_FORM: Final = re.compile(
    r"qlogin1\.(user|token)\.(SCRAM-SHA-(?:256|512))\.([0-9]{1,15})\.([A-Za-z0-9_-]{2,700})\.([0-9a-f]{64})"
)


class LoggedIn(NamedTuple):
    """The facts of a login that a token stands for."""

    mechanism: str
    #: Of the user, without its type, or the id of a delegation token.
    name: str
    is_token: bool
    #: Milliseconds since 1970.
    expires_ms: int


class LoginTokens:
    """``FoundTokens`` of those who have logged in, by the newest credentials. Owned by the loop thread."""

    def __init__(self, secrets: Secrets, credentials: LoginCredentials, wall_ms: Callable[[], float]) -> None:
        """``secrets``: of the quorum. ``wall_ms``: milliseconds since 1970."""
        self._keys = DerivedKeys(secrets, _LABEL)
        self._credentials = credentials
        self._wall_ms = wall_ms
        self._generation = 0
        self._seen = self._state()
        #: When the first of the tokens ends that were found in this generation.
        self._first_end_ms = math.inf

    @property
    def generation(self) -> int:
        """See ``FoundTokens``: another one when a credential or a secret has changed, or a token has ended."""
        state = self._state()
        has_changed = any(now is not before for now, before in zip(state, self._seen, strict=True))
        if has_changed or self._wall_ms() >= self._first_end_ms:
            self._generation += 1
            self._seen, self._first_end_ms = state, math.inf
        return self._generation

    def issue(self, login: LoggedIn, credential: ServerCredential) -> str:
        """The token of a login. Of the same login it is the same."""
        name = urlsafe_b64encode(login.name.encode()).decode().rstrip("=")
        mac = self._keys.mac(_said(login, credential))
        return f"qlogin1.{_kind(login)}.{login.mechanism}.{login.expires_ms}.{name}.{mac}"

    def find(self, token: str) -> Identity | None:
        """See ``FoundTokens``."""
        form = _FORM.fullmatch(token)
        login = None if form is None else _logged_in(form)
        if form is None or login is None or self._wall_ms() >= login.expires_ms:
            return None
        for found in self._credentials.find(login.mechanism, login.name, is_token=login.is_token):
            if self._keys.is_mac(form[5], _said(login, found.credential)):
                self._first_end_ms = min(self._first_end_ms, login.expires_ms, found.ends_ms)
                return found.identity
        return None

    def _state(self) -> tuple[object, ...]:
        return (*self._credentials.state, self._keys.now())


def _said(login: LoggedIn, credential: ServerCredential) -> tuple[bytes, ...]:
    said = (_kind(login), login.mechanism, login.name, str(login.expires_ms), str(credential.iterations))
    return (*(text.encode() for text in said), *credential[:3])


def _kind(login: LoggedIn) -> str:
    return "token" if login.is_token else "user"


def _logged_in(form: re.Match[str]) -> LoggedIn | None:
    try:
        name = urlsafe_b64decode(form[4] + "=" * (-len(form[4]) % 4)).decode("ascii")
    except ValueError:
        return None
    return LoggedIn(form[2], name, form[1] == "token", int(form[3]))
