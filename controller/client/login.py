"""A client's login with a password, over HTTP (RFC 7804): for a token, which is renewed before it ends.

The password itself is sent to nobody, and the token only to a server that has shown that it knows the password's keys.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Final, NamedTuple

import aiohttp
from pydantic import ValidationError

from quorate.controller.api.errors import HttpRefusal, error_from_reply
from quorate.controller.api.login_models import LoginReply
from quorate.controller.api.models import ErrorReply
from quorate.controller.api.tls_contexts import TlsContexts
from quorate.controller.client.connecting.secured import tls_options
from quorate.controller.client.connection import NotAController, NotSent, reason_of
from quorate.controller.scram.client import ScramClient
from quorate.controller.scram.errors import ScramError
from quorate.controller.scram.http_fields import HttpStep, authentication_info, http_step, is_challenge
from quorate.controller.scram.keys import HASHES
from quorate.controller.scram.messages import TOKEN_AUTHENTICATION
from quorate.metadata_log.errors import ErrorCode, QuorateError

#: That of RFC 7804's own examples.
DEFAULT_MECHANISM: Final = "SCRAM-SHA-256"
_PATH: Final = "/v1/login"
#: A login is two answers without any waiting.
_LOGIN_MS_MAX: Final = 10_000.0
#: Of a token's life: then it is renewed, before anybody refuses it.
_RENEWED_AFTER: Final = 0.8


class InvalidLogin(QuorateError, ValueError):
    """A user or password with which nobody can log in. The password is not repeated."""


@dataclass(frozen=True, slots=True)
class PasswordLogin:
    """The user that a client logs in as.

    Raises:
        InvalidLogin: nobody can log in so.
    """

    #: In ASCII, without `User:`.
    user: str
    password: str = field(repr=False)
    #: The one of which the user has a credential.
    mechanism: str = DEFAULT_MECHANISM
    #: The user is a delegation token by its id, the password its HMAC in base64, and whoever it belongs to logs in.
    is_delegation_token: bool = False

    def __post_init__(self) -> None:
        if not self.user or not self.user.isascii() or not self.user.isprintable():
            raise InvalidLogin(f"{self.user[:40]!r} cannot log in: a user's name is of printable ASCII characters")
        if not self.password:
            raise InvalidLogin(f"{self.user[:40]} cannot log in with an empty password")
        if self.mechanism not in HASHES:
            raise InvalidLogin(f"{self.mechanism[:40]!r} is no mechanism of logins: {', '.join(HASHES)}")


class _LoginAnswer(NamedTuple):
    """An answer to a part of a login."""

    status: int
    challenge: str
    proof: str
    body: bytes


class LoginSession:
    """The token of one client, at all controllers. Owned by one loop."""

    def __init__(
        self, login: PasswordLogin, session: Callable[[], aiohttp.ClientSession], tls: TlsContexts | None
    ) -> None:
        """``session``: gives the client's connections. ``tls``: as of ``Connection``."""
        self._login = login
        self._session = session
        self._tls = tls
        self._authorization = ""
        #: By the loop's clock.
        self._renew_at = 0.0
        self._turn = asyncio.Lock()

    async def authorization(self, url: str, timeout_ms: float) -> str:
        """See ``Authorizing``: of a token from this controller, where there is none yet.

        Raises:
            ApiError: the login was refused; 401: the user, the password or the mechanism is wrong.
            NotSent: it did not come about: nothing else was asked.
        """
        try:
            # Others' logins, too, which are waited for.
            async with asyncio.timeout(timeout_ms / 1000), self._turn:
                now = asyncio.get_running_loop().time()
                if not self._authorization or now >= self._renew_at:
                    reply = await self.log_in(url, timeout_ms)
                    self._authorization = f"Bearer {reply.token}"
                    self._renew_at = now + reply.lifetime_ms / 1000 * _RENEWED_AFTER
                return self._authorization
        except TimeoutError as error:
            raise NotSent(f"{url} did not answer a login in time") from error

    def forget(self, authorization: str) -> None:
        """See ``Authorizing``."""
        if self._authorization == authorization:
            self._authorization = ""

    async def log_in(self, url: str, timeout_ms: float) -> LoginReply:
        """Log in once, at one controller; raises as ``authorization``."""
        client = scram_client(self._login, secrets.token_urlsafe())
        try:
            async with asyncio.timeout(min(timeout_ms, _LOGIN_MS_MAX) / 1000):
                return await self._exchanged(client, url)
        except TimeoutError as error:
            raise NotSent(f"{url} did not answer a login in time") from error
        except (aiohttp.ClientError, ScramError) as error:
            raise NotSent(f"{url} cannot be logged in to: {reason_of(error)}") from error

    async def _exchanged(self, client: ScramClient, url: str) -> LoginReply:
        begun = await self._ask(url, HttpStep(self._login.mechanism, "", client.first()))
        if begun.status != HTTPStatus.UNAUTHORIZED or is_challenge(begun.challenge):
            raise self._refusal(url, begun)
        step = http_step(begun.challenge)
        # As long as the server's iterations take: the loop has other work.
        last = await asyncio.to_thread(client.last, step.message)
        ended = await self._ask(url, HttpStep(self._login.mechanism, step.sid, last))
        if ended.status != HTTPStatus.OK:
            raise self._refusal(url, ended)
        client.check(authentication_info(ended.proof).message)
        try:
            return LoginReply.model_validate_json(ended.body)
        except ValidationError:
            raise NotAController(url, "a login in another form") from None

    async def _ask(self, url: str, step: HttpStep) -> _LoginAnswer:
        async with self._session().get(
            url + _PATH, headers={"Authorization": step.text}, allow_redirects=False, **tls_options(self._tls)
        ) as answer:
            challenge, proof = (answer.headers.get(name, "") for name in ("WWW-Authenticate", "Authentication-Info"))
            return _LoginAnswer(answer.status, challenge, proof, await answer.read())

    def _refusal(self, url: str, told: _LoginAnswer) -> QuorateError:
        try:
            reply = ErrorReply.model_validate_json(told.body)
        except ValidationError:
            return NotAController(url, f"a login with status {told.status}")
        if told.status != HTTPStatus.UNAUTHORIZED:
            return error_from_reply(reply, told.status)
        who = f"{self._login.user} cannot log in by {self._login.mechanism} at {url}"
        message = f"{who}: the user, the password or the mechanism is wrong"
        return HttpRefusal(told.status, message, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)


def scram_client(login: PasswordLogin, nonce: str) -> ScramClient:
    """One exchange of a login. ``nonce``: see there."""
    extensions = {TOKEN_AUTHENTICATION: "true"} if login.is_delegation_token else {}
    return ScramClient(login.mechanism, login.user, login.password, nonce, extensions)
