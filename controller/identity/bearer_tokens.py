"""Tokens of principals: a file with a line for each, ``sha256:HEX Type:name``; blank lines and ``#`` lines are none.

Only hashes lie in the file: whoever reads it has no token. Tokens are drawn, not chosen, so a plain hash is enough.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Final

from quorate.controller.decisions.origin import check_principal
from quorate.controller.identity.identity import Identity, NodeIdentity
from quorate.metadata_log.errors import ApiError, QuorateError

#: Most bytes of a file, and most tokens in it.
FILE_BYTES_MAX: Final = 4 * 1024 * 1024
TOKENS_MAX: Final = 10_000
#: Characters of the longest token that is looked at.
TOKEN_CHARS_MAX: Final = 1_024
_LINE: Final = re.compile(r"sha256:([0-9a-f]{64})[ \t]++(.+)")
#: Principals of this type are the brokers with these ids: ``Broker:11`` or ``Broker:11,12``.
BROKER_TYPE: Final = "Broker"
_CONTROLLER_TYPE: Final = "Controller"


class InvalidTokens(QuorateError):
    """A file of tokens that cannot be used. Names the line and the rule."""


def token_line(token: str, principal: str) -> str:
    """The line of a token, without the line end.

    Raises:
        InvalidTokens: no such principal can have one.
    """
    identity_of(principal)
    return f"sha256:{_hashed(token).hex()} {principal}"


def identity_of(principal: str) -> Identity:
    """Whoever shows a token of this principal.

    Raises:
        InvalidTokens: nobody can.
    """
    try:
        type_, _, name = check_principal(principal).partition(":")
    except ApiError as error:
        raise InvalidTokens(error.message) from error
    if type_ == _CONTROLLER_TYPE:
        raise InvalidTokens(f"{principal}: no token makes a controller, but the shared secret, or a certificate")
    if type_ != BROKER_TYPE:
        return Identity(principal, "token")
    node = NodeIdentity.parse(f"broker/{name}")
    if node is None:
        raise InvalidTokens(
            f"{principal[:60]!r}: {BROKER_TYPE} is followed by ids of brokers, such as {BROKER_TYPE}:11,12"
        )
    return Identity(principal, "token", node)


class BearerTokens:
    """The tokens of one file as it was at one time."""

    def __init__(self, identities: Mapping[bytes, Identity]) -> None:
        """By SHA-256."""
        self._identities = identities

    def __len__(self) -> int:
        return len(self._identities)

    @classmethod
    def parse(cls, text: str) -> BearerTokens:
        """All of a file, or none of it.

        Raises:
            InvalidTokens: a line that is none, or more of them than may be.
        """
        identities: dict[bytes, Identity] = {}
        for number, line in enumerate(text.splitlines(), start=1):
            said = line.strip()
            if not said or said.startswith("#"):
                continue
            form = _LINE.fullmatch(said)
            if form is None:
                raise InvalidTokens(f"line {number} is not sha256:HEX Type:name")
            hashed = bytes.fromhex(form[1])
            if hashed in identities:
                raise InvalidTokens(f"line {number} has the hash of a line before it: one token, one principal")
            try:
                identities[hashed] = identity_of(form[2])
            except InvalidTokens as error:
                raise InvalidTokens(f"line {number}: {error}") from error
            if len(identities) > TOKENS_MAX:
                raise InvalidTokens(f"more than {TOKENS_MAX} tokens")
        return cls(identities)

    def find(self, token: str) -> Identity | None:
        """The identity that has a token; None: nobody has it."""
        if len(token) > TOKEN_CHARS_MAX:
            return None
        return self._identities.get(_hashed(token))


def _hashed(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()
