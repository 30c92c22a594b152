"""Compares this process's state with that of the controller it follows, and ends the process where it is wrong.

A broker whose state is not that of more than half of all controllers plays on what is not the cluster's: it stops, and
a new start reads everything anew. Where no such half agrees it goes on, and says so: controllers watch over each other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final, NoReturn, Protocol

import structlog

from quorate.broker.controllers.feed import FeedUnavailable
from quorate.broker.environment import BrokerMachine
from quorate.broker.metadata.digests import ImageDigests
from quorate.metadata_log.errors import QuorateError

log = structlog.get_logger(__name__)

#: A cluster has many brokers, and each asks a controller: less often than these ask each other, and not all at once.
INTERVAL_MS: Final = 30_000.0
#: Of a core, on average.
CORE_SHARE: Final = 0.01
#: Between the two comparisons that end a process.
_CONFIRM_MS: Final = 1_000.0


class ImageDiffers(QuorateError):
    """The image of this process is not the cluster's. The process must not go on."""


class DigestSource(Protocol):
    """One controller, as a source of digests."""

    @property
    def name(self) -> str:
        """For logs: its URL."""

    async def digest_at(self, offset: int) -> str:
        """Digest of its state at an offset.

        Raises:
            FeedUnavailable: it cannot say now.
        """


class ImageDigestWatch:
    """``run`` works until it is cancelled."""

    def __init__(
        self, digests: ImageDigests, controllers: Sequence[DigestSource], followed: str, machine: BrokerMachine
    ) -> None:
        """``followed``: name of the controller to ask first."""
        self._digests = digests
        self._controllers = sorted(controllers, key=lambda controller: controller.name != followed)
        self._machine = machine
        #: Newest offset at which the state was a controller's.
        self._equal_at = 0

    async def run(self) -> NoReturn:
        """Compare again and again.

        Raises:
            ImageDiffers: twice in a row.
        """
        while True:
            begun = self._digests.spent_seconds
            if await self.check() is not None:
                await self._machine.sleep_ms(_CONFIRM_MS)
                differs = await self.check()
                if differs is not None:
                    raise ImageDiffers(differs)
            least_ms = 1000 * (self._digests.spent_seconds - begun) / CORE_SHARE
            await self._machine.sleep_ms(max(least_ms, INTERVAL_MS * (0.5 + self._machine.draw())))

    async def check(self) -> str | None:
        """One comparison at the newest offset; how the state differs from that of most controllers, if it does."""
        offset, own = await self._digests.at(None, 0)
        said: Counter[str] = Counter()
        for controller in self._controllers:
            try:
                digest = await controller.digest_at(offset)
            except FeedUnavailable:
                continue
            if digest == own:
                self._equal_at = max(self._equal_at, offset)
                return None
            said[digest] += 1
        if not said:
            return None
        digest, count = said.most_common(1)[0]
        since = f"; it was the same at offset {self._equal_at}" if self._equal_at else ""
        those = f"{count} of {len(self._controllers)} controllers"
        sentence = f"the state at offset {offset} differs from that of {those}{since}"
        log.error("state.differs", offset=offset, own=own, controllers=dict(said), equal_at=self._equal_at)
        return sentence if count > len(self._controllers) // 2 else None
