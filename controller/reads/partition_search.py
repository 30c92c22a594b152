"""Topics and partitions that an operator asks for, a page at a time in the order of their names.

Conditions are masks over the columns of the partition table: work for a single partition is done for those on the page.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from quorate.controller.decisions.controller_config import ControllerConfig
from quorate.controller.reads.name_patterns import NamePatterns
from quorate.controller.reads.partition_conditions import Flags, MinIsr, is_in, min_isr_by_row
from quorate.controller.reads.partition_filter import PartitionFilter
from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.image.image_parts import TOPIC_RESOURCE, Topic
from quorate.snapshots.table.extents import extent_column
from quorate.snapshots.table.page_access import has_leader, has_replica, holds_partition
from quorate.snapshots.table.pages import PAGE_ROWS, PAGE_SHIFT, Page, Rows


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
        places = sorted(range(len(names)), key=names.__getitem__)
        self.names: Sequence[str] = [names[place] for place in places]
        self.topics: Sequence[Topic] = [topics[place] for place in places]
        #: int64[t, 2]: first row and size.
        self.extents = extent_column(self._extents.get_many([topic.id for topic in self.topics]))

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
    is_by_isr = not {"under-min-isr", "at-min-isr"}.isdisjoint(wanted.conditions)
    min_isr: MinIsr = min_isr_by_row(image, config) if is_by_isr else np.int64(0)
    parts = []
    for number, page in enumerate(table.pages):
        first = number << PAGE_SHIFT
        own = min_isr if isinstance(min_isr, np.int64) else _padded(min_isr[first : first + PAGE_ROWS])
        parts.append(np.flatnonzero(_fits(page, wanted, own)) + first)
    return np.concatenate(parts) if parts else np.empty(0, np.int64)


def _padded(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """As long as a page; what is behind the table's end holds no partition."""
    return np.pad(values, (0, PAGE_ROWS - len(values)))


def _fits(page: Page, wanted: PartitionFilter, min_isr: MinIsr) -> Flags:
    fits = holds_partition(page)
    if wanted.replica is not None:
        fits = fits & has_replica(page, wanted.replica)
    if wanted.leader is not None:
        fits = fits & has_leader(page, wanted.leader)
    if wanted.conditions:
        is_in_any = np.zeros(len(fits), np.bool_)
        for condition in wanted.conditions:
            is_in_any |= is_in(page, condition, min_isr)
        fits = fits & is_in_any
    return fits
