"""SCRAM credentials of users: changes and description (Kafka's APIs 51 and 50).

A password is never sent: the client sends what PBKDF2 makes of it, and even that is not kept (RFC 5802).
"""

from __future__ import annotations

import base64
from typing import Annotated, Any, Final

from pydantic import Field, PlainSerializer, PlainValidator, WithJsonSchema

from controller.protocol_types import ITEMS_MAX, Int32, ItemResult, Message, Name, SecretMessage

#: Bytes of a salt or salted password; the longest hash has 64.
_SECRET_BYTES_MAX: Final = 1_024
_SECRET_CHARS_MAX: Final = (_SECRET_BYTES_MAX + 2) // 3 * 4


def _bytes(value: Any) -> bytes:
    # What is refused is not repeated.
    if not isinstance(value, bytes):
        if not isinstance(value, str):
            raise ValueError("must be base64")
        if len(value) > _SECRET_CHARS_MAX:
            raise ValueError(f"has more than {_SECRET_BYTES_MAX} bytes")
        try:
            value = base64.b64decode(value, validate=True)
        except ValueError:
            raise ValueError("must be base64") from None
    if len(value) > _SECRET_BYTES_MAX:
        raise ValueError(f"has more than {_SECRET_BYTES_MAX} bytes")
    return bytes(value)


def _text(value: bytes) -> str:
    return base64.b64encode(value).decode()


#: Bytes in Python and msgpack, base64 in JSON; not shown where the message is.
SecretField = Annotated[
    bytes,
    PlainValidator(_bytes),
    PlainSerializer(_text, return_type=str, when_used="json"),
    WithJsonSchema({"type": "string", "contentEncoding": "base64", "maxLength": _SECRET_CHARS_MAX}),
    Field(repr=False),
]


class ScramCredentialDeletion(Message):
    """A credential that is to go."""

    name: Name
    #: SCRAM-SHA-256 or SCRAM-SHA-512.
    mechanism: Name


class ScramCredentialUpsertion(SecretMessage):
    """A credential that is to be made or replaced."""

    name: Name
    mechanism: Name
    iterations: Int32
    salt: SecretField
    #: ``Hi(password, salt, iterations)`` of RFC 5802.
    salted_password: SecretField


class AlterUserScramCredentialsRequest(SecretMessage):
    """Changes of users; each user may be named once, and may fail for itself."""

    deletions: Annotated[list[ScramCredentialDeletion], Field(max_length=ITEMS_MAX)] = Field(default_factory=list)
    upsertions: Annotated[list[ScramCredentialUpsertion], Field(max_length=ITEMS_MAX)] = Field(default_factory=list)


class AlterUserScramCredentialsResult(ItemResult):
    """Whether a user's credential was changed."""

    user: str


class AlterUserScramCredentialsResponse(Message):
    """One result for each user, in the order in which deletions and upsertions name them first."""

    results: list[AlterUserScramCredentialsResult]


class DescribeUserScramCredentialsRequest(Message):
    """Whose credentials are wanted."""

    #: None or empty = everybody's.
    users: Annotated[list[Name], Field(max_length=ITEMS_MAX)] | None = None


class ScramCredentialInfo(Message):
    """What is told of a credential: nothing that would help to log in."""

    mechanism: str
    iterations: int


class DescribeUserScramCredentialsResult(ItemResult):
    """One user."""

    user: str
    credential_infos: list[ScramCredentialInfo] = Field(default_factory=list)


class DescribeUserScramCredentialsResponse(Message):
    """In the order of the request; by name where everybody is described."""

    results: list[DescribeUserScramCredentialsResult]
