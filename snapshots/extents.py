"""Which rows of a partition table are a topic's."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from metadata_log.ids import UUID_BYTES, Uuid
from snapshots.pages import Rows


class Extent(NamedTuple):
    """The rows of one topic."""

    first_row: int
    #: Rows reserved: highest partition number + 1. A number that no record declared has an empty row.
    size: int


def find_rows(
    extent_of: Callable[[Uuid], Extent | None], topic_ids: NDArray[np.uint8], partition_ids: NDArray[np.int32]
) -> Rows:
    """int64[n]: rows reserved for the partitions; -1 where none is."""
    starts = topic_starts(topic_ids)
    extents = [extent_of(uuid) or Extent(0, 0) for uuid in topics_at(topic_ids, starts)]
    lengths = np.diff(starts, append=len(partition_ids))
    first_rows = np.repeat(np.array([extent.first_row for extent in extents], np.int64), lengths)
    sizes = np.repeat(np.array([extent.size for extent in extents], np.int64), lengths)
    is_known = (partition_ids >= 0) & (partition_ids < sizes)
    return np.where(is_known, first_rows + partition_ids, -1)


def topic_starts(topic_ids: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Where in uint8[n, 16] another topic begins than the one before."""
    words = np.ascontiguousarray(topic_ids).view(np.uint64)
    is_other = (words[1:, 0] != words[:-1, 0]) | (words[1:, 1] != words[:-1, 1])
    starts = np.flatnonzero(is_other) + 1
    return np.concatenate([np.zeros(min(1, len(words)), np.int64), starts])


def topics_at(topic_ids: NDArray[np.uint8], positions: NDArray[np.int64]) -> list[Uuid]:
    """The topic ids in some rows of uint8[n, 16]."""
    data = topic_ids[positions].tobytes()
    return [data[at : at + UUID_BYTES] for at in range(0, len(data), UUID_BYTES)]
