"""Handlers for delegation tokens."""

from __future__ import annotations

from functools import partial

from pydantic import Field

from quorate.controller.api.models import Nothing, ReadParameters
from quorate.controller.http.handlers.common import read_image
from quorate.controller.http.routing import Call
from quorate.controller.permissions.tokens import check_creation, check_not_by_token, shown_tokens
from quorate.controller.protocol.tokens import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
    DescribeDelegationTokenResponse,
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)
from quorate.controller.protocol.types import Name


class TokenParameters(ReadParameters):
    """The tokens wanted."""

    owner: Name | None = None
    """`User:name` of an owner, requester or renewer; without it everybody's."""
    after: str = Field(default="", max_length=64)
    """Only ids greater than this: the `next_after` of the page before."""
    limit: int = Field(default=100, ge=1, le=1000)
    """Most tokens in the answer."""


async def describe_tokens(call: Call, parameters: TokenParameters, body: Nothing) -> DescribeDelegationTokenResponse:
    image, tokens = await read_image(call, parameters), call.node.operations.tokens
    page = image, parameters.owner, parameters.after, parameters.limit
    return await call.on_thread(partial(tokens.describe_tokens, *page, shown_tokens(call.rights)))


async def create_token(
    call: Call, parameters: Nothing, body: CreateDelegationTokenRequest
) -> CreateDelegationTokenResponse:
    check_creation(call.rights, body)
    return await call.node.operations.tokens.create_token(body, call.write_timeout_ms)


async def renew_token(
    call: Call, parameters: Nothing, body: RenewDelegationTokenRequest
) -> RenewDelegationTokenResponse:
    check_not_by_token(call.rights)
    return await call.node.operations.tokens.renew_token(body, call.write_timeout_ms)


async def expire_token(
    call: Call, parameters: Nothing, body: ExpireDelegationTokenRequest
) -> ExpireDelegationTokenResponse:
    check_not_by_token(call.rights)
    return await call.node.operations.tokens.expire_token(body, call.write_timeout_ms)
