"""The rows of a partition table that belong to a topic."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from quorate.metadata_log.ids import UUID_BYTES, Uuid
from quorate.snapshots.maps.persistent_map import PersistentMap
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
            extents: int64[s, 2], as ``extent_column`` and ``ExtentFinder`` give them.
        """
        rows: Rows = np.repeat(extents[:, 0], self.lengths)
        is_unknown = partition_ids >= np.repeat(extents[:, 1], self.lengths)
        is_unknown |= partition_ids < 0
        rows += partition_ids
        if is_unknown.any():
            rows[is_unknown] = -1
        return rows


def extent_column(extents: Iterable[Extent | None]) -> NDArray[np.int64]:
    """int64[s, 2]: first row and size; zeros where there is no extent."""
    # An Extent is a tuple of two numbers: numpy reads one flat list three times as fast as a list of tuples.
    flat = [number for extent in extents for number in extent or NO_ROWS]
    return np.array(flat, np.int64).reshape(-1, 2)


class ExtentFinder:
    """Finds the extents of many topics in one version of the map; shared by all tables that have this version.

    Topics are looked up one by one until that has been done for a good part of them all: from then on, as in a pass
    over all of a broker's partitions, through a sorted column. A memo only: answers do not depend on it.
    """

    __slots__ = ("_asked", "_extents", "_index")

    def __init__(self, extents: PersistentMap[Uuid, Extent]) -> None:
        self._extents = extents
        self._asked = 0
        self._index: _ExtentIndex | None = None

    def find(self, stretches: TopicStretches) -> NDArray[np.int64]:
        """int64[s, 2]: first row and size of each topic; zeros where it has none."""
        if self._index is None:
            self._asked += len(stretches)
            if self._asked * _INDEX_COST <= len(self._extents):
                return extent_column(self._extents.get_many(stretches.topics))
            self._index = _ExtentIndex(self._extents)
        return self._index.find(stretches.ids)


#: A topic costs this many times more to look up than to index.
_INDEX_COST: Final = 8


class _ExtentIndex:
    """All extents, in columns sorted by one half of the topic's id."""

    __slots__ = ("_columns", "_halves", "_map", "_words")

    def __init__(self, extents: PersistentMap[Uuid, Extent]) -> None:
        ids, values = extents.keys_and_values()
        words = np.frombuffer(b"".join(ids), np.uint64).reshape(-1, 2)
        order = np.argsort(words[:, 1])
        self._map = extents
        #: uint64[t, 2], and its sorted half.
        self._words = words.take(order, axis=0)
        self._halves = np.ascontiguousarray(self._words[:, 1])
        #: int64[t, 2]
        self._columns = extent_column(values).take(order, axis=0)

    def find(self, topic_ids: NDArray[np.uint8]) -> NDArray[np.int64]:
        """int64[s, 2] of uint8[s, 16]."""
        wanted = np.ascontiguousarray(topic_ids).view(np.uint64)
        if not len(self._halves):
            return np.zeros((len(wanted), 2), np.int64)
        at = np.minimum(np.searchsorted(self._halves, wanted[:, 1]), len(self._halves) - 1)
        found = self._columns.take(at, axis=0)
        is_other = (self._words.take(at, axis=0) != wanted).any(axis=1)
        if is_other.any():  # unknown, or one of several with this half: random ids have none
            places = np.flatnonzero(is_other)
            found[places] = extent_column(self._map.get_many([topic_ids[place].tobytes() for place in places]))
        return found
