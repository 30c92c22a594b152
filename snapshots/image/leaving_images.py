"""States that nobody keeps any more, which are let go of a few parts at a time.

After a broker was lost of ten million partitions a state has some 25,000 arrays that the next one has not, and after
topics were made some 12,000 buckets of maps. To free them all at once keeps a loop for 13 to 30 ms.
"""

from __future__ import annotations

from itertools import chain
from typing import Any, Final

from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.maps.persistent_map import PersistentMap
from quorate.snapshots.pauses import Pause
from quorate.snapshots.table.pages import Page, other_pages

#: Let go of at a step: a millisecond or two where nobody else has any of them.
PAGES_AT_ONCE: Final = 256
GROUPS_AT_ONCE: Final = 8
#: So many wait at most, beside those of states that are kept: where every state changes everything, more go at once.
PAGES_WAITING_MAX: Final = 2560
GROUPS_WAITING_MAX: Final = 2048


class LeavingImages:
    """Owned by one thread. A step costs little, however large what leaves is."""

    def __init__(self) -> None:
        self._pages: list[Page] = []
        #: Of the maps that grow with the topics.
        self._groups: list[Any] = []

    def add(self, image: MetadataImage, following: MetadataImage) -> None:
        """Let go of an image, which the caller must not keep. Its parts that the following one has not wait."""
        self._put(image, following)
        del self._pages[:-PAGES_WAITING_MAX], self._groups[:-GROUPS_WAITING_MAX]

    def step(self) -> None:
        """Let go of the next few parts. To be called whenever a state comes."""
        del self._pages[-PAGES_AT_ONCE:], self._groups[-GROUPS_AT_ONCE:]

    def _put(self, image: MetadataImage, following: MetadataImage) -> None:
        pages, kept = image.partitions.pages, following.partitions.pages
        self._pages += [] if pages is kept else [pages[number] for number in other_pages(kept, pages)]
        maps = zip(_maps(image), _maps(following), strict=True)
        self._groups += chain.from_iterable(own.groups_apart(other) for own, other in maps)

    @staticmethod
    def own_parts(image: MetadataImage, following: MetadataImage) -> LeavingImages:
        """The parts of an image that another has not: what is freed with it, however much it is."""
        parts = LeavingImages()
        parts._put(image, following)
        return parts

    def free(self, pause: Pause) -> None:
        """Let go of all of them, with a pause after each step.

        For threads: freeing keeps the interpreter, whichever thread does it.
        """
        while self._pages or self._groups:
            self.step()
            pause()


def _maps(image: MetadataImage) -> tuple[PersistentMap[Any, Any], ...]:
    return image.topics.by_id, image.topics.by_name, image.partitions.extents
