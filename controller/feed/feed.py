"""The metadata feed: committed batches as they lie in the log, to several hundred followers from one reading.

Rule 1: only committed batches leave. A committed batch never changes, so a chunk of them may be kept and shared.
Rule 2: what a follower holds is compared with what is known for certain: on a standby the committed part of the log,
on the active controller all of it (it holds whatever was ever committed).
A follower ahead of a standby is not wrong, the standby is behind: it waits. It is wrong where the standby's committed
part ends in a higher epoch than the follower's: epochs never fall, so it followed what a recovery has left out.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

from quorate.controller.api.errors import FeedOutOfRange
from quorate.controller.feed.places import FeedPlaces
from quorate.controller.feed.sessions import FeedSessions
from quorate.controller.feed.under_way import ChunksUnderWay
from quorate.metadata_log.errors import ApiError, ErrorCode
from quorate.metadata_log.log.log_index import EpochEnd

#: Waking a follower and answering its long poll takes some 0.3 ms of the loop, a stream half of that. News are held
#: back for twice that time for each follower that was woken, so that at most half of the loop's time goes
#: into followers. News after a pause go at once.
HOLD_SECONDS_PER_FOLLOWER: Final = 0.0006
#: Entries of the chunk cache: a tail of small chunks must not grow without bound below the byte limit.
CHUNKS_KEPT_MAX: Final = 1024
#: A stream ends after this long, so that followers spread anew over the controllers.
STREAM_SECONDS_MAX: Final = 600.0
#: Most bytes of a new chunk while what is under way is over its limit; one batch in any case.
SMALL_CHUNK_BYTES: Final = 64 * 1024


class FeedChunk(NamedTuple):
    """Whole batches, one behind the other."""

    data: bytes
    #: Of the first batch.
    base_offset: int
    #: Exclusive.
    end_offset: int
    #: Of the last batch; None when there is none.
    end_epoch: int | None
    #: Whether reading stopped for the limit of bytes, and not for the high watermark.
    is_cut: bool


class FeedSource(Protocol):
    """The log, as the feed sees it. Read on the loop thread only."""

    @property
    def log_start_offset(self) -> int:
        """First record that can be read."""

    @property
    def log_end_offset(self) -> int:
        """Exclusive, uncommitted records included."""

    @property
    def high_watermark(self) -> int:
        """Exclusive end of what is known to be committed."""

    @property
    def is_authoritative(self) -> bool:
        """Whether this log holds everything that was ever committed: the active controller's does."""

    def epoch_at(self, offset: int) -> int | None:
        """Epoch of the batch that ends at ``offset``, also at the log's start; None where no batch ends."""

    def end_of_epoch(self, epoch: int) -> EpochEnd:
        """The end of the highest epoch that is not above ``epoch``."""

    def bytes_from(self, offset: int) -> int:
        """Bytes of the committed batches from the one that holds ``offset`` on; 0 where there is none."""

    def read_from(self, offset: int, max_bytes: int) -> FeedChunk:
        """Committed batches from the one that holds ``offset`` on: at least one, no more than fit ``max_bytes``.

        Only called with log_start_offset <= offset < high_watermark.
        """


@dataclass(frozen=True, slots=True)
class FeedLimits:
    """See ``HttpSettings``."""

    wait_max_ms: int
    chunk_bytes_max: int
    cache_bytes: int
    followers_max: int


class Bell:
    """Wakes all that wait, by one event; holds news back in proportion to how many it woke."""

    def __init__(self) -> None:
        self._event = asyncio.Event()
        self._waiting = 0
        self._hold: asyncio.TimerHandle | None = None
        self._is_due = False

    @property
    def waiting(self) -> int:
        """The number of requests that wait now."""
        return self._waiting

    def ring(self) -> None:
        """There is news: wake all now, or when the hold ends."""
        if self._hold is not None:
            self._is_due = True
        else:
            self._wake()

    def _wake(self) -> None:
        if self._waiting:
            hold = self._waiting * HOLD_SECONDS_PER_FOLLOWER
            self._hold = asyncio.get_running_loop().call_later(hold, self._end_hold)
        event, self._event = self._event, asyncio.Event()
        event.set()

    def _end_hold(self) -> None:
        self._hold = None
        if self._is_due:
            self._is_due = False
            self._wake()

    async def wait(self, seconds: float) -> None:
        """Return at the next ring, or after ``seconds``."""
        self._waiting += 1
        try:
            async with asyncio.timeout(seconds):
                await self._event.wait()
        except TimeoutError:
            return
        finally:
            self._waiting -= 1

    def close(self) -> None:
        """Wake all, for the last time."""
        if self._hold is not None:
            self._hold.cancel()
            self._hold = None
        self._event.set()


