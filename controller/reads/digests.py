"""Digests of committed states, so that nodes can be compared at one offset.

The last few states are kept as they were. Where many come in a second they are gone before anybody asks; so some states
are kept for longer, as anchors, and a state in between is replayed from the one before it: it is this node's own.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from functools import partial
from typing import Final

from quorate.controller.background.checkpoint_pace import WorkPace
from quorate.controller.feed.feed import Bell, FeedSource
from quorate.controller.reads.past import replayed_to
from quorate.controller.reads.read_turns import run_in_turn
from quorate.metadata_log.errors import ApiError, ErrorCode, Overloaded
from quorate.snapshots.checkpoints.moments import Moment
from quorate.snapshots.digest_memory import DigestMemory
from quorate.snapshots.image.image import EMPTY_IMAGE, MetadataImage
from quorate.snapshots.image.image_history import ImageHistory
from quorate.snapshots.image_digest import ImageDigest

#: Together they reach back for half a minute. Each may hold a table of its own in the worst case.
ANCHORS_MAX: Final = 8
ANCHOR_SECONDS: Final = 4.0
#: Share of a core that rebuilding states for whoever asks may take on average, and what it may take at once.
REBUILD_SHARE: Final = 0.01
REBUILD_SECONDS_MAX: Final = 2.0
#: Of the log that one state may be rebuilt from: some tenths of a second. Only a mass change writes more between two
#: anchors, and to replay it twice would hold it up, on this node as on those beside it.
REBUILD_BYTES_MAX: Final = 4 * 1024 * 1024


class StateDigests:
    """Computes digests off the loop, one at a time; each costs what changed since the one before.

    Owned by the loop thread. ``note`` must be called whenever the committed state has moved.
    """

    def __init__(self, log: FeedSource, memory: DigestMemory, pace: WorkPace) -> None:
        self._log = log
        self._history = ImageHistory()
        self._anchors: deque[MetadataImage] = deque()
        self._anchored_at = -ANCHOR_SECONDS
        self._newest = EMPTY_IMAGE
        self._bell = Bell()
        self._memory = memory
        self._pace = pace
        self._lock = asyncio.Lock()
        #: Of the thread that replays, which goes on when nobody waits for it any more.
        self._replaying = asyncio.Lock()
        #: Set when another node doubts its own state.
        self.doubted = asyncio.Event()
        #: Seconds of a core that digests have taken.
        self.spent_seconds = 0.0
        self._credit = REBUILD_SECONDS_MAX
        self._credited_at = time.monotonic()

    def note(self, image: MetadataImage) -> None:
        """A new committed state. One that does not go forward is that of another log."""
        if image.provenance.end_offset < self._newest.provenance.end_offset:
            self._history.clear()
            self._anchors.clear()
        self._history.add(image)
        now = time.monotonic()
        if now >= self._anchored_at + ANCHOR_SECONDS:
            self._anchors.append(image)
            self._anchored_at = now
            if len(self._anchors) > ANCHORS_MAX:
                self._history.leave(self._anchors.popleft(), self._anchors[0])
        self._newest = image
        self._bell.ring()

    def close(self) -> None:
        """Let everybody go who waits."""
        self._bell.close()

    def kept(self) -> list[MetadataImage]:
        """The states that are kept as they were, ascending."""
        images = (*self._anchors, *self._history.images())
        return sorted(images, key=lambda image: image.provenance.end_offset)

    def kept_offsets(self) -> list[int]:
        """Offsets of the states that are kept as they were, ascending."""
        return sorted({image.provenance.end_offset for image in self.kept()})

    async def at(self, offset: int | None, wait_ms: float) -> tuple[int, str]:
        """Offset and digest (64 hexadecimal digits) of the state at an offset, or of the newest.

        Raises:
            ApiError: REQUEST_TIMED_OUT, the log has not been applied that far in time; OFFSET_OUT_OF_RANGE, the state
                is not kept any more, and none that it is near to. Overloaded: it would have to be rebuilt, and enough
                have been.
        """
        image = self._newest if offset is None else await self._image_at(offset, wait_ms)
        digest, seconds = await run_in_turn(partial(self._timed, image), self._lock)
        self.spent_seconds += seconds
        return image.provenance.end_offset, digest.text

    def _timed(self, image: MetadataImage) -> tuple[ImageDigest, float]:
        begun = time.thread_time()
        with self._pace.working():
            digest = self._memory.digest(image, self._pace.pause)
        return digest, time.thread_time() - begun

    async def _image_at(self, offset: int, wait_ms: float) -> MetadataImage:
        clock = asyncio.get_running_loop().time
        ends_at = clock() + wait_ms / 1000
        while (reached := self._newest.provenance.end_offset) < offset:
            left = ends_at - clock()
            if left <= 0:
                message = f"the log has been applied up to offset {reached}, not to {offset}"
                raise ApiError(ErrorCode.REQUEST_TIMED_OUT, message)
            await self._bell.wait(left)
        image = EMPTY_IMAGE if offset == 0 else self._kept(offset)
        return image if image is not None else await self._rebuilt(offset)

    def _kept(self, offset: int) -> MetadataImage | None:
        anchored = (image for image in self._anchors if image.provenance.end_offset == offset)
        return self._history.at(offset) or next(anchored, None)

    async def _rebuilt(self, offset: int) -> MetadataImage:
        async with self._lock:
            before = [image for image in self.kept() if self._goes_on_from(image, offset)]
            if not before:
                kept = ", ".join(map(str, self.kept_offsets())) or "none"
                message = f"the state at offset {offset} is not kept; kept are {kept}"
                raise ApiError(ErrorCode.OFFSET_OUT_OF_RANGE, message)
            self._require_near(before[-1].provenance.end_offset, offset)
            self._require_credit()
            step = await replayed_to(self._log, before[-1], Moment(offset=offset), self._replaying)
            self._credit -= step.seconds
            self.spent_seconds += step.seconds
            rebuilt = step.state.stable
            if rebuilt.provenance.end_offset != offset:  # the log may have been cut while a turn was waited for
                message = f"no state ends at offset {offset}: the one before it ends at {rebuilt.provenance.end_offset}"
                raise ApiError(ErrorCode.OFFSET_OUT_OF_RANGE, message)
            return rebuilt

    def _goes_on_from(self, image: MetadataImage, offset: int) -> bool:
        end = image.provenance.end_offset
        return self._log.log_start_offset <= end < offset and self._log.epoch_at(end) is not None

    def _require_near(self, kept: int, offset: int) -> None:
        size = self._log.bytes_from(kept) - self._log.bytes_from(offset)
        if size > REBUILD_BYTES_MAX:
            message = (
                f"the state at offset {offset} is not kept, and from the one before it that is, at {kept}, it is "
                f"{size:,} bytes of the log: more than the {REBUILD_BYTES_MAX:,} that are replayed for a digest"
            )
            raise ApiError(ErrorCode.OFFSET_OUT_OF_RANGE, message)

    def _require_credit(self) -> None:
        now = time.monotonic()
        gained = (now - self._credited_at) * REBUILD_SHARE
        self._credit, self._credited_at = min(REBUILD_SECONDS_MAX, self._credit + gained), now
        if self._credit <= 0:
            often = "states were rebuilt for digests as often as they may be: ask again in a while"
            raise Overloaded(often, "digests", -self._credit / REBUILD_SHARE * 1000)
