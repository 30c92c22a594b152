"""Delegation tokens (Kafka's ``DelegationTokenControlManager``): made, renewed, ended, described.

The log holds a token's id, never its HMAC: that is HMAC-SHA512 of the id under the controllers' secret, so that whoever
has the secret can check it. Time, ids, the secret and the requester come in as arguments.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from quorate.controller.access.token_ends import is_expired
from quorate.controller.access.token_room import removals_for_room
from quorate.controller.decisions.controller_config import TokenConfig
from quorate.controller.decisions.decision import Decision
from quorate.controller.decisions.metadata_version import DELEGATION_TOKENS_LEVEL
from quorate.controller.decisions.origin import ANONYMOUS
from quorate.controller.protocol.tokens import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
    DescribedDelegationToken,
    DescribeDelegationTokenResponse,
    DescribedRenewer,
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)
from quorate.metadata_log.errors import ApiError, ErrorCode
from quorate.metadata_log.ids import Uuid, uuid_text
from quorate.metadata_log.records.records import DelegationTokenRecord, RemoveDelegationTokenRecord, VersionedRecord
from quorate.snapshots.image.image import MetadataImage

_USER: Final = "User"


def token_hmac(secret: bytes, token_id: str) -> bytes:
    """A token's password."""
    return hmac.digest(secret, token_id.encode(), "sha512")


class TokensByHmac:
    """The tokens by their passwords: HMACs once computed are kept. Owned by the loop thread."""

    def __init__(self, config: TokenConfig) -> None:
        self.config = config
        self._made_with: tuple[bytes, ...] = ()
        self._ids: dict[bytes, str] = {}
        self._looked_at: set[str] = set()

    def find(self, tokens: Mapping[str, DelegationTokenRecord], given: bytes) -> DelegationTokenRecord | None:
        """The token with this password, if there is one."""
        if self.config.secrets is not None:
            self._look_at(tokens, self.config.secrets(), given)
        token_id = self._ids.get(given)
        return None if token_id is None else tokens.get(token_id)

    def _look_at(self, tokens: Mapping[str, DelegationTokenRecord], secrets: tuple[bytes, ...], given: bytes) -> None:
        if secrets == self._made_with and given in self._ids:
            return
        if secrets != self._made_with or len(self._looked_at) > 2 * len(tokens):
            self._made_with = secrets
            self._ids.clear()
            self._looked_at.clear()
        for token_id in tokens:
            if token_id not in self._looked_at:
                self._looked_at.add(token_id)
                self._ids |= {token_hmac(secret, token_id): token_id for secret in secrets}


# --- changes -----------------------------------------------------------------------------------------


def decide_create_token(
    image: MetadataImage,
    config: TokenConfig,
    request: CreateDelegationTokenRequest,
    requester: str,
    now_ms: int,
    new_id: Callable[[], Uuid],
    proof_ends_ms: int | None = None,
) -> Decision[CreateDelegationTokenResponse]:
    """A new token, which ends with the proof of who asks, where that has an end. Times in milliseconds since 1970.

    Raises:
        ApiError: DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, DELEGATION_TOKEN_AUTH_DISABLED, UNSUPPORTED_VERSION,
            INVALID_PRINCIPAL_TYPE, POLICY_VIOLATION.
    """
    secret = _check_allowed(image, config, requester)
    owner = token_owner(request, requester)
    for renewer in request.renewers:
        if renewer.principal_type != _USER:
            message = f"Renewers are users, and {renewer.principal_type[:40]!r} is no user."
            raise ApiError(ErrorCode.INVALID_PRINCIPAL_TYPE, message)
    lifetime_ms = _lifetime_ms(config, request, now_ms, proof_ends_ms)
    removals = removals_for_room(image, config, owner, now_ms)
    token_id = uuid_text(new_id())
    record = DelegationTokenRecord(
        owner=owner,
        requester=requester,
        renewers=tuple(f"{one.principal_type}:{one.principal_name}" for one in request.renewers),
        issue_timestamp=now_ms,
        max_timestamp=now_ms + lifetime_ms,
        expiration_timestamp=now_ms + min(lifetime_ms, config.renew_period_ms),
        token_id=token_id,
    )
    owner_type, owner_name = _parts(owner)
    requester_type, requester_name = _parts(requester)
    reply = CreateDelegationTokenResponse(
        principal_type=owner_type,
        principal_name=owner_name,
        token_requester_principal_type=requester_type,
        token_requester_principal_name=requester_name,
        issue_timestamp_ms=record.issue_timestamp,
        expiry_timestamp_ms=record.expiration_timestamp,
        max_timestamp_ms=record.max_timestamp,
        token_id=token_id,
        hmac=token_hmac(secret, token_id),
    )
    return Decision([*removals, VersionedRecord(record, 0)], reply)


