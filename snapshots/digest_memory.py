"""The newest digest that a process has computed of its state: what the next one builds on, whoever asks for it."""

from __future__ import annotations

from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.image.leaving_images import LeavingImages
from quorate.snapshots.image_digest import EMPTY_DIGEST, ImageDigest, digest_image
from quorate.snapshots.pauses import Pause


class DigestMemory:
    """The first digest of a million partitions is a second of work; the next one costs what changed.

    It keeps one image alive. Threads may share it: each begins from a whole digest, whichever was the last to be there.
    """

    def __init__(self) -> None:
        self._last = EMPTY_DIGEST

    def digest(self, image: MetadataImage, pause: Pause) -> ImageDigest:
        """The digest of an image; as ``digest_image``."""
        before = self._last
        replaced = LeavingImages.own_parts(before.image, image)
        digest = self._last = digest_image(image, before, pause)
        del before  # or its image would stay until the end, and go at once
        replaced.free(pause)
        return digest
