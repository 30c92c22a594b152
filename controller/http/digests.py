"""Digests of the last few committed states, so that nodes can be compared at one offset."""

from __future__ import annotations

import asyncio

from controller.http.feed import Bell
from metadata_log.errors import ApiError, ErrorCode
from snapshots.image import EMPTY_IMAGE, MetadataImage
from snapshots.image_digest import EMPTY_DIGEST, digest_image
from snapshots.image_history import ImageHistory


class Digests:
    """Computes digests off the loop, one at a time; each costs what changed since the one before.

    Owned by the loop thread. ``note`` must be called whenever the committed state has moved.
    """

    def __init__(self) -> None:
        self._history = ImageHistory()
        self._newest = EMPTY_IMAGE
        self._bell = Bell()
        self._last = EMPTY_DIGEST
        self._lock = asyncio.Lock()

    def note(self, image: MetadataImage) -> None:
        """A new committed state. One that does not go forward is that of another log."""
        if image.provenance.end_offset < self._newest.provenance.end_offset:
            self._history.clear()
        self._history.add(image)
        self._newest = image
        self._bell.ring()

    def close(self) -> None:
        """Let everybody go who waits."""
        self._bell.close()

    async def at(self, offset: int | None, wait_ms: float) -> tuple[int, str]:
        """Offset and digest (64 hexadecimal digits) of the state at an offset, or of the newest.

        Raises:
            ApiError: REQUEST_TIMED_OUT, the log has not been applied that far in time; OFFSET_OUT_OF_RANGE, no batch
                ends there, or the state is not kept any more.
        """
        image = self._newest if offset is None else await self._image_at(offset, wait_ms)
        async with self._lock:
            self._last = await asyncio.to_thread(digest_image, image, self._last)
            return image.provenance.end_offset, self._last.text

    async def _image_at(self, offset: int, wait_ms: float) -> MetadataImage:
        clock = asyncio.get_running_loop().time
        ends_at = clock() + wait_ms / 1000
        while (reached := self._newest.provenance.end_offset) < offset:
            left = ends_at - clock()
            if left <= 0:
                message = f"the log has been applied up to offset {reached}, not to {offset}"
                raise ApiError(ErrorCode.REQUEST_TIMED_OUT, message)
            await self._bell.wait(left)
        image = EMPTY_IMAGE if offset == 0 else self._history.at(offset)
        if image is None:
            kept = ", ".join(map(str, self._history.offsets())) or "none"
            raise ApiError(ErrorCode.OFFSET_OUT_OF_RANGE, f"the state at offset {offset} is not kept; kept are {kept}")
        return image
