"""Logins by SCRAM, in two messages of a client that may go to two controllers: none keeps anything between them.

The state between goes to the client and back: the client's first message, the server's nonce and the time, with a MAC
by a key of the quorum over them and the answer that was given. Who sends the last message again gets no newer token:
from the controller that took it nothing, and from another one the same token once more.
"""

from __future__ import annotations

import binascii
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections import Counter
from collections.abc import Callable
from typing import Final, NamedTuple

from quorate.controller.decisions.origin import check_principal
from quorate.controller.identity.identity import Identity
from quorate.controller.identity.keys import DerivedKeys
from quorate.controller.identity.login_credentials import LoginCredentials
from quorate.controller.identity.login_failures import LoginFailures
from quorate.controller.identity.login_tokens import LoggedIn, LoginTokens
from quorate.controller.identity.secrets import Secrets
from quorate.controller.scram.errors import ScramFailure
from quorate.controller.scram.http_fields import HttpStep
from quorate.controller.scram.messages import client_first
from quorate.controller.scram.names import user_name
from quorate.controller.scram.server import ScramServer
from quorate.metadata_log.errors import ApiError, Overloaded

#: Between the two messages of a client; by a clock that may be so far behind that of the controller before.
EXCHANGE_MS: Final = 30_000
#: Of a client's first message: the longest name of a principal, a nonce, and some room.
FIRST_BYTES_MAX: Final = 1_024
#: Logins of so many milliseconds as an exchange may take, and those of one principal: more are refused.
FINISHED_MAX: Final = 10_000
FINISHED_OF_ONE_MAX: Final = 2_500
_LABEL: Final = b"quorate login exchange 1"
_STATE: Final = re.compile(rb"([0-9]{1,15}) ([A-Za-z0-9_-]{1,64}) ([\x01-\x7f]{1,1024})")
_SID: Final = re.compile(r"([A-Za-z0-9_-]{1,2000})\.([0-9a-f]{64})")


class FinishedLogin(NamedTuple):
    """A login that succeeded."""

    #: The server's last message, by which the client knows that it knows the password's keys.
    step: HttpStep
    identity: Identity
    token: str
    #: In milliseconds since 1970.
    expires_ms: int
    #: For so long from now on.
    lifetime_ms: int