def decide_renew_token(
    image: MetadataImage, tokens: TokensByHmac, request: RenewDelegationTokenRequest, requester: str, now_ms: int
) -> Decision[RenewDelegationTokenResponse]:
    """Let a token live on, until its last day at most.

    Raises:
        ApiError: as ``decide_create_token``, and DELEGATION_TOKEN_NOT_FOUND, DELEGATION_TOKEN_EXPIRED,
            DELEGATION_TOKEN_OWNER_MISMATCH.
    """
    token = _found(image, tokens, request.hmac, requester)
    # The other order than where a token is ended; both are those of Kafka 4.3.1.
    _check_not_expired(token, now_ms)
    _check_owner(token, requester)
    period_ms = tokens.config.renew_period_ms
    if request.renew_period_ms > 0:
        period_ms = min(period_ms, request.renew_period_ms)
    end_ms = min(token.max_timestamp, now_ms + period_ms)
    return Decision([_ending_at(token, end_ms)], RenewDelegationTokenResponse(expiry_timestamp_ms=end_ms))


def decide_expire_token(
    image: MetadataImage, tokens: TokensByHmac, request: ExpireDelegationTokenRequest, requester: str, now_ms: int
) -> Decision[ExpireDelegationTokenResponse]:
    """Let a token end at another time, or remove it, also one that has expired and was not swept yet.

    Raises:
        ApiError: as ``decide_renew_token``.
    """
    token = _found(image, tokens, request.hmac, requester)
    _check_owner(token, requester)
    period_ms = request.expiry_time_period_ms
    if period_ms < 0:
        removal = VersionedRecord(RemoveDelegationTokenRecord(token.token_id), 0)
        return Decision([removal], ExpireDelegationTokenResponse(expiry_timestamp_ms=now_ms))
    _check_not_expired(token, now_ms)
    end_ms = min(token.max_timestamp, now_ms + period_ms)
    return Decision([_ending_at(token, end_ms)], ExpireDelegationTokenResponse(expiry_timestamp_ms=end_ms))


def _check_allowed(image: MetadataImage, config: TokenConfig, requester: str) -> bytes:
    """The secret that new tokens are made with."""
    if requester == ANONYMOUS:
        message = "Delegation token requests are not allowed for who does not say who asks."
        raise ApiError(ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, message)
    secret = _check_enabled(config)
    if image.features.metadata_version < DELEGATION_TOKENS_LEVEL:
        message = "The current metadata.version does not support delegation tokens"
        raise ApiError(ErrorCode.UNSUPPORTED_VERSION, message)
    return secret


def _check_enabled(config: TokenConfig) -> bytes:
    if config.secrets is None:
        message = "Delegation Token feature is not enabled."
        raise ApiError(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED, message)
    return config.secrets()[0]


