"""A client's side of one exchange: two messages, and the proof that the server knows the password's keys, too."""

from __future__ import annotations

import hmac
from base64 import b64encode
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from quorate.controller.scram.errors import ExchangeOver, ScramFailure
from quorate.controller.scram.keys import ITERATIONS_MIN, client_key, salted_password, scram_keys, signature, xored
from quorate.controller.scram.messages import GS2_HEADER, ClientFinal, ClientFirst, server_final, server_first
from quorate.controller.scram.names import sasl_name

#: A server that asks for more would keep its clients busy.
CLIENT_ITERATIONS_MAX: Final = 1_000_000
_NONE: Final[Mapping[str, str]] = MappingProxyType({})


class ScramClient:
    """One exchange; each message is asked for once, in their order. Used by one thread at a time."""

    def __init__(
        self, mechanism: str, user: str, password: str, nonce: str, extensions: Mapping[str, str] = _NONE
    ) -> None:
        """An exchange that has not begun.

        Args:
            mechanism: of ``keys.HASHES``.
            user: in ASCII: no other name can log in.
            nonce: printable ASCII without commas, and never the same twice.
            extensions: what else is said; one at most, where Kafka is to understand it.

        Raises:
            ScramFailure: the name cannot log in.
        """
        if not user or not user.isascii() or "\0" in user:
            raise ScramFailure("a user who logs in has a name of ASCII characters")
        self._mechanism = mechanism
        self._password = password
        self._begun = ClientFirst(sasl_name(user), nonce, "", extensions)
        self._expected: bytes | None = None

    def first(self) -> bytes:
        """The first message."""
        return f"{GS2_HEADER}{self._begun.bare}".encode()

    def last(self, message: bytes) -> bytes:
        """The last message, to a server's first one. Takes as long as the server's iterations do.

        Raises:
            ScramFailure: the server's message is none, is to somebody else, or asks for too few or too many iterations.
            EmptyPassword: the password has no character.
        """
        answer = server_first(message)
        if not answer.nonce.startswith(self._begun.nonce) or answer.nonce == self._begun.nonce:
            raise ScramFailure("the server's nonce does not begin with the client's, or adds nothing")
        if not ITERATIONS_MIN <= answer.iterations <= CLIENT_ITERATIONS_MAX:
            raise ScramFailure(
                f"the server asks for {answer.iterations} iterations, not {ITERATIONS_MIN} to {CLIENT_ITERATIONS_MAX}"
            )
        salted = salted_password(self._mechanism, self._password, answer.salt, answer.iterations)
        final = ClientFinal(GS2_HEADER.encode(), answer.nonce, b"")
        signed = f"{self._begun.bare},{message.decode()},{final.without_proof}"
        keys = scram_keys(self._mechanism, salted)
        proof = xored(client_key(self._mechanism, salted), signature(self._mechanism, keys.stored_key, signed))
        self._expected = signature(self._mechanism, keys.server_key, signed)
        return f"{final.without_proof},p={b64encode(proof).decode()}".encode()

    def check(self, message: bytes) -> None:
        """See that the server's last message proves that it knows the keys of the password.

        Raises:
            ScramFailure: it does not, or the server refused the login.
            ExchangeOver: no proof is due.
        """
        expected, self._expected = self._expected, None
        if expected is None:
            raise ExchangeOver("a message that nobody waits for")
        if not hmac.compare_digest(server_final(message), expected):
            raise ScramFailure("the server does not know the password's keys")
