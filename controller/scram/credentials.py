"""Credentials of users as servers keep them, where they come from, and their text form."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from quorate.controller.scram.base64_text import base64_bytes
from quorate.metadata_log.errors import QuorateError
from quorate.snapshots.image.image_parts import ScramImage
from quorate.snapshots.views.kafka_names import SCRAM_MECHANISMS

#: Of a credential's text: two keys of 64 bytes, and a salt.
TEXT_CHARS_MAX: Final = 8_192

_MECHANISM_IDS: Final[Mapping[str, int]] = {name: number for number, name in SCRAM_MECHANISMS.items()}
_KEYS: Final = ("salt", "stored_key", "server_key", "iterations")
_INTEGER_MAX: Final = 2**31 - 1
_INTEGER_DIGITS: Final = 10


class BadCredentialText(QuorateError, ValueError):
    """A text that is no credential. It is not repeated."""


class ServerCredential(NamedTuple):
    """The part of a password that a server keeps."""

    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int


class TokenCredential(NamedTuple):
    """The same of a delegation token, by whose id its bearer logs in, in the name of its owner."""

    #: The owner's name, without its type.
    owner: str
    expires_ms: int
    credential: ServerCredential


FindUser = Callable[[str], ServerCredential | None]
FindToken = Callable[[str], TokenCredential | None]


def users_of(scram: ScramImage, mechanism: str) -> FindUser:
    """A search among the credentials of an image."""
    number = _MECHANISM_IDS[mechanism]

    def find(user: str) -> ServerCredential | None:
        record = scram.credentials.get((user, number))
        if record is None:
            return None
        return ServerCredential(record.salt, record.stored_key, record.server_key, record.iterations)

    return find


def credential_text(credential: ServerCredential) -> str:
    """The text form that Kafka's tools know (``ScramCredentialUtils``). It is a secret."""
    salt, stored_key, server_key = (base64.b64encode(part).decode() for part in credential[:3])
    return f"salt={salt},stored_key={stored_key},server_key={server_key},iterations={credential.iterations}"


def credential_of(text: str) -> ServerCredential:
    """A credential out of its text form. Its keys come in any order, and of one that comes twice the last one counts.

    Raises:
        BadCredentialText: it is none, or too long.
    """
    if len(text) > TEXT_CHARS_MAX:
        raise BadCredentialText(f"a credential of {len(text)} characters; at most {TEXT_CHARS_MAX} can be")
    parts: dict[str, str] = {}
    for part in text.rstrip(",").split(","):
        name, equals, value = part.partition("=")
        if not name or not equals:
            raise BadCredentialText("a part of a credential that is no NAME=VALUE")
        parts[name] = value
    if sorted(parts) != sorted(_KEYS):
        raise BadCredentialText(f"a credential has {', '.join(_KEYS)}, and nothing else")
    try:
        salt, stored_key, server_key = (base64_bytes(parts[name]) for name in _KEYS[:3])
    except ValueError:
        raise BadCredentialText("a key of a credential that is not base64") from None
    return ServerCredential(salt, stored_key, server_key, _integer(parts["iterations"]))


def _integer(text: str) -> int:
    """An integer as Java reads one."""
    digits = text[1:] if text[:1] in ("+", "-") else text
    # Zeros in front are none of the digits that count.
    significant = digits.lstrip("0")
    if not (digits.isascii() and digits.isdigit()) or len(significant) > _INTEGER_DIGITS:
        raise BadCredentialText("iterations that are no number")
    number = int(f"{'-' if text[0] == '-' else ''}{digits[-_INTEGER_DIGITS:]}")
    if not -_INTEGER_MAX - 1 <= number <= _INTEGER_MAX:
        raise BadCredentialText("iterations that no integer can hold")
    return number
