"""Rows that say the same in all of some columns, as one kind each: what follows from them is found out once a kind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

Places = NDArray[np.intp]

#: Combinations that could occur, for each row, up to which each has a counter of its own; beyond, rows are sorted.
COUNTERS_PER_ROW: Final = 4
#: Combinations that one 64-bit number can tell apart.
PACKED_MAX: Final = 1 << 62
_INT64_MAX: Final = (1 << 63) - 1


class RowKinds(NamedTuple):
    """``k`` kinds of ``n`` rows."""

    #: intp[n]: each row's.
    of_rows: Places
    #: intp[k]: a row of each.
    examples: Places
    #: int64[k]: rows of each.
    counts: NDArray[np.int64]

    @staticmethod
    def of(columns: Sequence[NDArray[np.integer]]) -> RowKinds:
        """By columns [n], one at least; ``n`` is 1 at least."""
        packed, combinations = np.zeros(len(columns[0]), np.int64), 1
        for column in columns:
            low, high = int(column.min()), int(column.max())
            span, places = high - low + 1, column
            if span == 1:
                continue
            # Sets over many slots, of which not even two may fit into one number.
            if combinations * span > PACKED_MAX and combinations > 1:
                packed, combinations = _renumbered(packed)
            if combinations * span > PACKED_MAX:
                places, span = _renumbered(column)
                low = 0
            elif high > _INT64_MAX:
                places, low = column - column.dtype.type(low), 0
            packed *= span
            # Of unsigned numbers the sum would else be a float.
            np.add(packed, places, out=packed, dtype=np.int64, casting="unsafe")
            packed -= low
            combinations *= span
        return _counted(packed) if combinations <= COUNTERS_PER_ROW * len(packed) else _sorted(packed)


def _renumbered(numbers: NDArray[np.integer]) -> tuple[NDArray[np.int64], int]:
    """int64[n]: the place of each number among those that occur, in their order; and how many do."""
    found, places = np.unique(numbers, return_inverse=True)
    return places.astype(np.int64), len(found)


def _counted(packed: NDArray[np.int64]) -> RowKinds:
    counters = np.bincount(packed)
    found = np.flatnonzero(counters)
    rows = np.empty(len(counters), np.intp)
    rows[packed] = np.arange(len(packed))
    examples = rows.take(found)
    rows[found] = np.arange(len(found))
    return RowKinds(rows.take(packed), examples, counters.take(found))


def _sorted(packed: NDArray[np.int64]) -> RowKinds:
    found: tuple[Any, ...] = np.unique(packed, return_index=True, return_inverse=True, return_counts=True)
    _, examples, of_rows, counts = found
    return RowKinds(of_rows, examples, counts)
