"""The readers of what clients say of themselves: names in certificates, and the messages of a SCRAM login."""

from __future__ import annotations

from base64 import b64decode
from random import Random
from typing import Final

from quorate.controller.principals.der import BadDer
from quorate.controller.principals.distinguished_names import certificate_name
from quorate.controller.scram.credentials import ServerCredential
from quorate.controller.scram.errors import ScramError
from quorate.controller.scram.keys import salted_password, scram_keys
from quorate.controller.scram.messages import client_final
from quorate.controller.scram.server import ScramLogin, ScramServer
from quorate.scripts.fuzzing.mutating import mutated
from quorate.scripts.fuzzing.target import Wrong

#: A certificate without keys: a subject of five parts: three kinds of text, blanks, a NUL, a comma, two in one part.
_CERTIFICATE: Final = bytes.fromhex(
    "306e3067a00302010202010130003000300030573112301006092a864886f70d010901160361406231123010060a0992268993f22c64011916"
    "020078310e300c060355040b0c0520612c6220311d300a06035504030c03616e61300f060a0992268993f22c6401011e01373000030100"
)
#: Characters of a name that a byte of a certificate may make: of a NUL ``\\00``, and around it a type and its signs.
_CHARS_PER_BYTE: Final = 4

#: The login that RFC 7677 shows.
_MECHANISM: Final = "SCRAM-SHA-256"
_SALT: Final = b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
_SERVER_NONCE: Final = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
_FIRST: Final = b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
_LAST: Final = (
    b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
)
_LOGIN: Final = b"\n".join([_FIRST, _LAST])
_RIGHT_SHARE: Final = 0.05


class CertificateNameTarget:
    """The subject of a certificate, as text."""

    def make(self, rng: Random) -> bytes:
        return mutated([_CERTIFICATE], rng)

    def run(self, data: bytes) -> bool:
        try:
            name = certificate_name(data)
        except BadDer:
            return False
        if len(name) > _CHARS_PER_BYTE * len(data):
            raise Wrong(f"a name of {len(name)} characters out of {len(data)} bytes")
        return True


class LoginTarget:
    """Both messages of a client, on a line each, to a server that knows one user."""

    def __init__(self) -> None:
        keys = scram_keys(_MECHANISM, salted_password(_MECHANISM, "pencil", _SALT, 4096))
        self._credential = ServerCredential(_SALT, *keys, 4096)

    def make(self, rng: Random) -> bytes:
        # Some are right, or nothing would ever be taken.
        return _LOGIN if rng.random() < _RIGHT_SHARE else mutated([_LOGIN], rng)

    def run(self, data: bytes) -> bool:
        first, _, last = data.partition(b"\n")
        users = {"user": self._credential}
        server = ScramServer(_MECHANISM, _SERVER_NONCE, users.get, lambda _: None)
        try:
            server.answer(first)
            server.answer(last)
        except ScramError:
            return False
        self._check(server.login, last)
        return True

    def _check(self, login: ScramLogin | None, last: bytes) -> None:
        """Whoever logs in is the user, by the proof of the password."""
        if login is None or login.name != "user":
            raise Wrong(f"a login of {login}")
        if client_final(last).proof != client_final(_LAST).proof:
            raise Wrong("a login by another proof")
