"""The arithmetic of SCRAM (RFC 5802 section 3, RFC 7677), for who makes credentials and who stores them."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from typing import Final, NamedTuple

#: Mechanism by Kafka's name for it; the hash that it stands for.
HASHES: Final[Mapping[str, str]] = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
#: Fewer (RFC 7677 section 4) and more (Kafka's ``ScramControlManager``) are refused.
ITERATIONS_MIN: Final = 4_096
ITERATIONS_MAX: Final = 16_384


class ScramKeys(NamedTuple):
    """The keys that a server keeps of a password: enough to check a login, not enough for a login."""

    stored_key: bytes
    server_key: bytes


def salted_password(mechanism: str, password: str, salt: bytes, iterations: int) -> bytes:
    """``Hi`` of RFC 5802. The password is taken as it is written, in UTF-8, as Kafka's clients take it."""
    return hashlib.pbkdf2_hmac(HASHES[mechanism], password.encode(), salt, iterations)


def scram_keys(mechanism: str, salted: bytes) -> ScramKeys:
    """The two keys that are kept of a salted password."""
    algorithm = HASHES[mechanism]
    client_key = hmac.digest(salted, b"Client Key", algorithm)
    return ScramKeys(hashlib.new(algorithm, client_key).digest(), hmac.digest(salted, b"Server Key", algorithm))
