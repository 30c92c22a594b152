"""The rows of a partition table that belong to a topic.

Rows of many topics are found by one look-up each, or, where they lie in the order in which they are asked for, as those
of a mass change do, from the pages themselves: a look-up in a large map misses the processor's caches several times.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from quorate.metadata_log.ids import UUID_BYTES, Uuid
from quorate.snapshots.pauses import Pause
from quorate.snapshots.table.pages import PAGE_SHIFT, AnyColumn, Page, Rows


class Extent(NamedTuple):
    """The rows of one topic."""

    first_row: int
    #: Rows reserved: highest partition number + 1. A number that no record declared has an empty row.
    size: int


#: The extent of a topic without partitions.
NO_ROWS: Final = Extent(0, 0)
#: Topics from which on it is worth a try to find them beside each other; and rows of the table between the first and
#: the last of them, for each row asked for, up to which it is.
_NEIGHBOURS_MIN: Final = 32
_ROWS_BETWEEN_MAX: Final = 16
#: Topics that are looked up between two pauses, or worked on: half a millisecond at most.
TOPICS_AT_ONCE: Final = 64


#: Columns of strictly ascending rows by name, as ``page_access.gather`` has them.
Gather = Callable[[Rows, Sequence[str]], Mapping[str, AnyColumn]]


class ExtentsByTopic(Protocol):
    """A map of them, or one that is being edited."""

    def get(self, key: Uuid, /) -> Extent | None:
        """A topic's; None: it has none."""

    def get_many(self, keys: Sequence[Uuid], /) -> list[Extent | None]:
        """Of many topics, in their order."""


@dataclass(frozen=True, slots=True, eq=False)
class TopicStretches:
    """The stretches of a column of topic ids in which one topic stands in every row."""

    #: uint8[s, 16]
    ids: NDArray[np.uint8]
    #: int64[s]: first row of each stretch.
    starts: NDArray[np.int64]
    #: int64[s]: rows of each stretch.
    lengths: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.starts)

    @classmethod
    def of(cls, topic_ids: NDArray[np.uint8]) -> TopicStretches:
        """The stretches of uint8[n, 16]."""
        if len(topic_ids) == 1:
            return cls(topic_ids, np.zeros(1, np.int64), np.ones(1, np.int64))
        words = np.ascontiguousarray(topic_ids).view(np.uint64)
        is_other = words[1:, 0] != words[:-1, 0]
        is_other |= words[1:, 1] != words[:-1, 1]
        starts = np.concatenate([np.zeros(min(1, len(words)), np.int64), np.flatnonzero(is_other) + 1])
        return cls(topic_ids.take(starts, axis=0), starts, np.diff(starts, append=len(words)))

    @property
    def topics(self) -> list[Uuid]:
        """The topic of each stretch."""
        return uuids(self.ids)

    def find_rows(self, extents: NDArray[np.int64], partition_ids: NDArray[np.int32]) -> Rows:
        """int64[n]: rows reserved for these partitions of the topics; -1 where none is.

        Args:
            extents: int64[s, 2], as ``extent_column`` gives them.
        """
        rows: Rows = np.repeat(extents[:, 0], self.lengths)
        is_unknown = partition_ids >= np.repeat(extents[:, 1], self.lengths)
        is_unknown |= partition_ids < 0
        rows += partition_ids
        if is_unknown.any():
            rows[is_unknown] = -1
        return rows


def reserved_rows(
    extents: ExtentsByTopic,
    pages: Sequence[Page],
    gather: Gather,
    topic_ids: NDArray[np.uint8],
    partition_ids: NDArray[np.int32],
) -> Rows:
    """int64[n]: rows reserved for partitions (uint8[n, 16], int32[n]); -1 where none is.

    ``gather``: of these pages.
    """
    stretches = TopicStretches.of(topic_ids)
    rows = _neighbouring_rows(extents, pages, gather, stretches, partition_ids)
    if rows is not None:
        return rows
    return stretches.find_rows(extent_column(extents.get_many(stretches.topics)), partition_ids)


