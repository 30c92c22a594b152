"""The client's requests about delegation tokens."""

from __future__ import annotations

from quorate.controller.client.access import Read, Write
from quorate.controller.protocol.tokens import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
    DescribeDelegationTokenResponse,
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)
from quorate.metadata_log.arguments import checked_calls

_PATH = "/v1/delegation-tokens"


@checked_calls
class TokenClient:
    """A part of ``controller.client.client.ControllerClient``, and raises what that does."""

    def __init__(self, read: Read, write: Write) -> None:
        self._read = read
        self._write = write

    async def create(self, request: CreateDelegationTokenRequest) -> CreateDelegationTokenResponse:
        """Make a token; its HMAC is in the reply and never told again."""
        return await self._write(_PATH, request, CreateDelegationTokenResponse)

    async def renew(self, request: RenewDelegationTokenRequest) -> RenewDelegationTokenResponse:
        """Let a token live on."""
        return await self._write(f"{_PATH}/renew", request, RenewDelegationTokenResponse)

    async def expire(self, request: ExpireDelegationTokenRequest) -> ExpireDelegationTokenResponse:
        """Let a token end at another time, or at once."""
        return await self._write(f"{_PATH}/expire", request, ExpireDelegationTokenResponse)

    async def describe(
        self, owner: str | None = None, *, after: str = "", limit: int = 1_000
    ) -> DescribeDelegationTokenResponse:
        """A page of the tokens, of one owner, requester or renewer or of everybody. A linearizable read."""
        parameters: dict[str, str | int] = {"consistency": "linearizable", "after": after, "limit": limit}
        if owner is not None:
            parameters["owner"] = owner
        return await self._read(_PATH, DescribeDelegationTokenResponse, parameters)
