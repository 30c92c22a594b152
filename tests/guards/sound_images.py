"""Images that a test's own parts hold at its end obey the rules of every image, whatever the test was about."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice

from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.image.invariants import broken_rules

#: Sentences shown of one image.
_BROKEN_MAX = 5

_watched: list[Callable[[], MetadataImage]] = []


def watch(image: Callable[[], MetadataImage]) -> None:
    """Look at this image when the test has ended; for who makes a part that holds one."""
    _watched.append(image)


def take_broken() -> list[str]:
    """The rules that are broken in what is watched, which is watched no more.

    For a test that breaks a rule on purpose: it says here which.
    """
    held, _watched[:] = _watched[:], []
    # An image that several hold is looked at once.
    images = {id(image): image for image in (image() for image in held)}
    return [rule for image in images.values() for rule in _broken(image)]


def _broken(image: MetadataImage) -> Iterator[str]:
    for rule in islice(broken_rules(image), _BROKEN_MAX):
        yield f"at offset {image.provenance.end_offset}: {rule}"
