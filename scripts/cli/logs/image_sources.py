"""The sources of a command that compares states: files or a running controller, at a moment."""

from __future__ import annotations

from pathlib import Path
from typing import Final, NamedTuple

from quorate.scripts.terminal.passed_over import load_image_and_say
from quorate.snapshots.checkpoints.moments import Moment, parse_moment
from quorate.snapshots.checkpoints.whole_checkpoints import PassedOver
from quorate.snapshots.image.image import MetadataImage

#: An address of a controller, no file, begins with one of them.
SCHEMES: Final = ("http://", "https://")


class Source(NamedTuple):
    """A state, and what it was called on the command line."""

    name: str
    image: MetadataImage
    #: Checkpoints that would have been taken, and are not whole.
    passed_over: tuple[PassedOver, ...] = ()


def read_source(text: str, secret_file: Path | None) -> Source:
    """The state that ``PATH`` or ``http://HOST:PORT`` (https with certificates) names, or one of them and ``@MOMENT``.

    Raises:
        InvalidMoment, ImageNotAvailable: nothing is there, or not at this moment. QuorateError: it cannot be read.
    """
    place, moment = _taken_apart(text)
    if place.startswith(SCHEMES):
        # Asking a controller takes libraries that looking into a file must not wait for.
        from quorate.scripts.cli.logs.live_image import live_image

        return Source(text, live_image(place, moment, secret_file))
    return Source(text, *load_image_and_say(Path(place), moment))


def _taken_apart(text: str) -> tuple[str, Moment | None]:
    """The place and the moment. A file may have a name with an @ in it."""
    place, at, moment = text.rpartition("@")
    if not at or (not text.startswith(SCHEMES) and Path(text).exists()):
        return text, None
    return place, parse_moment(moment)
