"""A real log in memory whose high watermark a test moves, as a feed's source."""

from __future__ import annotations

from quorate.controller.feed.feed import FeedChunk, FeedLimits, MetadataFeed
from quorate.controller.feed.log_feed import LogFeedSource, LogHistorySource
from tests.default_parts import feed_limits, log_config
from tests.log_support import ModelledLog


class FollowedLog:
    """A log and its feed. Every batch that ``commit`` adds has one record."""

    def __init__(self, limits: FeedLimits | None = None) -> None:
        self.log = ModelledLog(config=log_config())
        self.high_watermark = 0
        self.is_authoritative = True
        log = (self.log.log, lambda: self.high_watermark, lambda: self.is_authoritative)
        self.source = LogFeedSource(*log)
        self.feed = MetadataFeed(self.source, limits or feed_limits(), history=LogHistorySource(*log))

    async def fetch(
        self, offset: int, epoch: int | None, wait_ms: int, max_bytes: int, *, is_past: bool = False
    ) -> FeedChunk:
        """What a follower gets, or whoever reads the past."""
        async with self.feed.fetching(offset, epoch, wait_ms, max_bytes, is_past=is_past) as chunk:
            return chunk

    def append(self, count: int = 1, epoch: int | None = None) -> None:
        """``count`` batches that are not committed."""
        for _ in range(count):
            self.log.append(epoch=epoch)

    def commit(self, count: int = 1, epoch: int | None = None) -> None:
        """``count`` batches more; then everything is committed."""
        self.append(count, epoch)
        self.high_watermark = self.log.log.end_offset
        self.log.commit(self.high_watermark)
        self.feed.moved()

    def begin_at(self, offset: int) -> None:
        """A checkpoint takes the place of the log before ``offset``."""
        self.log.flush()
        self.log.delete_prefix(offset)

    def data(self, base_offset: int, end_offset: int) -> bytes:
        """The bytes of a stretch of the log."""
        batches = self.log.history.batches
        return b"".join(b.data for b in batches if base_offset <= b.base_offset and b.end_offset <= end_offset)

    def chunk(self, base_offset: int, end_offset: int, *, is_cut: bool = False) -> FeedChunk:
        """What the feed should give for a stretch."""
        epoch = self.log.history.epoch_at(end_offset)
        return FeedChunk(self.data(base_offset, end_offset), base_offset, end_offset, epoch, is_cut)
