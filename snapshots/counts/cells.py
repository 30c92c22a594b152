"""Counts of rows that say the same: one cell for each combination of numbers that occurs. Immutable, and canonical.

There are as many cells as combinations, hundreds where there are millions of rows, so sums and differences of counts
cost next to nothing beside counting.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Final

import numpy as np
from numpy.typing import NDArray

from quorate.snapshots.counts.row_kinds import COUNTERS_PER_ROW, PACKED_MAX

Numbers = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """The number of times that each combination of k numbers occurs. Ascending by the numbers; none is zero."""

    #: k arrays int64[c].
    keys: tuple[Numbers, ...]
    #: int64[c]
    counts: Numbers

    def __len__(self) -> int:
        return len(self.counts)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Cells):
            return NotImplemented
        return all(map(np.array_equal, (*self.keys, self.counts), (*other.keys, other.counts)))

    def __hash__(self) -> int:
        raise TypeError("cells have no hash")

    @staticmethod
    def none(width: int) -> Cells:
        """Of no rows, with ``width`` numbers each."""
        return Cells((_NOTHING,) * width, _NOTHING)

    @staticmethod
    def of(*parts: Sequence[NDArray[np.integer]]) -> Cells:
        """Of rows, in any number of parts: in each an array [n] for each of the numbers."""
        width = len(parts[0])
        parts = tuple(part for part in parts if len(part[0]))
        if not parts:
            return Cells.none(width)
        lows = [min(int(part[place].min()) for part in parts) for place in range(width)]
        highs = [max(int(part[place].max()) for part in parts) for place in range(width)]
        spans = [high - low + 1 for low, high in zip(lows, highs, strict=True)]
        if prod(spans) > PACKED_MAX:
            columns = [np.concatenate([part[place].astype(np.int64) for part in parts]) for place in range(width)]
            return Cells.merged(columns, np.ones(len(columns[0]), np.int64))
        found, counts = _occurrences(_packed(parts, lows, spans), prod(spans))
        keys: list[Numbers] = []
        for low, span in zip(reversed(lows), reversed(spans), strict=True):
            found, key = np.divmod(found, span)
            keys.append(key + low)
        return Cells(tuple(reversed(keys)), counts)

    @staticmethod
    def total(parts: Iterable[tuple[Cells, int]], width: int) -> Cells:
        """The sum of some, each times a number: -1 takes away."""
        given = [(cells, times) for cells, times in parts if len(cells)]
        if not given:
            return Cells.none(width)
        if len(given) == 1 and given[0][1] == 1:
            return given[0][0]
        columns = [np.concatenate([cells.keys[place] for cells, _ in given]) for place in range(width)]
        return Cells.merged(columns, np.concatenate([cells.counts * times for cells, times in given]))

    @staticmethod
    def merged(columns: Sequence[Numbers], counts: Numbers) -> Cells:
        """Of combinations in any order, which may come more than once: int64[m] for each number, and their counts."""
        order = np.lexsort(tuple(reversed(columns)))
        columns = [column.take(order) for column in columns]
        is_first = np.ones(len(order), np.bool_)
        is_first[1:] = np.logical_or.reduce([column[1:] != column[:-1] for column in columns])
        starts = np.flatnonzero(is_first)
        sums = np.add.reduceat(counts.take(order), starts)
        kept = np.flatnonzero(sums)
        return Cells(tuple(column.take(starts[kept]) for column in columns), sums.take(kept))


def _packed(parts: Sequence[Sequence[NDArray[np.integer]]], lows: Sequence[int], spans: Sequence[int]) -> Numbers:
    """All rows, each as one number."""
    packed = np.empty(sum(len(part[0]) for part in parts), np.int64)
    end = 0
    for part in parts:
        rows = packed[end : end + len(part[0])]
        end += len(rows)
        rows[:] = part[0]
        rows -= lows[0]
        for column, low, span in zip(part[1:], lows[1:], spans[1:], strict=True):
            rows *= span
            rows += column
            if low:
                rows -= low
    return packed


def _occurrences(packed: Numbers, combinations: int) -> tuple[Numbers, Numbers]:
    """The numbers that occur, ascending, and how often. Writes to its argument."""
    if combinations <= COUNTERS_PER_ROW * len(packed):
        counters = np.bincount(packed, minlength=1)
        found = np.flatnonzero(counters)
        return found, counters.take(found)
    packed.sort()
    starts = np.flatnonzero(np.concatenate([[True], packed[1:] != packed[:-1]]))
    return packed.take(starts), np.diff(starts, append=len(packed))


_NOTHING: Final[Numbers] = np.empty(0, np.int64)
_NOTHING.setflags(write=False)
