"""Images that came and are not taken yet, in their order: of many some stand for those before them.

Publishers are told of several changes at once wherever a process is behind, and what one image costs to take is often
what all of them together cost: of a change that is scattered over all partitions every image has touched every page.

What is seen of an image that another stands for is what the two beside it differ by. So none stands for one in which
what the next one undoes was done: a replica that went away and came back is another one, and has nothing; and a log
that goes back is another log, whatever is read of it later.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Final, NamedTuple

from quorate.broker.replicas.moved_replicas import moves_replicas
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
    #: Whether partitions may have other replicas than in the image before the first of them.
    moves: bool
    #: It is of another log than the one before it, or nobody knows what the one before it was.
    is_apart: bool


class WaitingImages:
    """A queue. Who adds an image takes the first ones, as long as there are more than ``IMAGES_HELD_MAX``."""

    def __init__(self) -> None:
        self._held: deque[WaitingImage] = deque()
        #: How many images one stands for at most.
        self._each = 1
        #: Images that came and were not taken.
        self.count = 0

    def __len__(self) -> int:
        """Give the number of those that are to be taken, each for all that it stands for."""
        return len(self._held)

    def add(self, image: MetadataImage, own_end: int) -> None:
        """Let one wait behind the others. ``own_end``: where the logs that are led here end now."""
        self.count += 1
        held = self._joined([*self._held, self._newest(image, own_end)])
        if len(held) > IMAGES_HELD_MAX:
            self._each *= 2
            held = self._joined(held)
        self._held = deque(held)

    def take_first(self) -> WaitingImage:
        """There is one."""
        first = self._held.popleft()
        self.count -= first.size
        if not self._held:
            self._each = 1
        return first

    def _newest(self, image: MetadataImage, own_end: int) -> WaitingImage:
        if not self._held:
            return WaitingImage(image, own_end, 1, moves=True, is_apart=True)
        before = self._held[-1].image
        is_apart = image.provenance.end_offset < before.provenance.end_offset
        return WaitingImage(image, own_end, 1, moves_replicas(before, image), is_apart)

    def _joined(self, images: Iterable[WaitingImage]) -> list[WaitingImage]:
        joined: list[WaitingImage] = []
        for image in images:
            if joined and self._may_join(joined[-1], image):
                earlier = joined.pop()
                size, moves = earlier.size + image.size, earlier.moves or image.moves
                image = WaitingImage(image.image, earlier.own_end, size, moves, is_apart=False)
            joined.append(image)
        return joined

    def _may_join(self, earlier: WaitingImage, later: WaitingImage) -> bool:
        if earlier.is_apart or later.is_apart or (earlier.moves and later.moves):
            return False
        return earlier.size + later.size <= self._each
