"""Delegation tokens: for whom a caller may make one, and which of them a caller may see (Kafka's rules)."""

from __future__ import annotations

from collections.abc import Callable

from quorate.controller.access.delegation_tokens import token_owner
from quorate.controller.permissions.rights import Rights
from quorate.controller.protocol.tokens import CreateDelegationTokenRequest
from quorate.metadata_log.errors import ApiError, ErrorCode
from quorate.metadata_log.records.records import DelegationTokenRecord


def check_not_by_token(rights: Rights) -> None:
    """Refuse a caller that is known by a delegation token: it would make itself live for ever.

    Raises:
        ApiError: DELEGATION_TOKEN_REQUEST_NOT_ALLOWED.
    """
    if rights.caller.identity.proof == "delegation-token":
        message = "Delegation Token requests are not allowed on connections that were authenticated by one."
        raise ApiError(ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, message)


def check_creation(rights: Rights, request: CreateDelegationTokenRequest) -> None:
    """Refuse a caller that may not make a token for this owner.

    Raises:
        ApiError: DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, DELEGATION_TOKEN_AUTHORIZATION_FAILED, INVALID_PRINCIPAL_TYPE.
    """
    check_not_by_token(rights)
    if rights.caller.identity.node is not None:
        # Known by a token it would be a user: what ACLs give to everybody would be its own, and no node has that.
        message = f"{rights.caller.principal} is not a user: nodes of the cluster have no delegation tokens."
        raise ApiError(ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, message)
    owner = token_owner(request, rights.caller.principal)
    if owner != rights.caller.principal and not rights.may("CREATE_TOKENS", "USER", owner):
        message = f"{rights.caller.principal} needs CREATE_TOKENS on the user {owner[:100]} to make tokens for it."
        raise ApiError(ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED, message)


def shown_tokens(rights: Rights) -> Callable[[DelegationTokenRecord], bool]:
    """Whether the caller may see a token."""

    def is_shown(token: DelegationTokenRecord) -> bool:
        return (
            rights.is_super
            or rights.caller.principal in (token.owner, *token.renewers)
            or rights.may("DESCRIBE", "DELEGATION_TOKEN", token.token_id)
            or rights.may("DESCRIBE_TOKENS", "USER", token.owner)
        )

    return is_shown
