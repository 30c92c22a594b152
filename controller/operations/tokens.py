"""Requests about delegation tokens."""

from __future__ import annotations

from collections.abc import Callable

from quorate.controller.access.delegation_tokens import (
    TokensByHmac,
    decide_create_token,
    decide_expire_token,
    decide_renew_token,
    describe_tokens,
)
from quorate.controller.decisions.origin import ANONYMOUS
from quorate.controller.engine.interfaces import WriteContext
from quorate.controller.engine.quorum_controller import QuorumController
from quorate.controller.operations.active_role import ActiveRole
from quorate.controller.protocol.tokens import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
    DescribeDelegationTokenResponse,
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)
from quorate.metadata_log.records.records import DelegationTokenRecord
from quorate.snapshots.image.image import MetadataImage


class TokenOperations:
    """A part of ``controller.operations.operations.Operations``. Every method raises ``ApiError`` and its kinds."""

    def __init__(self, controller: QuorumController, role: ActiveRole) -> None:
        self._controller = controller
        self._role = role
        self._config = role.config.tokens
        self._tokens = TokensByHmac(self._config)

    async def create_token(
        self, request: CreateDelegationTokenRequest, timeout_ms: float
    ) -> CreateDelegationTokenResponse:
        """Make a token."""
        new_id = self._role.new_id
        return await self._controller.append_write_event(
            "create_delegation_token",
            lambda c: decide_create_token(
                c.image, self._config, request, _requester(c), self._now_ms(), new_id, _proof_ends_ms(c)
            ),
            timeout_ms,
        )

    async def renew_token(
        self, request: RenewDelegationTokenRequest, timeout_ms: float
    ) -> RenewDelegationTokenResponse:
        """Let a token live on."""
        return await self._controller.append_write_event(
            "renew_delegation_token",
            lambda c: decide_renew_token(c.image, self._tokens, request, _requester(c), self._now_ms()),
            timeout_ms,
        )

    async def expire_token(
        self, request: ExpireDelegationTokenRequest, timeout_ms: float
    ) -> ExpireDelegationTokenResponse:
        """Let a token end."""
        return await self._controller.append_write_event(
            "expire_delegation_token",
            lambda c: decide_expire_token(c.image, self._tokens, request, _requester(c), self._now_ms()),
            timeout_ms,
        )

    def describe_tokens(
        self,
        image: MetadataImage,
        owner: str | None,
        after: str,
        limit: int,
        is_shown: Callable[[DelegationTokenRecord], bool],
    ) -> DescribeDelegationTokenResponse:
        """A page of the tokens of a state that may be shown. It asks of each of them: that is work for a thread."""
        return describe_tokens(image, self._config, owner, after, limit, is_shown)

    def _now_ms(self) -> int:
        return self._controller.scheduler.wall_ms()


def _requester(context: WriteContext) -> str:
    return ANONYMOUS if context.origin is None else context.origin.principal


def _proof_ends_ms(context: WriteContext) -> int | None:
    return None if context.origin is None else context.origin.proof_ends_ms
