"""The messages of an exchange, out of bytes and into text (RFC 5802 section 7), as strictly as Kafka reads them.

Only ASCII, and in the order of the RFC. An attribute that is reserved is passed over where the RFC has one, and so are
extensions, but for what they say of themselves.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple

from quorate.controller.scram.base64_text import base64_bytes
from quorate.controller.scram.errors import ScramFailure

#: Of any message; with the longest name, nonce and salt.
MESSAGE_BYTES_MAX: Final = 16_384

#: The header of a client that neither binds a channel nor wants another name, and its form in the last message.
GS2_HEADER: Final = "n,,"

#: The extension by which a client logs in with a delegation token (KIP-48).
TOKEN_AUTHENTICATION: Final = "tokenauth"

_NAME: Final = re.compile(r"(?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]|=2C|=3D)++")
_NONCE: Final = re.compile(r"[\x21-\x2b\x2d-\x7e]++")
_COUNT: Final = re.compile(r"[0-9]{1,9}")
_EXTENSION: Final = re.compile(r"[A-Za-z]++=[\x01-\x2b\x2d-\x7f]++")


class ClientFirst(NamedTuple):
    """``n,a=...,n=name,r=nonce,extensions``."""

    #: As in the message, with its escapes.
    name: str
    nonce: str
    #: As in the message; empty: none.
    authorization_id: str
    extensions: Mapping[str, str]

    @property
    def bare(self) -> str:
        """The part that is signed, built again: without what was passed over, and each extension once."""
        return ",".join([f"n={self.name}", f"r={self.nonce}", *(f"{k}={v}" for k, v in self.extensions.items())])


class ServerFirst(NamedTuple):
    """``r=nonce,s=salt,i=iterations``."""

    nonce: str
    salt: bytes
    iterations: int

    @property
    def text(self) -> str:
        """The whole message."""
        return f"r={self.nonce},s={base64.b64encode(self.salt).decode()},i={self.iterations}"


class ClientFinal(NamedTuple):
    """``c=channel,r=nonce,p=proof``."""

    channel: bytes
    nonce: str
    proof: bytes

    @property
    def without_proof(self) -> str:
        """The part that is signed, built again without extensions."""
        return f"c={base64.b64encode(self.channel).decode()},r={self.nonce}"


def client_first(message: bytes) -> ClientFirst:
    """A client's first message.

    Raises:
        ScramFailure: it is none.
    """
    fields = _fields(message, "first")
    if len(fields) < 4 or fields[0] != "n":
        raise _bad("first", "it begins with n,")
    authorization_id = fields[1] and _value(fields[1], "a", "first", _is_name)
    rest = fields[2:]
    if len(rest[0]) > 2 and rest[0].startswith("m="):
        rest = rest[1:]
    if len(rest) < 2:
        raise _bad("first", "a name and a nonce are due")
    name, nonce = _value(rest[0], "n", "first", _is_name), _value(rest[1], "r", "first", _is_nonce)
    return ClientFirst(name, nonce, authorization_id, _extensions(rest[2:], "first"))


def client_final(message: bytes) -> ClientFinal:
    """A client's last message.

    Raises:
        ScramFailure: it is none.
    """
    fields = _fields(message, "last")
    if len(fields) < 3:
        raise _bad("last", "a channel, a nonce and a proof are due")
    _extensions(fields[2:-1], "last")
    channel = _decoded(_value(fields[0], "c", "last"), "last")
    nonce = _value(fields[1], "r", "last", _is_nonce)
    return ClientFinal(channel, nonce, _decoded(_value(fields[-1], "p", "last"), "last"))


def server_first(message: bytes) -> ServerFirst:
    """A server's first message.

    Raises:
        ScramFailure: it is none.
    """
    fields = _fields(message, "first")
    if len(fields) < 3:
        raise _bad("first", "a nonce, a salt and iterations are due")
    nonce = _value(fields[0], "r", "first", _is_nonce)
    salt = _decoded(_value(fields[1], "s", "first"), "first")
    iterations = int(_value(fields[2], "i", "first", _is_count))
    _extensions(fields[3:], "first")
    return ServerFirst(nonce, salt, iterations)


def server_final(message: bytes) -> bytes:
    """The signature in a server's last message.

    Raises:
        ScramFailure: it is none, or says that the login failed.
    """
    fields = _fields(message, "last")
    if fields[0].startswith("e="):
        raise ScramFailure(f"the server refused: {fields[0][2:100]}")
    _extensions(fields[1:], "last")
    return _decoded(_value(fields[0], "v", "last"), "last")


def _fields(message: bytes, which: str) -> list[str]:
    if len(message) > MESSAGE_BYTES_MAX:
        raise _bad(which, f"it has {len(message)} bytes; at most {MESSAGE_BYTES_MAX} can be")
    if not message.isascii():
        raise _bad(which, "it is not ASCII")
    return message.decode("ascii").split(",")


def _value(field: str, name: str, which: str, is_right: Callable[[str], bool] | None = None) -> str:
    value = field[2:]
    if field[:2] != f"{name}=" or (is_right is not None and not is_right(value)):
        raise _bad(which, f"{name}= is due, and a value of its form")
    return value


def _is_name(text: str) -> bool:
    return _NAME.fullmatch(text) is not None


def _is_nonce(text: str) -> bool:
    return _NONCE.fullmatch(text) is not None


def _is_count(text: str) -> bool:
    return _COUNT.fullmatch(text) is not None


def _extensions(fields: Iterable[str], which: str) -> dict[str, str]:
    found = {}
    for field in fields:
        if _EXTENSION.fullmatch(field) is None:
            raise _bad(which, "an extension is LETTERS=VALUE")
        name, _, value = field.partition("=")
        found[name] = value
    return found


def _decoded(text: str, which: str) -> bytes:
    try:
        return base64_bytes(text)
    except ValueError:
        raise _bad(which, "a value that is not base64") from None


def _bad(which: str, reason: str) -> ScramFailure:
    # The message itself is not repeated: it names a user, and its bytes are a stranger's.
    return ScramFailure(f"a {which} message that is none: {reason}")
