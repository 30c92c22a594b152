"""The state of a running controller, read as a broker reads it: its feed, and a checkpoint if the log begins later."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Final

from broker.checkpoint_fetch import checkpoint_contents, fetch_checkpoint
from broker.controllers import ControllerFeed, connect_controllers
from broker.feed import (
    LOG_BEGIN,
    BatchesAnswer,
    ControllerStatus,
    FeedUnavailable,
    LogPosition,
    PositionRefused,
    check_batches,
)
from metadata_log.errors import NotController
from scripts.cli.connecting import find_secret
from snapshots.checkpoint import read_checkpoint
from snapshots.errors import ImageNotAvailable
from snapshots.image import MetadataImage
from snapshots.moments import Moment
from snapshots.replay_state import ReplayState

_BYTES_MAX: Final = 8 * 1024 * 1024
_TIMEOUT_MS: Final = 10_000.0
_RETRY_SECONDS: Final = 0.1


def live_image(url: str, at: Moment | None, secret_file: Path | None) -> MetadataImage:
    """The committed state of one controller, at a moment or at the end of what it had when it was first asked.

    Raises:
        ImageNotAvailable: what it has does not reach back, or not forward, to the moment.
        NotController: it does not answer. UntrustworthyAnswer, ReplayError: it answers what cannot be.
        InvalidUrl: the URL names no controller.
    """
    try:
        return asyncio.run(_read(url, at, find_secret(secret_file)))
    except FeedUnavailable as error:
        raise NotController(None, str(error)) from error


def live_batches(url: str, secret_file: Path | None) -> tuple[ReplayState, list[bytes]]:
    """The earliest state that one controller gives, and the committed batches that follow it, to where they end now.

    Raises:
        As ``live_image``.
    """
    batches: list[bytes] = []
    try:
        start = asyncio.run(_read_all(url, batches, find_secret(secret_file)))
    except FeedUnavailable as error:
        raise NotController(None, str(error)) from error
    return start, batches


async def _read_all(url: str, batches: list[bytes], secret: bytes | None) -> ReplayState:
    async with connect_controllers([url], secret, _TIMEOUT_MS) as controllers:
        reading = _Reading(controllers.feeds[0], None, batches.append)
        await reading.run()
        return reading.start


async def _read(url: str, at: Moment | None, secret: bytes | None) -> MetadataImage:
    async with connect_controllers([url], secret, _TIMEOUT_MS) as controllers:
        return await _Reading(controllers.feeds[0], at).run()


class _Reading:
    def __init__(self, feed: ControllerFeed, at: Moment | None, keep: Callable[[bytes], None] = lambda _: None) -> None:
        """``keep``: is given every batch that was replayed."""
        self._feed = feed
        self._at = at
        self._keep = keep
        #: Before the first batch.
        self.start = self._state = ReplayState()
        #: After the last batch that is not later, where the moment is a time.
        self._in_time = self._state
        self._position = LOG_BEGIN

    async def run(self) -> MetadataImage:
        end: int | None = None
        while True:
            try:
                answer = await self._feed.fetch_batches(self._position, 0, _BYTES_MAX)
            except PositionRefused:
                await self._take_checkpoint()
                continue
            end = answer.status.high_watermark if end is None else end
            if self._replay(answer):
                return self._state.stable
            if self._position.offset >= end:
                self._require_reached()
                is_time = self._at is not None and self._at.time_ms is not None
                return (self._in_time if is_time else self._state).stable

    def _replay(self, answer: BatchesAnswer) -> bool:
        """Whether the moment was reached."""
        view, at = memoryview(answer.data), self._at
        for start, header in check_batches(answer.data, self._position, answer.status):
            if at is not None and at.time_ms is None and at.is_before(header):
                return True
            batch = view[start : start + header.size]
            self._state = self._state.replay_batch(batch, below=None if at is None else at.offset)
            if at is not None and at.time_ms is not None and header.timestamp <= at.time_ms:
                self._in_time = self._state
            self._keep(bytes(batch))
            self._position = LogPosition(header.end_offset, header.epoch)
        return at is not None and at.is_reached_at(self._position.offset)

    def _require_reached(self) -> None:
        if self._at is not None and self._at.lies_beyond(*self._position):
            raise ImageNotAvailable(f"{self._feed.name}: its committed log ends {self._at.shortfall(*self._position)}")

    async def _take_checkpoint(self) -> None:
        fetched = await fetch_checkpoint(self._feed, _BYTES_MAX, _accept, lambda: asyncio.sleep(_RETRY_SECONDS))
        image = read_checkpoint(checkpoint_contents(fetched), *fetched.id)
        if self._at is not None and not self._at.reaches(*fetched.id, image.provenance.log_time_ms):
            raise ImageNotAvailable(
                f"{self._feed.name}: its log begins after {self._at}, "
                f"and its newest checkpoint is the state at {fetched.id.end_offset}"
            )
        self.start = self._state = self._in_time = ReplayState(image)
        self._position = LogPosition(*fetched.id)


def _accept(status: ControllerStatus) -> None:
    """Whatever its cluster and epoch: nothing was heard of either before."""
