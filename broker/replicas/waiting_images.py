"""Images that came and are not taken yet, in their order: of many some stand for those before them.

Publishers are told of several changes at once wherever a process is behind, and what one image costs to take is often
what all of them together cost: of a change that is scattered over all partitions every image has touched every page.
"""

from __future__ import annotations

from collections import deque
from typing import Final, NamedTuple

from quorate.snapshots.image.image import MetadataImage

#: Each holds what the next one replaced: half a megabyte of partitions in a row, all pages where they are scattered.
IMAGES_HELD_MAX: Final = 16


class WaitingImage(NamedTuple):
    """The last of some images that came one behind the other."""

    image: MetadataImage
    #: Where the logs that were led here ended when the first of them came: what nobody claims too much by.
    own_end: int
    #: How many they are.
    size: int


class WaitingImages:
    """A queue of bounded size."""

    def __init__(self) -> None:
        self._held: deque[WaitingImage] = deque()
        #: How many images one stands for, but for the last one, which may stand for fewer.
        self._each = 1
        #: Images that came and were not taken.
        self.count = 0

    def __len__(self) -> int:
        """Give the number of those that are to be taken, each for all that it stands for."""
        return len(self._held)

    def add(self, image: MetadataImage, own_end: int) -> None:
        """Let one wait behind the others. ``own_end``: where the logs that are led here end now."""
        self.count += 1
        if self._held and self._held[-1].size < self._each:
            last = self._held.pop()
            self._held.append(WaitingImage(image, last.own_end, last.size + 1))
            return
        if len(self._held) == IMAGES_HELD_MAX:
            self._each *= 2
            pairs = zip(*[iter(self._held)] * 2, strict=True)
            joined = [WaitingImage(b.image, a.own_end, a.size + b.size) for a, b in pairs]
            self._held = deque(joined)
        self._held.append(WaitingImage(image, own_end, 1))

    def take_first(self) -> WaitingImage:
        """There is one."""
        first = self._held.popleft()
        self.count -= first.size
        if not self._held:
            self._each = 1
        return first
