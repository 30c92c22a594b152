"""Handlers for delegation tokens."""

from __future__ import annotations

from pydantic import Field

from quorate.controller.api.models import Nothing, ReadParameters
from quorate.controller.http.handlers.common import is_linearizable
from quorate.controller.http.routing import Call
from quorate.controller.protocol.tokens import DescribeDelegationTokenResponse
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
    return await call.node.operations.tokens.describe_tokens(
        parameters.owner, parameters.after, parameters.limit, is_linearizable=is_linearizable(parameters)
    )
