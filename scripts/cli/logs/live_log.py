"""The committed log of one running controller, read as a broker reads it: its feed, behind a checkpoint or from 0."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Final

from quorate.broker.controllers.checkpoint_fetch import checkpoint_contents, fetch_checkpoint
from quorate.broker.controllers.controllers import ControllerFeed
from quorate.broker.controllers.feed import (
    LOG_BEGIN,
    BatchesAnswer,
    CheckpointAnswer,
    ControllerStatus,
    FeedPosition,
    FeedUnavailable,
    FollowedFeed,
    PositionRefused,
    check_batches,
)
from quorate.controller.api.checkpoint_models import CheckpointReply
from quorate.controller.client.client import ControllerClient
from quorate.metadata_log.batches.batch import BatchHeader
from quorate.metadata_log.checkpoints.checkpoint_files import CheckpointId
from quorate.metadata_log.errors import QuorateError
from quorate.snapshots.checkpoints.checkpoint import read_checkpoint
from quorate.snapshots.checkpoints.moments import Moment
from quorate.snapshots.errors import ImageNotAvailable
from quorate.snapshots.replay.replay_state import ReplayState

_BYTES_MAX: Final = 8 * 1024 * 1024
#: Asks for the least there is: one batch.
_PROBE_BYTES: Final = 1
_RETRY_SECONDS: Final = 0.1
#: For one answer.
TIMEOUT_MS: Final = 10_000.0


class _CountedFeed:
    """A feed, and the bytes that it gave."""

    def __init__(self, feed: FollowedFeed, on_bytes: Callable[[int], None]) -> None:
        self._feed = feed
        self._on_bytes = on_bytes
        self.name = feed.name

    async def fetch_batches(self, position: FeedPosition, wait_ms: int, bytes_max: int) -> BatchesAnswer:
        """See ``FollowedFeed``."""
        answer = await self._feed.fetch_batches(position, wait_ms, bytes_max)
        self._on_bytes(len(answer.data))
        return answer

    async def fetch_checkpoint(self, wanted: CheckpointId | None, position: int, bytes_max: int) -> CheckpointAnswer:
        """See ``FollowedFeed``."""
        answer = await self._feed.fetch_checkpoint(wanted, position, bytes_max)
        self._on_bytes(len(answer.chunk.data))
        return answer


class LiveLog:
    """Belongs to the loop that the client is used in."""

    def __init__(
        self, client: ControllerClient, url: str, on_bytes: Callable[[int], None] = lambda count: None
    ) -> None:
        """``on_bytes``: told how many more bytes of the log and its checkpoints have come."""
        self._client = client
        self._feed: FollowedFeed = _CountedFeed(ControllerFeed(client, url, TIMEOUT_MS, (), is_past=True), on_bytes)
        self.url = url

    async def cluster_id(self, position: FeedPosition) -> str:
        """The cluster that it is of, by its answer about a position that ``earliest`` gave.

        Raises:
            FeedUnavailable: the controller does not answer. PositionRefused: it has cut its log in the meantime.
        """
        return (await self._feed.fetch_batches(position, 0, _PROBE_BYTES)).status.cluster_id

    async def earliest(self) -> FeedPosition:
        """The first position that the log can be read from: offset 0 where a file reaches back to it, wherever the
        log starts, or the oldest checkpoint in it.

        Raises:
            FeedUnavailable: the controller does not answer. ImageNotAvailable: it gives no such position.
        """
        if await self._goes_on_from(LOG_BEGIN):
            return LOG_BEGIN
        return await self._first(await self._checkpoints(), "the log")

    async def later(self, earliest: FeedPosition) -> list[FeedPosition]:
        """The positions behind the earliest one that it has states at, oldest first.

        Raises:
            FeedUnavailable: the controller does not answer.
        """
        known = [FeedPosition(one.end_offset, one.epoch) for one in await self._checkpoints()]
        return [position for position in known if position > earliest]

    async def nearest(self, at: Moment | None) -> FeedPosition:
        """The position at which reading begins for the state at a moment, or for the newest one.

        Raises:
            As ``earliest``: the log begins after the moment.
        """
        if await self._goes_on_from(LOG_BEGIN):
            return LOG_BEGIN
        newest_first = reversed(await self._checkpoints())
        wanted = "the newest state" if at is None else str(at)
        return await self._first((one for one in newest_first if _is_before(one, at)), wanted)

    async def _first(self, checkpoints: Iterable[CheckpointReply], wanted: str) -> FeedPosition:
        for one in checkpoints:
            position = FeedPosition(one.end_offset, one.epoch)
            if await self._goes_on_from(position):
                return position
        known = [str(one.end_offset) for one in await self._checkpoints()]
        states = f"has states at {', '.join(known)} only" if known else "has no checkpoint"
        raise ImageNotAvailable(f"{self.url}: it does not reach back to {wanted}: its log was cut, and it {states}")

    async def _goes_on_from(self, position: FeedPosition) -> bool:
        try:
            await self._feed.fetch_batches(position, 0, _PROBE_BYTES)
        except PositionRefused:
            return False
        return True

    async def _checkpoints(self) -> list[CheckpointReply]:
        """Oldest first."""
        try:
            return (await self._client.checkpoints.list(self.url)).checkpoints
        except QuorateError as error:
            raise FeedUnavailable(f"{self.url}: {error}") from error

    async def load(self, position: FeedPosition) -> ReplayState:
        """The state at a position that ``earliest`` or ``nearest`` gave.

        Raises:
            FeedUnavailable, UntrustworthyAnswer, MalformedData, ReplayError: it is not to be had, or cannot be.
        """
        if position == LOG_BEGIN:
            return ReplayState()
        wanted = CheckpointId(*position)
        fetched = await fetch_checkpoint(self._feed, _BYTES_MAX, _accept, lambda: asyncio.sleep(_RETRY_SECONDS), wanted)
        return ReplayState(read_checkpoint(checkpoint_contents(fetched), *fetched.id))

    async def batches(self, position: FeedPosition, end: int | None = None) -> AsyncIterator[tuple[BatchHeader, bytes]]:
        """The committed batches behind a position, to an offset, or to where they end when they are first asked for.

        Raises:
            FeedUnavailable: the controller does not answer, or does not hold what follows. UntrustworthyAnswer: it
                answers what cannot be.
        """
        while end is None or position.offset < end:
            try:
                answer = await self._feed.fetch_batches(position, 0, _BYTES_MAX)
            except PositionRefused as error:
                raise FeedUnavailable(f"{self.url}: {error}") from error
            if not answer.data:
                return
            end = answer.status.high_watermark if end is None else end
            for start, header in check_batches(answer.data, position, answer.status):
                if header.base_offset >= end:
                    return
                yield header, answer.data[start : start + header.size]
                position = FeedPosition(header.end_offset, header.epoch)


def _is_before(checkpoint: CheckpointReply, at: Moment | None) -> bool:
    return at is None or at.reaches(checkpoint.end_offset, checkpoint.epoch, checkpoint.last_record_ms)


def _accept(status: ControllerStatus) -> None:
    """Whatever its cluster and epoch: nothing was heard of either before."""
