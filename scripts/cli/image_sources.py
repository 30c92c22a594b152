"""What a command that compares states is pointed at: files, files at an offset, a running controller."""

from __future__ import annotations

from pathlib import Path
from typing import Final, NamedTuple

from snapshots.errors import ImageNotAvailable
from snapshots.image import MetadataImage
from snapshots.loading import load_image

SCHEME: Final = "http://"


class Source(NamedTuple):
    """A state, and what it was called on the command line."""

    name: str
    image: MetadataImage


def read_source(text: str, secret_file: Path | None) -> Source:
    """The state that ``PATH``, ``PATH@OFFSET``, ``http://HOST:PORT`` or ``http://HOST:PORT@OFFSET`` names.

    Raises:
        ImageNotAvailable: nothing is there, or not at this offset. QuorateError: it cannot be read.
    """
    place, offset = _taken_apart(text)
    if place.startswith(SCHEME):
        # Asking a controller takes libraries that looking into a file must not wait for.
        from scripts.cli.live_image import live_image

        return Source(text, live_image(place, offset, secret_file))
    return Source(text, load_image(Path(place), offset))


def _taken_apart(text: str) -> tuple[str, int | None]:
    """The place and the offset. A file may have a name with an @ in it."""
    place, at, digits = text.rpartition("@")
    if not at or (not text.startswith(SCHEME) and Path(text).exists()):
        return text, None
    if not (digits.isascii() and digits.isdigit() and len(digits) < 20):
        raise ImageNotAvailable(f"{text}: nothing is there, and {digits[:80]!r} behind the @ is no offset")
    return place, int(digits)
