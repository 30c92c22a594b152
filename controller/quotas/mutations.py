"""The rate of mutations by client (KIP-599): partitions that are created, added and deleted, per second.

Strict, as Kafka is to clients that know of it: whoever is in debt may change nothing, whoever is not may change as much
as he likes, and pays for it before the next time. Only what is accepted is paid for: a request that is refused as a
whole costs nothing (with Kafka's controller it may). Soft state of the active controller: another one begins with full
buckets, as Kafka's does.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from quorate.controller.decisions.origin import Origin
from quorate.controller.quotas.entities import MUTATION_RATE, rate_of_client
from quorate.controller.quotas.token_bucket import TokenBucket
from quorate.metadata_log.errors import ApiError, ErrorCode
from quorate.snapshots.image.image_parts import ClientQuotasImage

#: Clients whose rates are known at once. Above it the one that asked least recently begins with a full bucket again.
BUCKETS_MAX: Final = 10_000


class MutationQuota:
    """The quota of the client that makes one request, while that is decided."""

    __slots__ = ("_bucket", "_burst", "_now_ms", "_rate", "_refused", "_taken", "throttle_time_ms")

    def __init__(
        self, bucket: TokenBucket, rate: float, burst: float, now_ms: float, refused: Callable[[], None]
    ) -> None:
        """``refused`` is called for each thing that is."""
        self._bucket = bucket
        self._rate = rate
        self._burst = burst
        self._now_ms = now_ms
        self._refused = refused
        #: Partitions that are charged for once the request is accepted.
        self._taken = 0
        #: For how long the client has to wait, where anything was refused.
        self.throttle_time_ms = 0

    def take(self, partitions: int) -> None:
        """Count partitions that are to be created or deleted.

        Raises:
            ApiError: THROTTLING_QUOTA_EXCEEDED, too many were before. Nothing is counted.
        """
        tokens = self._bucket.tokens(self._rate, self._burst, self._now_ms) - self._taken
        if tokens < 0:
            # Rounded as Java does it.
            self.throttle_time_ms = math.floor(-tokens / self._rate * 1000 + 0.5)
            self._refused()
            raise ApiError(
                ErrorCode.THROTTLING_QUOTA_EXCEEDED,
                f"The throttling quota has been exceeded: {MUTATION_RATE} is {self._rate:g} partitions a second; "
                f"try again in {self.throttle_time_ms} ms.",
            )
        self._taken += partitions

    def charge(self) -> None:
        """Spend what was counted: it is done."""
        self._bucket.spend(self._taken)
        self._taken = 0


class MutationQuotas:
    """The buckets of all clients that a quota bounds."""

    def __init__(self, burst_seconds: float) -> None:
        """``burst_seconds``: a full bucket holds what the rate gives in this time."""
        self._burst_seconds = burst_seconds
        self._buckets: OrderedDict[tuple[str, str], TokenBucket] = OrderedDict()
        #: Of the request that is decided, or was decided last.
        self._latest: MutationQuota | None = None
        #: Topics that were not created, not grown or not deleted for it.
        self.throttled = 0

    def __len__(self) -> int:
        return len(self._buckets)

    def of(self, quotas: ClientQuotasImage, origin: Origin | None, now_ms: float) -> MutationQuota | None:
        """The quota of whoever asks; None: nothing bounds it. ``origin`` None: the controller itself."""
        self._latest = None
        if origin is None or not quotas.entities:
            return None
        user = origin.principal.partition(":")[2]
        rate = rate_of_client(quotas.entities, MUTATION_RATE, user, origin.client_id)
        if rate is None:
            return None
        burst = rate.per_second * self._burst_seconds
        bucket = self._bucket((rate.user, rate.client_id), burst, now_ms)
        self._latest = MutationQuota(bucket, rate.per_second, burst, now_ms, self._note_refused)
        return self._latest

    def charge(self) -> None:
        """Charge the request whose quota was asked for last: it is accepted."""
        if self._latest is not None:
            self._latest.charge()

    def clear(self) -> None:
        """Forget all clients."""
        self._buckets.clear()
        self._latest = None

    def _note_refused(self) -> None:
        self.throttled += 1

    def _bucket(self, key: tuple[str, str], burst: float, now_ms: float) -> TokenBucket:
        bucket = self._buckets.get(key)
        if bucket is None:
            bucket = self._buckets[key] = TokenBucket(burst, now_ms)
            if len(self._buckets) > BUCKETS_MAX:
                self._buckets.popitem(last=False)
        else:
            self._buckets.move_to_end(key)
        return bucket
