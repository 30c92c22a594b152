"""The login that RFC 7677 shows, and servers for it."""

from __future__ import annotations

from quorate.controller.scram.credentials import ServerCredential, TokenCredential
from quorate.controller.scram.keys import salted_password, scram_keys
from quorate.controller.scram.server import ScramServer

MECHANISM = "SCRAM-SHA-256"
#: The login that RFC 7677 shows: user, pencil.
SALT = "W22ZaJ0SNY7soEsUEjb6gQ=="
CLIENT_NONCE, SERVER_NONCE = "rOprNGfwEbeRWgbNEkqO", "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
FIRST = f"n,,n=user,r={CLIENT_NONCE}".encode()
CHALLENGE = f"r={CLIENT_NONCE}{SERVER_NONCE},s={SALT},i=4096".encode()
LAST = f"c=biws,r={CLIENT_NONCE}{SERVER_NONCE},p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=".encode()
VERDICT = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def credential(
    password: str, mechanism: str = MECHANISM, *, salt: bytes = b"salt", iterations: int = 4096
) -> ServerCredential:
    return ServerCredential(
        salt, *scram_keys(mechanism, salted_password(mechanism, password, salt, iterations)), iterations
    )


def server(users: dict[str, ServerCredential], mechanism: str = MECHANISM, nonce: str = SERVER_NONCE) -> ScramServer:
    token = TokenCredential("ana", 17, credential("hmac", mechanism))
    return ScramServer(mechanism, nonce, users.get, {"token": token}.get)
