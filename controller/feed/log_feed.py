"""The node's log as the feed's source."""

from __future__ import annotations

from collections.abc import Callable

from quorate.controller.feed.feed import FeedChunk
from quorate.metadata_log.log.segment_log import EpochEnd, MetadataLog


class LogFeedSource:
    """``FeedSource`` over a ``MetadataLog``. Owned by the loop thread, as the log is.

    Recent batches come from memory; older ones from disk, which mostly means from the page cache: some microseconds.
    """

    def __init__(
        self, log: MetadataLog, high_watermark: Callable[[], int], is_authoritative: Callable[[], bool]
    ) -> None:
        self._log = log
        self._high_watermark = high_watermark
        self._is_authoritative = is_authoritative

    @property
    def log_start_offset(self) -> int:
        """First record that can be read."""
        return self._log.start_offset

    @property
    def log_end_offset(self) -> int:
        """Exclusive, uncommitted records included."""
        return self._log.end_offset

    @property
    def high_watermark(self) -> int:
        """Exclusive end of what is known to be committed."""
        return self._high_watermark()

    @property
    def is_authoritative(self) -> bool:
        """Whether this node is the active controller."""
        return self._is_authoritative()

    def epoch_at(self, offset: int) -> int | None:
        """Epoch of the batch that ends at ``offset``, also at the log's start; None where no batch ends."""
        return self._log.epoch_at(offset)

    def end_of_epoch(self, epoch: int) -> EpochEnd:
        """The end of the highest epoch that is not above ``epoch``."""
        return self._log.end_of_epoch(epoch)

    def bytes_from(self, offset: int) -> int:
        """See ``FeedSource``."""
        end = self.high_watermark
        return self._log.bytes_below(end) - self._log.bytes_below(offset) if offset < end else 0

    def read_from(self, offset: int, max_bytes: int) -> FeedChunk:
        """See ``FeedSource``."""
        first = self._log.position_containing(offset)
        parts: list[bytes] = []
        size = 0
        is_cut = False
        end = self._log.entry(first)
        for index in range(first, self._log.entry_count):
            ref = self._log.entry(index)
            if ref.end_offset > self.high_watermark:
                break
            if parts and size + ref.size > max_bytes:
                is_cut = True
                break
            parts.append(self._log.read(index))
            size += ref.size
            end = ref
        base_offset = self._log.entry(first).base_offset
        return FeedChunk(b"".join(parts), base_offset, end.end_offset, end.epoch, is_cut)


class LogHistorySource(LogFeedSource):
    """The same for whoever reads the past: from offset 0 while the files reach back to it, wherever the log starts.

    A follower is not served from there: a checkpoint at the log's start takes it to the end sooner.
    """

    @property
    def log_start_offset(self) -> int:
        """First record that can be read."""
        return super().log_start_offset if self._log.beginning is None else 0

    def epoch_at(self, offset: int) -> int | None:
        """See ``FeedSource``."""
        if offset >= self._log.start_offset or self._log.beginning is None:
            return super().epoch_at(offset)
        return self._log.beginning.epoch_at(offset) if offset else 0

    def end_of_epoch(self, epoch: int) -> EpochEnd:
        """See ``FeedSource``."""
        earlier = None if self._log.beginning is None else self._log.beginning.end_of_epoch(epoch)
        return super().end_of_epoch(epoch) if earlier is None else EpochEnd(*earlier)

    def read_from(self, offset: int, max_bytes: int) -> FeedChunk:
        """See ``FeedSource``."""
        if offset >= self._log.start_offset or self._log.beginning is None:
            return super().read_from(offset, max_bytes)
        # The log goes on behind it, so it is never short of the high watermark for want of batches.
        return FeedChunk(*self._log.beginning.read_from(offset, max_bytes), is_cut=True)
