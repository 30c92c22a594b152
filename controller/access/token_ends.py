"""The ends of delegation tokens: when each is over, and the removal of those that are."""

from __future__ import annotations

from itertools import islice
from typing import Final

from quorate.controller.decisions.decision import Decision
from quorate.metadata_log.records.records import DelegationTokenRecord, RemoveDelegationTokenRecord, VersionedRecord
from quorate.snapshots.image.image import MetadataImage

#: Tokens that one pass removes.
SWEPT_MAX: Final = 1_000


def token_end_ms(token: DelegationTokenRecord) -> int:
    """The last millisecond (since 1970) in which a token is good."""
    return min(token.max_timestamp, token.expiration_timestamp)


def is_expired(token: DelegationTokenRecord, now_ms: int) -> bool:
    """Whether a token is over. ``now_ms``: milliseconds since 1970."""
    return token_end_ms(token) < now_ms


def decide_sweep_tokens(image: MetadataImage, now_ms: int) -> Decision[int | None]:
    """Remove tokens that have expired, some at most; the reply: 0 if there may be more, else None."""
    expired = (id_ for id_, token in image.delegation_tokens.tokens.items() if is_expired(token, now_ms))
    found = sorted(islice(expired, SWEPT_MAX))
    records = [VersionedRecord(RemoveDelegationTokenRecord(token_id), 0) for token_id in found]
    return Decision(records, 0 if len(found) == SWEPT_MAX else None, is_internal=True)
