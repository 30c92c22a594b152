"""Which rows of a partition table are a topic's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from metadata_log.ids import UUID_BYTES, Uuid
from snapshots.pages import Rows


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

    topics: list[Uuid]
    #: int64[s]: first row of each stretch.
    starts: NDArray[np.int64]
    #: int64[s]: rows of each stretch.
    lengths: NDArray[np.int64]

    @classmethod
    def of(cls, topic_ids: NDArray[np.uint8]) -> TopicStretches:
        """The stretches of uint8[n, 16]."""
        words = np.ascontiguousarray(topic_ids).view(np.uint64)
        is_other = words[1:, 0] != words[:-1, 0]
        is_other |= words[1:, 1] != words[:-1, 1]
        starts = np.concatenate([np.zeros(min(1, len(words)), np.int64), np.flatnonzero(is_other) + 1])
        data = topic_ids[starts].tobytes()
        topics = [data[at : at + UUID_BYTES] for at in range(0, len(data), UUID_BYTES)]
        return cls(topics, starts, np.diff(starts, append=len(words)))

    def find_rows(
        self, extents_of: Callable[[list[Uuid]], list[Extent | None]], partition_ids: NDArray[np.int32]
    ) -> Rows:
        """int64[n]: rows reserved for these partitions of the topics; -1 where none is."""
        # An Extent is a tuple of two numbers: numpy reads one flat list three times as fast as a list of tuples.
        flat = [number for extent in extents_of(self.topics) for number in extent or NO_ROWS]
        extents = np.array(flat, np.int64).reshape(-1, 2)
        rows: Rows = np.repeat(extents[:, 0], self.lengths)
        is_unknown = partition_ids >= np.repeat(extents[:, 1], self.lengths)
        is_unknown |= partition_ids < 0
        rows += partition_ids
        rows[is_unknown] = -1
        return rows