class MetadataFeed:
    """Answers followers from a ``FeedSource``. Owned by the loop thread.

    ``moved`` must be called whenever the source's high watermark or log start has moved.
    """

    def __init__(
        self,
        source: FeedSource,
        limits: FeedLimits,
        now: Callable[[], float] = time.monotonic,
        history: FeedSource | None = None,
    ) -> None:
        """``now`` in seconds, for the sessions' times. ``history``: the same log for whoever reads the past; it may
        begin earlier. None: it does not."""
        #: Who reads, and how each of them gets on.
        self.sessions = FeedSessions(now)
        #: Chunks that are being sent.
        self.under_way = ChunksUnderWay()
        self._source = source
        self._history = source if history is None else history
        self._limits = limits
        self._bell = Bell()
        self._chunks: OrderedDict[tuple[int, int], FeedChunk] = OrderedDict()
        self._cached_bytes = 0
        self._is_closed = False
        self._places = FeedPlaces(limits.followers_max)
        #: Chunks read from the log, for tests and metrics: sharing keeps it far below the number of answers.
        self.chunks_read = 0

    @property
    def followers(self) -> int:
        """Fetches under way, waiting or streaming."""
        return self._places.taken

    @property
    def high_watermark(self) -> int:
        """Exclusive end of what is known to be committed."""
        return self._source.high_watermark

    @property
    def log_start_offset(self) -> int:
        """First record that can be had."""
        return self._source.log_start_offset

    def moved(self) -> None:
        """The high watermark has moved."""
        self.sessions.committed(self._source.high_watermark)
        self._bell.ring()

    def close(self) -> None:
        """Let every fetch end: the process is going down."""
        self._is_closed = True
        self._bell.close()

    def records_behind(self, offset: int) -> int:
        """Committed records that a follower at ``offset`` has not had."""
        return max(0, self._source.high_watermark - offset)

    def bytes_behind(self, offset: int) -> int:
        """Bytes of the committed batches that a follower at ``offset`` has not had."""
        return self._source.bytes_from(max(offset, self._source.log_start_offset))

    @asynccontextmanager
    async def fetching(
        self,
        offset: int,
        epoch: int | None,
        wait_ms: int,
        max_bytes: int,
        *,
        is_past: bool = False,
        reader: str | None = None,
    ) -> AsyncIterator[FeedChunk]:
        """Committed batches from ``offset`` on; an empty chunk when none came within ``wait_ms``.

        The fetch is under way until the context ends. ``is_past``: also from before the log's start, where the files
        still reach back to offset 0. ``reader``: see ``FeedPlaces``.

        Raises:
            FeedOutOfRange: the follower must take a checkpoint. Overloaded: too many fetches are under way.
            ApiError: ``offset`` is inside a batch.
        """
        self._places.enter(reader)
        try:
            source = self._history if is_past else self._source
            yield await self._next(source, offset, epoch, wait_ms, max_bytes)
        finally:
            self._places.leave(reader)

    async def stream(
        self, offset: int, epoch: int | None, max_bytes: int, reader: str | None = None
    ) -> AsyncGenerator[FeedChunk, None]:
        """Chunks as they are committed, from ``offset`` on. The first is there at once, empty when nothing is new.

        Ends when the feed closes, after ``STREAM_SECONDS_MAX``, or where the log does not reach back to the follower.

        Raises:
            As ``fetch``, before the first chunk.
        """
        self._places.enter(reader)
        try:
            ends_at = asyncio.get_running_loop().time() + STREAM_SECONDS_MAX
            chunk = await self._next(self._source, offset, epoch, 0, max_bytes)
            while True:
                yield chunk
                left = ends_at - asyncio.get_running_loop().time()
                if self._is_closed or left <= 0:
                    return
                try:
                    chunk = await self._next(self._source, chunk.end_offset, None, int(left * 1000) + 1, max_bytes)
                except FeedOutOfRange:
                    return  # the log's start has overtaken it: its next request is told so
        finally:
            self._places.leave(reader)

    async def _next(
        self, source: FeedSource, offset: int, epoch: int | None, wait_ms: int, max_bytes: int
    ) -> FeedChunk:
        clock = asyncio.get_running_loop().time
        ends_at = clock() + min(wait_ms, self._limits.wait_max_ms) / 1000
        while True:
            self._check(source, offset, epoch)
            if offset < source.high_watermark:
                return self._chunk(source, offset, min(max_bytes, self._chunk_bytes_max))
            left = ends_at - clock()
            if left <= 0 or self._is_closed:
                return FeedChunk(b"", offset, offset, None, is_cut=False)
            await self._bell.wait(left)

    @property
    def _chunk_bytes_max(self) -> int:
        # Followers that stand apart and do not read hold a chunk each: so it is a small one once there are many.
        limits = self._limits
        is_much = self.under_way.bytes > max(limits.cache_bytes, limits.chunk_bytes_max)
        return min(SMALL_CHUNK_BYTES, limits.chunk_bytes_max) if is_much else limits.chunk_bytes_max

    def _check(self, source: FeedSource, offset: int, epoch: int | None) -> None:
        if offset < source.log_start_offset:
            raise self._out_of_range(
                f"the log begins at {source.log_start_offset}, after offset {offset}: take a checkpoint", epoch
            )
        if epoch is None or offset == 0:
            return
        # Nobody can have more than the active controller. One whose follower has read of a later epoch is it no longer,
        # and does not know it yet: what it has not committed proves nothing.
        is_leading = source.is_authoritative and (source.epoch_at(source.log_end_offset) or 0) >= epoch
        known_end = source.log_end_offset if is_leading else source.high_watermark
        if offset > known_end:
            if is_leading or (source.epoch_at(known_end) or 0) > epoch:
                raise self._out_of_range(
                    f"the log ends at {known_end}, before offset {offset}: take a checkpoint", epoch, is_diverging=True
                )
            return
        here = source.epoch_at(offset)
        if here is None and self._is_within(offset, epoch):
            raise ApiError(ErrorCode.INVALID_REQUEST, f"no batch ends at offset {offset}: leave out the epoch to seek")
        if here != epoch:
            message = f"this log's batch before offset {offset} has epoch {here}, not {epoch}: take a checkpoint"
            raise self._out_of_range(message, epoch, is_diverging=True)

    def _is_within(self, offset: int, epoch: int) -> bool:
        """Whether the record below ``offset`` is of this epoch here too."""
        end = self._source.end_of_epoch(epoch)
        return end.epoch == epoch and offset <= end.end_offset

    def _out_of_range(self, message: str, epoch: int | None, *, is_diverging: bool = False) -> FeedOutOfRange:
        end = self._source.end_of_epoch(epoch or 0)
        return FeedOutOfRange(
            message,
            is_diverging=is_diverging,
            log_start_offset=self._source.log_start_offset,
            epoch=end.epoch,
            end_offset=end.end_offset,
        )

    def _chunk(self, source: FeedSource, offset: int, max_bytes: int) -> FeedChunk:
        """From the cache, unless the log has grown behind a chunk that had room for more."""
        key = (offset, max_bytes)
        known = self._chunks.get(key)
        if known is not None:
            if known.is_cut or known.end_offset == source.high_watermark:
                self._chunks.move_to_end(key)
                return known
            self._cached_bytes -= len(self._chunks.pop(key).data)
        chunk = source.read_from(offset, max_bytes)
        self.chunks_read += 1
        self._chunks[key] = chunk
        self._cached_bytes += len(chunk.data)
        while self._chunks and (self._cached_bytes > self._limits.cache_bytes or len(self._chunks) > CHUNKS_KEPT_MAX):
            _, oldest = self._chunks.popitem(last=False)
            self._cached_bytes -= len(oldest.data)
        return chunk
