"""Room for delegation tokens: how many one owner, and the whole cluster, may have.

By the settings of the active controller. Kafka has no such bound. Its answer that comes nearest is that of a policy:
the request is understood and not wanted.
"""

from __future__ import annotations

from quorate.controller.access.token_ends import SWEPT_MAX, is_expired
from quorate.controller.decisions.controller_config import TokenConfig
from quorate.metadata_log.errors import ApiError, ErrorCode
from quorate.metadata_log.records.records import RemoveDelegationTokenRecord, VersionedRecord
from quorate.snapshots.image.image import MetadataImage


def removals_for_room(image: MetadataImage, config: TokenConfig, owner: str, now_ms: int) -> list[VersionedRecord]:
    """The removals with which there is room for one more token of this owner; none where there is room anyway.

    Tokens that have expired take nobody's room until the next sweep: they go now, the owner's own first. ``now_ms``:
    milliseconds since 1970.

    Raises:
        ApiError: POLICY_VIOLATION, too many live.
    """
    tokens = image.delegation_tokens.tokens
    own = {id_ for id_, token in tokens.items() if token.owner == owner}
    if len(own) < config.per_owner_max and len(tokens) < config.count_max:
        return []
    expired = (id_ for id_, token in tokens.items() if is_expired(token, now_ms))
    removed = sorted(expired, key=lambda id_: (id_ not in own, id_))[:SWEPT_MAX]
    own_left, left = len(own.difference(removed)), len(tokens) - len(removed)
    if own_left >= config.per_owner_max:
        said = f"{owner[:100]} has {own_left} delegation tokens, and tokens.per_owner_max is {config.per_owner_max}"
        raise ApiError(ErrorCode.POLICY_VIOLATION, f"{said}: end some, or raise it.")
    if left >= config.count_max:
        said = f"There are {left} delegation tokens, and tokens.count_max is {config.count_max}"
        raise ApiError(ErrorCode.POLICY_VIOLATION, f"{said}: end some, or raise it.")
    return [VersionedRecord(RemoveDelegationTokenRecord(token_id), 0) for token_id in removed]
