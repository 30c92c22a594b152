"""Topics of an image in the order of their names, a page at a time.

The order is kept as long as topics stay as they are. It is made on the thread of whoever asks, in pieces: one sort of
100,000 names would hold up all other threads for as long as it takes.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable
from heapq import merge
from itertools import islice, takewhile
from typing import Final

from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.image.image_parts import Topic
from quorate.snapshots.maps.persistent_map import PersistentMap

#: Names that are sorted at once: a millisecond or two.
_SORTED_AT_ONCE: Final = 4_096


class TopicsByName:
    """Of one process, in one image after the other. May be used by several threads."""

    def __init__(self) -> None:
        #: The topics that it is of, and the order.
        self._kept: tuple[PersistentMap[str, Topic], list[str]] = (PersistentMap(), [])

    def page(
        self,
        image: MetadataImage,
        prefix: str = "",
        after: str = "",
        limit: int | None = None,
        is_shown: Callable[[str], bool] | None = None,
    ) -> list[Topic]:
        """Topics that begin with ``prefix``, come after ``after`` and are shown; ``limit`` at most, None: all.

        ``is_shown`` is asked of no more names than it takes to fill the page.
        """
        by_name = image.topics.by_name
        names = self._order_of(by_name)
        begin = max(bisect_left(names, prefix), bisect_right(names, after) if after else 0)
        found: Iterable[str] = takewhile(lambda name: name.startswith(prefix), islice(names, begin, None))
        shown = found if is_shown is None else filter(is_shown, found)
        return [by_name[name] for name in islice(shown, limit)]

    def _order_of(self, by_name: PersistentMap[str, Topic]) -> list[str]:
        kept_of, names = self._kept
        if kept_of is not by_name:
            names = _in_order(by_name)
            self._kept = by_name, names
        return names


def _in_order(names: Iterable[str]) -> list[str]:
    left = iter(names)
    pieces = []
    while piece := sorted(islice(left, _SORTED_AT_ONCE)):
        pieces.append(piece)
    return list(merge(*pieces))
