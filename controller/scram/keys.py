"""The arithmetic of SCRAM (RFC 5802 section 3, RFC 7677), for whoever makes, keeps or checks credentials."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from typing import Final, NamedTuple

from quorate.metadata_log.errors import QuorateError

#: Mechanism by Kafka's name for it; the hash that it stands for.
HASHES: Final[Mapping[str, str]] = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
#: Fewer (RFC 7677 section 4) and more (Kafka's ``ScramControlManager``) are refused.
ITERATIONS_MIN: Final = 4_096
ITERATIONS_MAX: Final = 16_384


class EmptyPassword(QuorateError, ValueError):
    """A password without characters: it would be everybody's."""


class ScramKeys(NamedTuple):
    """The keys that a server keeps of a password: enough to check a login, not enough for a login."""

    stored_key: bytes
    server_key: bytes


def salted_password(mechanism: str, password: str, salt: bytes, iterations: int) -> bytes:
    """``Hi`` of RFC 5802. The password is taken as it is written, in UTF-8, as Kafka's clients take it.

    Args:
        iterations: below 1 count as 1, as in Kafka; whoever makes a credential refuses them.

    Raises:
        EmptyPassword: it has no character.
    """
    if not password:
        raise EmptyPassword("a password has at least one character")
    return hashlib.pbkdf2_hmac(HASHES[mechanism], password.encode(), salt, max(1, iterations))


def client_key(mechanism: str, salted: bytes) -> bytes:
    """The key with which a client proves a salted password. Whoever has it can log in."""
    return hmac.digest(salted, b"Client Key", HASHES[mechanism])


def scram_keys(mechanism: str, salted: bytes) -> ScramKeys:
    """The two keys that are kept of a salted password."""
    server_key = hmac.digest(salted, b"Server Key", HASHES[mechanism])
    return ScramKeys(stored_key(mechanism, client_key(mechanism, salted)), server_key)


def stored_key(mechanism: str, key: bytes) -> bytes:
    """The hash of a client's key, with which a server checks that the client has it."""
    return hashlib.new(HASHES[mechanism], key).digest()


def signature(mechanism: str, key: bytes, signed: str) -> bytes:
    """A signature of all messages of an exchange."""
    return hmac.digest(key, signed.encode(), HASHES[mechanism])


def xored(one: bytes, other: bytes) -> bytes:
    """Two texts of one length, bit by bit: a proof is a client's key, hidden by a signature."""
    return bytes(a ^ b for a, b in zip(one, other, strict=True))
