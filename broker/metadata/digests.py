"""Digests of the state at an offset, so that nodes can be compared."""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections.abc import Callable
from typing import Final

from quorate.broker.metadata.loader import RECORDS_PUBLISHED_TOGETHER, MetadataLoader
from quorate.metadata_log.errors import ApiError, ErrorCode
from quorate.snapshots.digest_memory import DigestMemory
from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.image_digest import ImageDigest
from quorate.snapshots.pauses import Pause

#: Long enough for another thread to be woken; a large digest takes a quarter longer for it.
_PAUSE_S: Final = 0.0003
#: The same while the loop has a mass change to replay, which somebody waits for.
LONG_PAUSE_S: Final = 0.25
#: How long it lasts after the last sign of it: what followers say of it comes then, and operators ask what happened.
_MASS_CHANGE_S: Final = 6.0
#: So long a digest stands still at most for mass changes: after that it goes on, with the longer pauses.
STANDSTILL_S_MAX: Final = 10.0


class _NobodyWaitsError(Exception):
    """Whoever asked for a digest went away, or the process ends."""


class _Pauses:
    """The pauses of one digest: the loop may have the interpreter, for brokers must heartbeat."""

    def __init__(self, is_behind: Callable[[], bool]) -> None:
        """``is_behind``: whether the loop has a mass change to replay."""
        self.ended = threading.Event()
        self._is_behind = is_behind
        self._standstill_s = STANDSTILL_S_MAX
        self._behind_until = -math.inf

    def __call__(self) -> None:
        is_behind = self._wait()
        while is_behind and self._standstill_s > 0:
            is_behind = self._wait()

    def _wait(self) -> bool:
        now = time.monotonic()
        if self._is_behind():
            self._behind_until = now + _MASS_CHANGE_S
        is_behind = now < self._behind_until
        if self.ended.wait(LONG_PAUSE_S if is_behind else _PAUSE_S):
            raise _NobodyWaitsError
        if is_behind:
            self._standstill_s -= LONG_PAUSE_S
        return is_behind


class ImageDigests:
    """Computes digests of a loader's images, one at a time; each costs what changed since the one before."""

    def __init__(self, loader: MetadataLoader) -> None:
        self._loader = loader
        self._memory = DigestMemory()
        self._lock = asyncio.Lock()
        #: Seconds of a core that digests have taken.
        self.spent_seconds = 0.0

    async def at(self, offset: int | None, wait_ms: float) -> tuple[int, str]:
        """Offset and digest (64 hexadecimal digits) of the state at an offset, or of the newest.

        Raises:
            ApiError: REQUEST_TIMED_OUT, the log has not been replayed that far in time; OFFSET_OUT_OF_RANGE, no batch
                ends there, or the state is not kept any more.
        """
        image = self._loader.image if offset is None else await self._image_at(offset, wait_ms)
        async with self._lock:
            pauses = _Pauses(self._is_behind)
            try:
                digest, seconds = await asyncio.to_thread(_timed_digest, image, self._memory, pauses)
            finally:
                pauses.ended.set()
            self.spent_seconds += seconds
            return image.provenance.end_offset, digest.text

    async def _image_at(self, offset: int, wait_ms: float) -> MetadataImage:
        loader = self._loader
        try:
            async with asyncio.timeout(wait_ms / 1000):
                await loader.wait_until(lambda: loader.last_applied_offset + 1 >= offset)
        except TimeoutError as error:
            message = f"the log has been replayed up to offset {loader.last_applied_offset + 1}, not to {offset}"
            raise ApiError(ErrorCode.REQUEST_TIMED_OUT, message) from error
        image = loader.history.at(offset)
        if image is None:
            kept = loader.history.offsets()
            message = f"the state at offset {offset} is not kept; kept are {', '.join(map(str, kept)) or 'none'}"
            raise ApiError(ErrorCode.OFFSET_OUT_OF_RANGE, message)
        return image

    def _is_behind(self) -> bool:
        return (self._loader.lag or 0) >= RECORDS_PUBLISHED_TOGETHER


def _timed_digest(image: MetadataImage, memory: DigestMemory, pause: Pause) -> tuple[ImageDigest, float]:
    begun = time.thread_time()
    digest = memory.digest(image, pause)
    return digest, time.thread_time() - begun
