"""The last few images by the offset they are the state at, so that nodes can be compared at one offset.

Nodes apply the log at their own pace; a node asked for its state at an offset that it passed a moment ago can answer
from here. Images share what did not change, so keeping some is cheap; keeping many is not.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.image.leaving_images import LeavingImages

#: With a NoOp record every 500 ms in an idle cluster these are the last eight seconds.
IMAGES_KEPT: Final = 16


class ImageHistory:
    """Images by end offset, newest last."""

    def __init__(self) -> None:
        self._images: OrderedDict[int, MetadataImage] = OrderedDict()
        self._leaving = LeavingImages()

    def add(self, image: MetadataImage) -> None:
        """Remember an image; an image of the same end offset is replaced."""
        end_offset = image.provenance.end_offset
        self._images[end_offset] = image
        self._images.move_to_end(end_offset)
        self._leaving.step()
        if len(self._images) > IMAGES_KEPT:
            _, oldest = self._images.popitem(last=False)
            self.leave(oldest, next(iter(self._images.values())))

    def leave(self, image: MetadataImage, following: MetadataImage) -> None:
        """Let go of an image that is kept no more, here or elsewhere: a few of its parts with each ``add``.

        ``following``: the next of those that are kept in the same place.
        """
        self._leaving.add(image, following)

    def clear(self) -> None:
        """Forget everything: the log is another one."""
        self._images.clear()

    def at(self, offset: int) -> MetadataImage | None:
        """The state at an offset where a batch ends; None if it is not kept (any more, or yet)."""
        return self._images.get(offset)

    def offsets(self) -> list[int]:
        """The offsets whose states are kept, oldest first."""
        return list(self._images)

    def images(self) -> list[MetadataImage]:
        """The states that are kept, oldest first."""
        return list(self._images.values())
