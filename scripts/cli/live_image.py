"""The state of a running controller, read as a broker reads it: its feed, and a checkpoint if the log begins later."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Final

from broker.checkpoint_fetch import checkpoint_contents, fetch_checkpoint
from broker.controllers import ControllerFeed, connect_controllers
from broker.feed import LOG_BEGIN, ControllerStatus, FeedUnavailable, LogPosition, PositionRefused, check_batches
from metadata_log.errors import NotController
from scripts.cli.connecting import find_secret
from snapshots.checkpoint import read_checkpoint
from snapshots.errors import ImageNotAvailable
from snapshots.image import MetadataImage
from snapshots.replay_state import ReplayState

_BYTES_MAX: Final = 8 * 1024 * 1024
_TIMEOUT_MS: Final = 10_000.0
_RETRY_SECONDS: Final = 0.1


def live_image(url: str, offset: int | None, secret_file: Path | None) -> MetadataImage:
    """The committed state of one controller, at an offset or at the end of what it had when it was first asked.

    Raises:
        ImageNotAvailable: what it has does not reach back, or not forward, to the offset.
        NotController: it does not answer. UntrustworthyAnswer, ReplayError: it answers what cannot be.
        InvalidUrl: the URL names no controller.
    """
    try:
        return asyncio.run(_read(url, offset, find_secret(secret_file)))
    except FeedUnavailable as error:
        raise NotController(None, str(error)) from error


async def _read(url: str, offset: int | None, secret: bytes | None) -> MetadataImage:
    async with connect_controllers([url], secret, _TIMEOUT_MS) as controllers:
        return await _Reading(controllers.feeds[0], offset).run()


class _Reading:
    def __init__(self, feed: ControllerFeed, offset: int | None) -> None:
        self._feed = feed
        self._offset = offset
        self._state = ReplayState()
        self._position = LOG_BEGIN

    async def run(self) -> MetadataImage:
        end = self._offset
        while True:
            try:
                answer = await self._feed.fetch_batches(self._position, 0, _BYTES_MAX)
            except PositionRefused:
                await self._take_checkpoint()
                continue
            reached = answer.status.high_watermark
            end = reached if end is None else end
            if end > reached:
                raise ImageNotAvailable(f"{self._feed.name}: its log is committed up to offset {reached}, before {end}")
            view = memoryview(answer.data)
            for start, header in check_batches(answer.data, self._position, answer.status):
                if self._state.end_offset < end:
                    self._state = self._state.replay_batch(view[start : start + header.size], below=end)
                self._position = LogPosition(header.end_offset, header.epoch)
            if self._position.offset >= end:
                return self._state.stable

    async def _take_checkpoint(self) -> None:
        fetched = await fetch_checkpoint(self._feed, _BYTES_MAX, _accept, lambda: asyncio.sleep(_RETRY_SECONDS))
        if self._offset is not None and fetched.id.end_offset > self._offset:
            raise ImageNotAvailable(
                f"{self._feed.name}: its log begins after offset {self._offset}, "
                f"and its newest checkpoint is the state at {fetched.id.end_offset}"
            )
        self._state = ReplayState(read_checkpoint(checkpoint_contents(fetched), *fetched.id))
        self._position = LogPosition(*fetched.id)


def _accept(status: ControllerStatus) -> None:
    """Whatever its cluster and epoch: nothing was heard of either before."""
