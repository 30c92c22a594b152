"""States that nobody keeps any more, which are let go of a few pages at a time.

After a broker was lost of ten million partitions a state has some 25,000 arrays that the next one has not. To free them
all at once keeps a loop for 13 ms.
"""

from __future__ import annotations

from typing import Final

from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.pauses import Pause
from quorate.snapshots.table.pages import Page, other_pages

#: Let go of at a step: about a millisecond where nobody else has any of them.
PAGES_AT_ONCE: Final = 256
#: So many wait at most, beside those of states that are kept: where every state changes everything, more go at once.
PAGES_WAITING_MAX: Final = 2560


class LeavingImages:
    """Owned by one loop. A step costs little, however large what leaves is."""

    def __init__(self) -> None:
        self._pages: list[Page] = []

    def add(self, image: MetadataImage, following: MetadataImage) -> None:
        """Let go of an image, which the caller must not keep. Its pages that the following one has not wait."""
        self._pages += own_pages(image, following)
        del self._pages[:-PAGES_WAITING_MAX]

    def step(self) -> None:
        """Let go of the next few pages. To be called whenever a state comes."""
        del self._pages[-PAGES_AT_ONCE:]


def own_pages(image: MetadataImage, following: MetadataImage) -> list[Page]:
    """The pages of an image that another has not: what is freed with it."""
    pages, kept = image.partitions.pages, following.partitions.pages
    return [] if pages is kept else [pages[number] for number in other_pages(kept, pages)]


def free_in_steps(pages: list[Page], pause: Pause) -> None:
    """Empty a list of the pages of an image that nobody else may keep any more, with a pause after each step.

    For threads: freeing keeps the interpreter, whichever thread does it.
    """
    while pages:
        del pages[-PAGES_AT_ONCE:]
        pause()
