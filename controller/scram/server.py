"""A server's side of one exchange: two messages of a client, each with its answer.

The rules are those of Kafka's ``ScramSaslServer``, where they differ from RFC 5802 too: the server signs its own
rebuilding of the messages, a channel binding is signed but not compared with the header, and an unknown user is told so
at once.
"""

from __future__ import annotations

import hmac
from base64 import b64encode
from collections.abc import Mapping
from typing import NamedTuple

from quorate.controller.scram.credentials import FindToken, FindUser, ServerCredential
from quorate.controller.scram.errors import BadProofLength, ExchangeOver, OtherAuthorizationId, ScramError, ScramFailure
from quorate.controller.scram.keys import ITERATIONS_MIN, signature, stored_key, xored
from quorate.controller.scram.messages import TOKEN_AUTHENTICATION, ClientFirst, ServerFirst, client_final, client_first
from quorate.controller.scram.names import user_name


class ScramLogin(NamedTuple):
    """A login that succeeded."""

    #: Of the user, or of the token's owner.
    name: str
    #: When the token expires, in milliseconds since 1970; nothing here compares it with a clock. None: no token.
    expires_ms: int | None
    #: All that the client said of extensions.
    extensions: Mapping[str, str]


class _Begun(NamedTuple):
    """The first message and its answer: the last one is judged by them."""

    first: ClientFirst
    answer: ServerFirst
    credential: ServerCredential
    login: ScramLogin


class ScramServer:
    """One exchange. Knows no clock, no chance and no socket; used by one thread at a time."""

    def __init__(self, mechanism: str, nonce: str, find_user: FindUser, find_token: FindToken) -> None:
        """An exchange that has not begun.

        Args:
            mechanism: of ``keys.HASHES``.
            nonce: printable ASCII without commas, and never the same twice.
        """
        self._mechanism = mechanism
        self._nonce = nonce
        self._find_user = find_user
        self._find_token = find_token
        self._begun: _Begun | None = None
        self._is_over = False
        self._login: ScramLogin | None = None

    @property
    def login(self) -> ScramLogin | None:
        """The login that succeeded; None before that, and after any message that comes later."""
        return self._login

    def answer(self, message: bytes) -> bytes:
        """The answer to a client's next message.

        Raises:
            ScramFailure: the message is none, or the client is not who it says; the exchange is over.
            BadProofLength: the proof has not the mechanism's length; the client may try again.
            ExchangeOver: it was over before.
        """
        try:
            if self._is_over:
                self._login = None
                raise ExchangeOver("a message after the end of the exchange")
            return self._first(message) if self._begun is None else self._last(message, self._begun)
        except BadProofLength:
            raise
        except ScramError:
            self._begun, self._is_over = None, True
            raise

    def _first(self, message: bytes) -> bytes:
        first = client_first(message)
        name = user_name(first.name)
        credential, login = self._found(name, first.extensions)
        if first.authorization_id not in ("", name):
            raise OtherAuthorizationId
        if credential.iterations < ITERATIONS_MIN:
            raise ScramFailure(f"a credential of {credential.iterations} iterations; {ITERATIONS_MIN} are the fewest")
        answer = ServerFirst(first.nonce + self._nonce, credential.salt, credential.iterations)
        self._begun = _Begun(first, answer, credential, login)
        return answer.text.encode()

    def _found(self, name: str, extensions: Mapping[str, str]) -> tuple[ServerCredential, ScramLogin]:
        if extensions.get(TOKEN_AUTHENTICATION, "").lower() == "true":
            token = self._find_token(name)
            if token is None:
                raise ScramFailure("no delegation token has this id")
            return token.credential, ScramLogin(token.owner, token.expires_ms, extensions)
        credential = self._find_user(name)
        if credential is None:
            raise ScramFailure("the user has no credential of this mechanism")
        return credential, ScramLogin(name, None, extensions)

    def _last(self, message: bytes, begun: _Begun) -> bytes:
        final = client_final(message)
        if not hmac.compare_digest(final.nonce, begun.answer.nonce):
            raise ScramFailure("the nonce of the last message is not that of the exchange")
        signed = f"{begun.first.bare},{begun.answer.text},{final.without_proof}"
        hidden_by = signature(self._mechanism, begun.credential.stored_key, signed)
        if len(final.proof) != len(hidden_by):
            raise BadProofLength(f"a proof of {len(final.proof)} bytes; {self._mechanism} has {len(hidden_by)}")
        key = xored(hidden_by, final.proof)
        if not hmac.compare_digest(stored_key(self._mechanism, key), begun.credential.stored_key):
            raise ScramFailure("the proof is not that of the user's password")
        self._begun, self._is_over, self._login = None, True, begun.login
        return b"v=" + b64encode(signature(self._mechanism, begun.credential.server_key, signed))