def _lifetime_ms(
    config: TokenConfig, request: CreateDelegationTokenRequest, now_ms: int, proof_ends_ms: int | None
) -> int:
    lifetime_ms = config.max_lifetime_ms
    if request.max_lifetime_ms > 0:
        lifetime_ms = min(lifetime_ms, request.max_lifetime_ms)
    if proof_ends_ms is not None:
        # Its last millisecond is the last of the proof: else who has a short-lived proof would have a long-lived one.
        lifetime_ms = min(lifetime_ms, proof_ends_ms - 1 - now_ms)
    if lifetime_ms < 0:
        message = "Delegation Token requests are not allowed by a proof that has ended."
        raise ApiError(ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, message)
    return lifetime_ms


def token_owner(request: CreateDelegationTokenRequest, requester: str) -> str:
    """The principal whose token it is to be.

    Raises:
        ApiError: INVALID_PRINCIPAL_TYPE.
    """
    if not request.owner_principal_name:
        return requester
    type_ = request.owner_principal_type
    if not type_ or ":" in type_:
        message = f"The owner needs a principal type, such as {_USER}, not {(type_ or '')[:40]!r}."
        raise ApiError(ErrorCode.INVALID_PRINCIPAL_TYPE, message)
    return f"{type_}:{request.owner_principal_name}"


def _found(image: MetadataImage, tokens: TokensByHmac, given: bytes, requester: str) -> DelegationTokenRecord:
    """The token with this password."""
    _check_allowed(image, tokens.config, requester)
    token = tokens.find(image.delegation_tokens.tokens, given)
    if token is None:
        raise ApiError(ErrorCode.DELEGATION_TOKEN_NOT_FOUND, "Delegation Token is not found on server.")
    return token


def _check_not_expired(token: DelegationTokenRecord, now_ms: int) -> None:
    if is_expired(token, now_ms):
        raise ApiError(ErrorCode.DELEGATION_TOKEN_EXPIRED, "Delegation Token is expired.")


def _check_owner(token: DelegationTokenRecord, requester: str) -> None:
    if requester != token.owner and requester not in token.renewers:
        message = "Specified Principal is not valid Owner/Renewer."
        raise ApiError(ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH, message)


def _ending_at(token: DelegationTokenRecord, end_ms: int) -> VersionedRecord:
    return VersionedRecord(replace(token, expiration_timestamp=end_ms), 0)


# --- description -------------------------------------------------------------------------------------


def describe_tokens(
    image: MetadataImage,
    config: TokenConfig,
    owner: str | None,
    after: str,
    limit: int,
    is_shown: Callable[[DelegationTokenRecord], bool],
) -> DescribeDelegationTokenResponse:
    """A page of the tokens that may be shown, by id: of one owner (or requester, or renewer) or of everybody.

    Raises:
        ApiError: DELEGATION_TOKEN_AUTH_DISABLED.
    """
    _check_enabled(config)
    tokens = image.delegation_tokens.tokens
    ids = sorted(
        id_
        for id_, token in tokens.items()
        if id_ > after and (owner is None or _concerns(token, owner)) and is_shown(token)
    )
    page = ids[:limit]
    return DescribeDelegationTokenResponse(
        tokens=[_described(tokens[id_]) for id_ in page],
        next_after=page[-1] if len(ids) > limit else None,
    )


def _concerns(token: DelegationTokenRecord, principal: str) -> bool:
    return principal in (token.owner, token.requester, *token.renewers)


def _described(token: DelegationTokenRecord) -> DescribedDelegationToken:
    owner_type, owner_name = _parts(token.owner)
    requester_type, requester_name = _parts(token.requester)
    return DescribedDelegationToken(
        token_id=token.token_id,
        principal_type=owner_type,
        principal_name=owner_name,
        token_requester_principal_type=requester_type,
        token_requester_principal_name=requester_name,
        issue_timestamp=token.issue_timestamp,
        expiry_timestamp=token.expiration_timestamp,
        max_timestamp=token.max_timestamp,
        renewers=[DescribedRenewer(principal_type=t, principal_name=n) for t, n in map(_parts, token.renewers)],
    )


def _parts(principal: str) -> tuple[str, str]:
    type_, _, name = principal.partition(":")
    return type_, name