class Logins:
    """Of one controller. Owned by the loop thread."""

    def __init__(
        self,
        secrets: Secrets,
        token_secrets: Secrets | None,
        mechanisms: tuple[str, ...],
        lifetime_ms: int,
        wall_ms: Callable[[], float],
        new_nonce: Callable[[], str],
        now_ms: Callable[[], float],
        seeds: Secrets | None = None,
    ) -> None:
        """By which mechanisms, and for how long.

        Args:
            secrets: of the quorum.
            token_secrets: with which delegation tokens are made; None: there are none.
            lifetime_ms: of a token.
            wall_ms: milliseconds since 1970.
            new_nonce: in the alphabet of base64 for URLs, and never the same twice.
            now_ms: milliseconds of a monotonic clock, by which failures are forgotten.
            seeds: see ``LoginCredentials``; None: the secrets of the quorum.
        """
        self.mechanisms = mechanisms
        self.credentials = LoginCredentials(seeds or secrets, token_secrets, wall_ms)
        self.tokens = LoginTokens(secrets, self.credentials, wall_ms)
        self.failures = LoginFailures(now_ms)
        self.lifetime_ms = lifetime_ms
        self._keys = DerivedKeys(secrets, _LABEL)
        self._wall_ms = wall_ms
        self._new_nonce = new_nonce
        #: MACs of the states that were used here, with the end of their time, and by whom; the oldest first.
        self._finished: dict[str, tuple[int, str]] = {}
        #: How many of them each principal has.
        self._finished_of: Counter[str] = Counter()

    @property
    def takes_tokens(self) -> bool:
        """Whether delegation tokens log in, too: whether there is anything that they are made with."""
        return self.credentials.takes_tokens

    def begin(self, step: HttpStep) -> HttpStep:
        """The answer to a client's first message, with the state of the exchange.

        Raises:
            ScramFailure: it is none, or of a mechanism that is not taken.
        """
        if len(step.message) > FIRST_BYTES_MAX:
            raise ScramFailure(f"a first message of {len(step.message)} bytes; at most {FIRST_BYTES_MAX} can be")
        ends_ms, nonce = int(self._wall_ms()) + EXCHANGE_MS, self._new_nonce()
        answer = self._server(step.mechanism, nonce, 0).answer(step.message)
        state = b"%d %b %b" % (ends_ms, nonce.encode(), step.message)
        mac = self._keys.mac((step.mechanism.encode(), state, answer))
        sid = f"{urlsafe_b64encode(state).decode().rstrip('=')}.{mac}"
        return HttpStep(step.mechanism, sid, answer)

    def finish(self, step: HttpStep) -> FinishedLogin:
        """The answer to a client's last message.

        Raises:
            ScramFailure: it does not end an exchange of this quorum, or not in time, or the proof is wrong.
            BadProofLength: the proof has not the mechanism's length.
            Overloaded: so many have logged in, or he so often, that no more are remembered.
        """
        state, mac = _opened(step.sid)
        form = _STATE.fullmatch(state)
        if form is None:
            raise ScramFailure("a sid that is none")
        ends_ms, first = int(form[1]), form[3]
        nonce = form[2].decode()
        answer = self._server(step.mechanism, nonce, 0).answer(first)
        if not self._keys.is_mac(mac, (step.mechanism.encode(), state, answer)):
            raise ScramFailure("a sid that no controller of this quorum made, or the credential has changed since")
        now_ms = self._wall_ms()
        if now_ms > ends_ms:
            raise ScramFailure(f"the exchange began more than {EXCHANGE_MS // 1000} s ago: begin another one")
        name = user_name(client_first(first).name)
        try:
            verdict, is_token, rank = self._judged(step, nonce, first)
        except ScramFailure as error:
            raise ScramFailure(f"as {name!r}: {error}") from None  # for the refusals: the client is told no reason
        credentials = self.credentials.find(step.mechanism, name, is_token=is_token)
        if rank >= len(credentials):
            raise ScramFailure("what the proof is of has ended this moment")
        found = credentials[rank]
        _check_principal(found.identity.principal)
        self._use(mac, ends_ms, now_ms, found.identity.principal)
        expires_ms = int(min(ends_ms - EXCHANGE_MS + self.lifetime_ms, found.ends_ms))
        token = self.tokens.issue(LoggedIn(step.mechanism, name, is_token, expires_ms), found.credential)
        done = HttpStep("", step.sid, verdict)
        return FinishedLogin(done, found.identity, token, expires_ms, int(expires_ms - now_ms))

    def _judged(self, step: HttpStep, nonce: str, first: bytes) -> tuple[bytes, bool, int]:
        """The answer to a last message with a right proof, whether it is of a delegation token, and of which rank."""
        for rank in self.credentials.ranks:
            server = self._server(step.mechanism, nonce, rank)
            server.answer(first)
            try:
                verdict = server.answer(step.message)
            except ScramFailure:
                if rank == self.credentials.ranks[-1]:
                    raise
            else:
                assert server.login is not None
                return verdict, server.login.expires_ms is not None, rank if server.login.expires_ms is not None else 0
        raise AssertionError("there is a rank")

    def _server(self, mechanism: str, nonce: str, rank: int) -> ScramServer:
        """``rank``: of the credential that a delegation token is judged by."""
        if mechanism not in self.mechanisms:
            raise ScramFailure(f"{mechanism} is not among access.login_mechanisms")
        return ScramServer(
            mechanism, nonce, self.credentials.users(mechanism), self.credentials.tokens(mechanism, rank)
        )

    def _use(self, mac: str, ends_ms: int, now_ms: float, principal: str) -> None:
        """Note that an exchange is over; one that was before is refused. Who logs in without end keeps nobody out."""
        if mac in self._finished:
            raise ScramFailure("the last message was sent again")
        while self._finished and next(iter(self._finished.values()))[0] < now_ms:
            _, whose = self._finished.pop(next(iter(self._finished)))
            self._finished_of[whose] -= 1
            if not self._finished_of[whose]:
                del self._finished_of[whose]
        within = f"within {EXCHANGE_MS // 1000} s: wait"
        if self._finished_of[principal] >= FINISHED_OF_ONE_MAX:
            raise Overloaded(
                f"{principal} has logged in {FINISHED_OF_ONE_MAX} times {within}, and use the tokens", "logins"
            )
        if len(self._finished) >= FINISHED_MAX:
            raise Overloaded(f"{FINISHED_MAX} have logged in {within}", "logins")
        self._finished[mac] = ends_ms, principal
        self._finished_of[principal] += 1


def _opened(sid: str) -> tuple[bytes, str]:
    """State and MAC, nothing of which is believed yet."""
    form = _SID.fullmatch(sid)
    if form is None:
        raise ScramFailure("a sid that is none")
    try:
        return urlsafe_b64decode(form[1] + "=" * (-len(form[1]) % 4)), form[2]
    except binascii.Error:
        raise ScramFailure("a sid that is none") from None


def _check_principal(principal: str) -> None:
    try:
        check_principal(principal)
    except ApiError as error:
        raise ScramFailure(f"the user cannot be a principal: {error.message}") from None