def _neighbouring_rows(
    extents: ExtentsByTopic,
    pages: Sequence[Page],
    gather: Gather,
    stretches: TopicStretches,
    partition_ids: NDArray[np.int32],
) -> Rows | None:
    """The rows of partitions, strictly ascending; None: they do not ascend, or one of them was never declared."""
    if len(stretches) < _NEIGHBOURS_MIN or int(partition_ids.min()) < 0:
        return None
    first, last = (extents.get(stretches.ids[at].tobytes()) for at in (0, -1))
    if first is None or last is None:
        return None
    end = last.first_row + last.size
    if not 0 < end - first.first_row <= _ROWS_BETWEEN_MAX * len(partition_ids):
        return None
    starts = _first_partitions(pages, first.first_row, end)
    if len(starts) > len(stretches):
        known = gather(starts, ("topic_ids",))["topic_ids"]
        starts = starts[np.isin(_halves(known), _halves(stretches.ids))]
    if len(starts) != len(stretches):
        return None
    # A partition lies where its topic begins, and its number further: where the number is right, so is the topic.
    rows: Rows = np.repeat(starts, stretches.lengths)
    rows += partition_ids
    if rows[0] < first.first_row or rows[-1] >= end or (rows[1:] <= rows[:-1]).any():
        return None
    known = gather(starts, ("topic_ids",))["topic_ids"]
    numbers = gather(rows, ("partition_ids",))["partition_ids"]  # last: who has these rows next has them cut already
    return rows if np.array_equal(known, stretches.ids) and np.array_equal(numbers, partition_ids) else None


def _first_partitions(pages: Sequence[Page], first_row: int, row_end: int) -> Rows:
    """int64[k], ascending: rows of partitions number 0 from a row to another one (exclusive)."""
    numbers = range(first_row >> PAGE_SHIFT, (row_end - 1 >> PAGE_SHIFT) + 1)
    found = np.concatenate([np.flatnonzero(pages[n].partition_ids == 0) + (n << PAGE_SHIFT) for n in numbers])
    return found[np.searchsorted(found, first_row) : np.searchsorted(found, row_end)]


def uuids(ids: NDArray[np.uint8]) -> list[Uuid]:
    """The ids of a column uint8[n, 16]."""
    data = ids.tobytes()
    return [data[at : at + UUID_BYTES] for at in range(0, len(data), UUID_BYTES)]


def id_column(ids: Iterable[Uuid], pause: Pause) -> NDArray[np.uint8]:
    """uint8[n, 16]: the other way round, for any number of ids; ``pause`` is called after some of them."""
    left = iter(ids)
    parts = iter(lambda: b"".join(islice(left, TOPICS_AT_ONCE)), b"")
    column = [np.empty((0, UUID_BYTES), np.uint8)]
    for part in parts:
        column.append(np.frombuffer(part, np.uint8).reshape(-1, UUID_BYTES))
        pause()
    return np.concatenate(column)


def each_once(ids: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """uint8[m, 16], in any order: the ids of uint8[n, 16] without repetitions. Other threads go on meanwhile."""
    words = np.ascontiguousarray(ids).view(np.uint64)
    words = words[np.lexsort((words[:, 0], words[:, 1]))]
    is_first = np.ones(len(words), np.bool_)
    is_first[1:] = (words[1:] != words[:-1]).any(axis=1)
    return words[is_first].view(np.uint8)


def _halves(ids: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """uint64[n]: the second half of each id (uint8[n, 16]): made at random where ids are, counted where they are."""
    return np.ascontiguousarray(ids).view(np.uint64)[:, 1]


def numbered(starts: NDArray[np.int64], sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """int64[sum of sizes]: for each stretch its numbers in order, from its start (int64[s] each)."""
    numbers = np.repeat(starts - np.cumsum(sizes) + sizes, sizes)
    numbers += np.arange(len(numbers))
    return numbers


def extent_column(extents: Iterable[Extent | None]) -> NDArray[np.int64]:
    """int64[s, 2]: first row and size; zeros where there is no extent."""
    # An Extent is a tuple of two numbers: numpy reads one flat list three times as fast as a list of tuples.
    flat = [number for extent in extents for number in extent or NO_ROWS]
    return np.array(flat, np.int64).reshape(-1, 2)
