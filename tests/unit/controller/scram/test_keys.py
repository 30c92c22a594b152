"""The arithmetic of SCRAM, against the RFCs."""

from __future__ import annotations

import hashlib
import hmac
from base64 import b64decode
from typing import NamedTuple

import pytest

from quorate.controller.scram import keys as scram_arithmetic
from quorate.controller.scram.keys import HASHES, EmptyPassword, salted_password, scram_keys


class Exchange(NamedTuple):
    """A login as an RFC shows it."""

    hash: str
    salt: str
    server_nonce: str
    client_first: str
    proof: str
    signature: str


EXCHANGES = [
    # RFC 5802, section 5.
    Exchange(
        "sha1", "QSXCR+Q6sek8bf92", "fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j", "n=user,r=fyko+d2lbbFgONRv9qkxdawL",
        "v0X8v3Bz2T0CJGbJQyF0X+HI4Ts=", "rmF9pqV8S7suAoZWja4dJRkFsKQ=",
    ),
    # RFC 7677, section 3.
    Exchange(
        "sha256", "W22ZaJ0SNY7soEsUEjb6gQ==", "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0",
        "n=user,r=rOprNGfwEbeRWgbNEkqO",
        "dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=", "6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=",
    ),
]  # fmt: skip


@pytest.mark.parametrize("exchange", EXCHANGES, ids=lambda exchange: exchange.hash)
def test_keys_are_those_of_the_rfcs(exchange: Exchange, monkeypatch: pytest.MonkeyPatch) -> None:
    """The password is "pencil", the iterations 4096. The keys must accept the proof and give the signature."""
    monkeypatch.setattr(scram_arithmetic, "HASHES", {"mechanism": exchange.hash})
    salted = salted_password("mechanism", "pencil", b64decode(exchange.salt), 4096)
    keys = scram_keys("mechanism", salted)
    server_first = f"r={exchange.server_nonce},s={exchange.salt},i=4096"
    message = f"{exchange.client_first},{server_first},c=biws,r={exchange.server_nonce}".encode()
    assert accepts(exchange.hash, keys.stored_key, b64decode(exchange.proof), message)
    assert hmac.digest(keys.server_key, message, exchange.hash) == b64decode(exchange.signature)


def accepts(hash_: str, stored_key: bytes, proof: bytes, message: bytes) -> bool:
    """What a server does with a client's proof (RFC 5802, section 3)."""
    signature = hmac.digest(stored_key, message, hash_)
    client_key = bytes(a ^ b for a, b in zip(proof, signature, strict=True))
    return hashlib.new(hash_, client_key).digest() == stored_key


@pytest.mark.parametrize("mechanism", HASHES)
def test_only_the_right_password_logs_in(mechanism: str) -> None:
    hash_, message = HASHES[mechanism], b"what was said before"
    keys = scram_keys(mechanism, salted_password(mechanism, "pässword", b"salt", 4096))
    for password, is_right in (("pässword", True), ("password", False)):
        client_key = hmac.digest(salted_password(mechanism, password, b"salt", 4096), b"Client Key", hash_)
        signature = hmac.digest(hashlib.new(hash_, client_key).digest(), message, hash_)
        proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
        assert accepts(hash_, keys.stored_key, proof, message) is is_right


def test_empty_password_is_refused() -> None:
    with pytest.raises(EmptyPassword, match="at least one character"):
        salted_password("SCRAM-SHA-256", "", b"salt", 4096)
