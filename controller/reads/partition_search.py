"""Topics and partitions that an operator asks for, a page at a time in the order of their names.

Conditions are masks over the columns of the partition table: work for a single partition is done for those on the page.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from heapq import merge
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from quorate.controller.decisions.controller_config import ControllerConfig
from quorate.controller.reads.name_patterns import NamePatterns
from quorate.controller.reads.partition_conditions import Flags, MinIsrs, cells_in, is_in
from quorate.controller.reads.partition_filter import PartitionFilter
from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.image.image_parts import TOPIC_RESOURCE, Topic
from quorate.snapshots.table.extents import extent_column
from quorate.snapshots.table.kept_counts import tally_of
from quorate.snapshots.table.page_access import has_leader, has_replica, holds_partition
from quorate.snapshots.table.pages import PAGE_SHIFT, Page, Rows

#: Topics that are sorted at a time.
_TOPICS_AT_ONCE: Final = 4096


class PartitionsFound(NamedTuple):
    """A page of partitions."""

    #: Rows of the table, by topic name and partition number.
    rows: Rows
    #: Partitions that fit the filter, on all pages.
    matching: int
    #: Whether there are more after these.
    has_more: bool


class TopicFound(NamedTuple):
    """A topic on a page."""

    topic: Topic
    #: Its rows.
    rows: range
    #: Partitions of it that fit the filter.
    matching: int


class TopicsFound(NamedTuple):
    """A page of topics."""

    topics: list[TopicFound]
    #: Topics that fit, on all pages.
    matching: int
    has_more: bool


class PartitionSearch:
    """Searches of one node, in one image after the other. May be used by several threads.

    The order of the names is kept as long as topics stay as they are: following page after page costs it once.
    """

    def __init__(self, config: ControllerConfig) -> None:
        self._config = config
        self._order: _TopicOrder | None = None

    def partitions(
        self,
        image: MetadataImage,
        wanted: PartitionFilter,
        after: tuple[str, int] | None,
        limit: int,
        *,
        is_shown: Callable[[str], bool] | None = None,
    ) -> PartitionsFound:
        """At most ``limit`` partitions behind ``after``, a topic's name and a partition number.

        ``is_shown``: of which topics; None: of all.
        """
        order = self._order_of(image)
        chosen = order.select(wanted.names, is_shown)
        hits = matching_rows(image, self._config, wanted)
        begins, ends = order.stretches(chosen, hits)
        matching = int((ends - begins).sum())
        if after is not None:
            topic, number = after
            first = bisect_left(order.names, topic)
            at = int(np.searchsorted(chosen, first))
            if at < len(chosen) and order.names[chosen[at]] == topic:
                begins[at] = max(begins[at], np.searchsorted(hits, order.extents[chosen[at], 0] + number, "right"))
                begins[at] = min(begins[at], ends[at])
            begins, ends = begins[at:], ends[at:]
        held = np.flatnonzero(ends > begins)
        # One more topic than could be needed, for whether there is more.
        parts = [hits[begins[place] : ends[place]] for place in held[: limit + 1].tolist()]
        rows = np.concatenate(parts) if parts else np.empty(0, np.int64)
        return PartitionsFound(rows[:limit], matching, len(rows) > limit)

    def topics(
        self,
        image: MetadataImage,
        wanted: PartitionFilter,
        after: str,
        limit: int,
        *,
        has_configs: bool,
        is_shown: Callable[[str], bool] | None = None,
    ) -> TopicsFound:
        """At most ``limit`` topics behind the name ``after``; with a partition that fits, where partitions matter.

        ``has_configs``: only topics with configs of their own. ``is_shown``: only these; None: all.
        """
        order = self._order_of(image)
        chosen = order.select(wanted.names, is_shown)
        begins, ends = order.stretches(chosen, matching_rows(image, self._config, wanted))
        counts = ends - begins
        if wanted.is_about_partitions:
            chosen, counts = chosen[counts > 0], counts[counts > 0]
        if has_configs:
            resources = image.configs.resources
            is_kept = [(TOPIC_RESOURCE, order.names[place]) in resources for place in chosen.tolist()]
            chosen, counts = chosen[is_kept], counts[is_kept]
        begin = int(np.searchsorted(chosen, bisect_right(order.names, after)))
        end = begin + limit
        found = [
            TopicFound(order.topics[place], order.rows(place), count)
            for place, count in zip(chosen[begin:end].tolist(), counts[begin:end].tolist(), strict=True)
        ]
        return TopicsFound(found, len(chosen), end < len(chosen))

    def _order_of(self, image: MetadataImage) -> _TopicOrder:
        order = self._order
        if order is None or not order.is_of(image):
            order = self._order = _TopicOrder(image)
        return order


class _TopicOrder:
    """All topics by name, and where their rows are."""

    def __init__(self, image: MetadataImage) -> None:
        self._by_name, self._extents = image.topics.by_name, image.partitions.extents
        names, topics = self._by_name.keys_and_values()
        # In parts: one sort or one array of all topics would keep the interpreter, which others wait for.
        parts = [
            sorted(range(first, min(first + _TOPICS_AT_ONCE, len(names))), key=names.__getitem__)
            for first in range(0, len(names), _TOPICS_AT_ONCE)
        ]
        places = list(merge(*parts, key=names.__getitem__))
        self.names: Sequence[str] = [names[place] for place in places]
        self.topics: Sequence[Topic] = [topics[place] for place in places]
        #: int64[t, 2]: first row and size.
        self.extents = np.concatenate([extent_column(()), *self._extent_columns()])

    def _extent_columns(self) -> Iterator[NDArray[np.int64]]:
        for first in range(0, len(self.topics), _TOPICS_AT_ONCE):
            ids = [topic.id for topic in self.topics[first : first + _TOPICS_AT_ONCE]]
            yield extent_column(self._extents.get_many(ids))

    def is_of(self, image: MetadataImage) -> bool:
        """Whether it holds for this image too."""
        return self._by_name is image.topics.by_name and self._extents is image.partitions.extents

    def select(self, patterns: NamePatterns, is_shown: Callable[[str], bool] | None) -> NDArray[np.int64]:
        """Ascending places of the topics that are meant, and may be seen."""
        chosen = patterns.select(self.names)
        if is_shown is not None:
            among = range(len(self.names)) if chosen is None else chosen
            chosen = [place for place in among if is_shown(self.names[place])]
        return np.arange(len(self.names)) if chosen is None else np.array(chosen, np.int64)

    def rows(self, place: int) -> range:
        """The rows of a topic."""
        first_row, size = self.extents[place].tolist()
        return range(first_row, first_row + size)

    def stretches(self, chosen: NDArray[np.int64], rows: Rows) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """For each chosen topic, where among ``rows`` (ascending) its own begin and end."""
        first_rows, sizes = self.extents.take(chosen, axis=0).T
        return np.searchsorted(rows, first_rows), np.searchsorted(rows, first_rows + sizes)


def matching_rows(image: MetadataImage, config: ControllerConfig, wanted: PartitionFilter) -> Rows:
    """int64[n], ascending: rows of all partitions that fit, whatever their topic's name."""
    table = image.partitions
    if not wanted.is_about_partitions:
        return table.all_rows()
    min_isrs, tally = MinIsrs(image, config), tally_of(table)
    if wanted.conditions and not any(cells_in(tally.shapes, one, min_isrs).any() for one in wanted.conditions):
        return np.empty(0, np.int64)
    parts = [
        np.flatnonzero(_fits(page, wanted, min_isrs)) + (number << PAGE_SHIFT)
        for number, page in enumerate(table.pages)
    ]
    return np.concatenate(parts) if parts else np.empty(0, np.int64)


def _fits(page: Page, wanted: PartitionFilter, min_isrs: MinIsrs) -> Flags:
    fits = holds_partition(page)
    if wanted.replica is not None:
        fits = fits & has_replica(page, wanted.replica)
    if wanted.leader is not None:
        fits = fits & has_leader(page, wanted.leader)
    if wanted.conditions:
        is_in_any = np.zeros(len(fits), np.bool_)
        for condition in wanted.conditions:
            is_in_any |= is_in(page, condition, min_isrs)
        fits = fits & is_in_any
    return fits
