"""The rows of a partition table that belong to a topic."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from quorate.metadata_log.ids import UUID_BYTES, Uuid
from quorate.snapshots.table.pages import Rows


class Extent(NamedTuple):
    """The rows of one topic."""

    first_row: int
    #: Rows reserved: highest partition number + 1. A number that no record declared has an empty row.
    size: int


#: The extent of a topic without partitions.
NO_ROWS: Final = Extent(0, 0)


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
        data = self.ids.tobytes()
        return [data[at : at + UUID_BYTES] for at in range(0, len(data), UUID_BYTES)]

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
