"""Delegation tokens: creation, renewal, expiry, description (Kafka's APIs 38 to 41).

A token's HMAC is its password. It is in the reply to the creation and nowhere else: neither in the log, nor in any
other reply, nor in a text of a message.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from quorate.controller.protocol.types import Int64, Message, SecretField, SecretMessage

_RENEWERS_MAX = 100
#: In the log a principal is one string, `type:name`, of at most 32,767 bytes; a character has at most 4.
_TypeName = Annotated[str, Field(max_length=100)]
_PrincipalName = Annotated[str, Field(max_length=8_000)]


class TokenPrincipal(Message):
    """Somebody who has to do with a token."""

    principal_type: _TypeName
    principal_name: Annotated[_PrincipalName, Field(min_length=1)]


class CreateDelegationTokenRequest(Message):
    """Make a token by which its owner can be taken for authenticated."""

    #: Whose token it is; without a name the requester's.
    owner_principal_type: _TypeName | None = None
    owner_principal_name: _PrincipalName | None = None
    #: Users who may renew it and end it, beside its owner.
    renewers: Annotated[list[TokenPrincipal], Field(max_length=_RENEWERS_MAX)] = Field(default_factory=list)
    #: Never more than the controllers' setting; 0 or less: that.
    max_lifetime_ms: Int64 = -1


class CreateDelegationTokenResponse(Message):
    """The token, once it is committed. Times in milliseconds since 1970."""

    principal_type: str
    principal_name: str
    token_requester_principal_type: str
    token_requester_principal_name: str
    issue_timestamp_ms: Int64
    #: It has to be renewed before.
    expiry_timestamp_ms: Int64
    #: It cannot be renewed beyond.
    max_timestamp_ms: Int64
    token_id: str
    hmac: SecretField


class RenewDelegationTokenRequest(SecretMessage):
    """Let a token live on."""

    hmac: SecretField
    #: From now; never more than the controllers' setting; 0 or less: that.
    renew_period_ms: Int64 = -1


class RenewDelegationTokenResponse(Message):
    """Until when it lives now."""

    expiry_timestamp_ms: Int64


class ExpireDelegationTokenRequest(SecretMessage):
    """Let a token end sooner."""

    hmac: SecretField
    #: From now; negative: it is removed at once.
    expiry_time_period_ms: Int64 = -1


class ExpireDelegationTokenResponse(Message):
    """Until when it lives now; of one that was removed the period that was asked for, as in Kafka."""

    expiry_timestamp_ms: Int64


class DescribedRenewer(Message):
    """A principal that may renew a token."""

    principal_type: str
    principal_name: str


class DescribedDelegationToken(Message):
    """The public part of a token. Times in milliseconds since 1970."""

    token_id: str
    principal_type: str
    principal_name: str
    token_requester_principal_type: str
    token_requester_principal_name: str
    issue_timestamp: Int64
    expiry_timestamp: Int64
    max_timestamp: Int64
    renewers: list[DescribedRenewer]


class DescribeDelegationTokenResponse(Message):
    """A page of the tokens, by id."""

    tokens: list[DescribedDelegationToken]
    #: `after` for the next page; null at the end.
    next_after: str | None
