"""SCRAM credentials of users: changes and description (Kafka's APIs 51 and 50).

A password is never sent: the client sends what PBKDF2 makes of it, and even that is not kept (RFC 5802).
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from quorate.controller.protocol.types import ITEMS_MAX, Int32, ItemResult, Message, Name, SecretField, SecretMessage


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
    """The users whose credentials are wanted."""

    #: None or empty = everybody's.
    users: Annotated[list[Name], Field(max_length=ITEMS_MAX)] | None = None


class ScramCredentialInfo(Message):
    """The public part of a credential: nothing that would help to log in."""

    mechanism: str
    iterations: int


class DescribeUserScramCredentialsResult(ItemResult):
    """One user."""

    user: str
    credential_infos: list[ScramCredentialInfo] = Field(default_factory=list)


class DescribeUserScramCredentialsResponse(Message):
    """In the order of the request; by name where everybody is described."""

    results: list[DescribeUserScramCredentialsResult]
