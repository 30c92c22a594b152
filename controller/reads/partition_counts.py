"""Partitions by condition, counted over the columns of the partition table and kept page by page.

Pages are immutable and shared between images, so after a change only the pages that it touched are counted again.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from quorate.controller.api.resources import PartitionCounts
from quorate.controller.reads.partition_conditions import (
    REPLICAS_MAX,
    above_min_isr,
    is_offline,
    is_under_replicated,
    isr_above_min,
)
from quorate.controller.reads.read_turns import run_in_turn
from quorate.controller.reads.unregistered import UnregisteredBrokers
from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.image.image_parts import BROKER_RESOURCE, TOPIC_RESOURCE
from quorate.snapshots.table.page_access import holds_partition, is_led_by_preferred, is_reassigning
from quorate.snapshots.table.pages import NO_LEADER_SLOT, NO_PARTITION, Page

MIN_INSYNC_REPLICAS: Final = "min.insync.replicas"

_NO_ROWS: Final = np.empty(0, np.int64)
#: Offline partitions that are named, the first ones of the table: enough to begin with.
OFFLINE_NAMED_MAX: Final = 20


class Counted(NamedTuple):
    """The counts of one image."""

    counts: PartitionCounts
    #: "topic-partition" of the first ones without a leader.
    offline: list[str]
    #: Replicas on brokers that are not registered, by their ids.
    unregistered: dict[int, int]


class _CountedPage(NamedTuple):
    #: Kept with what was counted in it: an identity means something only as long as its object lives.
    page: Page
    #: In the order of the fields of ``PartitionCounts``.
    counts: NDArray[np.int64]
    #: The first rows without a leader.
    offline_rows: NDArray[np.int64]


class CountedImages:
    """Counts of a node's committed state, for status and metrics: one count at a time, off the loop."""

    def __init__(self, default_min_isr: int) -> None:
        self._counter = PartitionCounter(default_min_isr)
        self._lock = asyncio.Lock()

    async def count(self, image: MetadataImage) -> Counted:
        """The counts of an image. An image is a value: another thread may read it."""
        return await run_in_turn(partial(self._counter.count, image), self._lock)


class PartitionCounter:
    """Counts images, one after the other. Not thread-safe: one count at a time."""

    def __init__(self, default_min_isr: int) -> None:
        self._default_min_isr = default_min_isr
        self._unregistered = UnregisteredBrokers()
        #: By identity: the pages of the image counted last, with the min ISR they were counted by.
        self._pages: dict[int, _CountedPage] = {}
        self._min_isr = 0
        #: For tests: pages that had to be counted.
        self.pages_counted = 0

    def count(self, image: MetadataImage) -> Counted:
        """The counts of an image. May take tens of milliseconds for a million partitions seen for the first time."""
        min_isr = self._cluster_min_isr(image)
        if min_isr != self._min_isr:
            self._pages = {}
            self._min_isr = min_isr
        self._pages = {id(page): self._counted(page) for page in image.partitions.pages}
        total = sum((known.counts for known in self._pages.values()), np.zeros(len(PartitionCounts.model_fields), int))
        counts: dict[str, int] = dict(zip(PartitionCounts.model_fields, total.tolist(), strict=True))
        counts["under_min_isr"] += _own_min_isr_correction(image, min_isr)
        return Counted(
            PartitionCounts.model_validate(counts), self._offline_names(image), self._unregistered.count(image)
        )

    def _counted(self, page: Page) -> _CountedPage:
        known = self._pages.get(id(page))
        if known is not None:
            return known
        self.pages_counted += 1
        return _count_rows(page, np.int64(self._min_isr))

    def _offline_names(self, image: MetadataImage) -> list[str]:
        names: list[str] = []
        for page in image.partitions.pages:
            for row in self._pages[id(page)].offline_rows[: OFFLINE_NAMED_MAX - len(names)]:
                topic = image.topics.by_id[page.topic_ids[row].tobytes()]
                names.append(f"{topic.name}-{page.partition_ids[row]}")
        return names

    def _cluster_min_isr(self, image: MetadataImage) -> int:
        return _as_min_isr(image.configs.of(BROKER_RESOURCE, "").get(MIN_INSYNC_REPLICAS), self._default_min_isr)


def _as_min_isr(text: str | None, default: int) -> int:
    # What stands in an imported log may be anything; a value that Kafka would not take is as good as none.
    # No partition has more than 64 replicas: what asks for more comes to the same.
    is_number = text is not None and text.isascii() and text.isdigit() and int(text) > 0
    return min(int(text or ""), REPLICAS_MAX) if is_number else default


def _count_rows(page: Page, min_isr: np.int64) -> _CountedPage:
    """A row without a partition has no replicas, and no leader: of these it is taken off again."""
    held = np.count_nonzero(holds_partition(page))
    offline = np.count_nonzero(page.leader_slots == NO_LEADER_SLOT) - (len(page.leader_slots) - held)
    counts = (
        held,
        offline,
        np.count_nonzero(is_under_replicated(page)),
        np.count_nonzero(above_min_isr(page, min_isr) < 0),
        held - np.count_nonzero(is_led_by_preferred(page)),
        np.count_nonzero(is_reassigning(page)),
    )
    offline_rows = np.flatnonzero(is_offline(page)) if offline else _NO_ROWS
    return _CountedPage(page, np.array(counts, np.int64), offline_rows[:OFFLINE_NAMED_MAX])


def _own_min_isr_correction(image: MetadataImage, cluster_min_isr: int) -> int:
    """The number that topics with a min ISR of their own add to, or take from, the count made with the cluster's."""
    found = []
    for (kind, name), configs in image.configs.resources.items():
        if kind != TOPIC_RESOURCE or MIN_INSYNC_REPLICAS not in configs:
            continue
        topic = image.topics.by_name.get(name)
        extent = None if topic is None else image.partitions.extents.get(topic.id)
        min_isr = _as_min_isr(configs[MIN_INSYNC_REPLICAS], cluster_min_isr)
        if extent is not None and min_isr != cluster_min_isr:
            found.append((extent.first_row, extent.size, min_isr))
    if not found:
        return 0
    starts, sizes, own = np.array(sorted(found)).T
    ends = np.cumsum(sizes)
    within = np.arange(ends[-1]) - np.repeat(ends - sizes, sizes)
    columns = image.partitions.gather(np.repeat(starts, sizes) + within)
    held = columns.partition_ids != NO_PARTITION
    under_own = held & (isr_above_min(columns.isr, columns.replica_counts, np.repeat(own, sizes)) < 0)
    under_cluster = held & (isr_above_min(columns.isr, columns.replica_counts, np.int64(cluster_min_isr)) < 0)
    return int(np.count_nonzero(under_own)) - int(np.count_nonzero(under_cluster))
