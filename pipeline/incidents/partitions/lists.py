"""A list of brokers for every row, as flat numbers: what is asked of all rows is answered place by place. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from quorate.pipeline.fold.fields import Bools, Ints, Longs

#: No broker has this id.
NOBODY: Final = -1


@dataclass(frozen=True, slots=True)
class Lists:
    """The begin of each row's list in ``values``, and its length; rows may share values."""

    values: Ints
    starts: Longs
    lengths: Longs

    @classmethod
    def of(cls, column: pa.Array) -> Self:
        """The lists of a column; null is the empty list."""
        lengths = pc.fill_null(pc.list_value_length(column), 0).to_numpy(zero_copy_only=False).astype(np.int64)
        starts = column.offsets.to_numpy()[:-1].astype(np.int64)
        return cls(column.values.to_numpy(zero_copy_only=False), starts, lengths)

    def __len__(self) -> int:
        return len(self.lengths)

    def take(self, rows: Longs) -> Lists:
        """The lists of these rows."""
        return Lists(self.values, self.starts[rows], self.lengths[rows])

    def first(self) -> Ints:
        """The first of each list, ``NOBODY`` of an empty one."""
        found = np.full(len(self), NOBODY, np.int32)
        some = np.flatnonzero(self.lengths)
        found[some] = self.values[self.starts[some]]
        return found

    def contains(self, brokers: Ints) -> Bools:
        """Whether each list has the broker of its row."""
        found = np.zeros(len(self), np.bool_)
        for rows, values in self._places(np.ones(len(self), np.bool_)):
            found[rows] |= values == brokers[rows]
        return found

    def equals(self, other: Lists) -> Bools:
        """Whether each list is the other's of the same row, in the same order."""
        same: Bools = self.lengths == other.lengths
        for place, (rows, values) in enumerate(self._places(same.copy())):
            same[rows] &= values == other.values[other.starts[rows] + place]
        return same

    def without(self, other: Lists) -> Lists:
        """Each list without those that are in the other's of the same row."""
        rows, values = np.repeat(np.arange(len(self)), self.lengths), self.flat()
        kept = ~other.take(rows).contains(values)
        lengths = np.bincount(rows[kept], minlength=len(self))
        return Lists(values[kept], np.cumsum(lengths) - lengths, lengths)

    def flat(self) -> Ints:
        """The values of all lists, one list after the other."""
        before = np.cumsum(self.lengths) - self.lengths
        places: Longs = np.arange(int(self.lengths.sum())) + np.repeat(self.starts - before, self.lengths)
        return self.values[places]

    def array(self, is_null: Bools | None = None) -> pa.Array:
        """As a column."""
        offsets = np.concatenate([[0], np.cumsum(self.lengths)]).astype(np.int32)
        mask = None if is_null is None else pa.array(is_null)
        return pa.ListArray.from_arrays(pa.array(offsets), pa.array(self.flat(), pa.int32()), mask=mask)

    def _places(self, wanted: Bools) -> Iterator[tuple[Longs, Ints]]:
        """The wanted rows that have a first, then a second ..., each time with it."""
        rows = np.flatnonzero(wanted & (self.lengths > 0))
        place = 0
        while len(rows):
            yield rows, self.values[self.starts[rows] + place]
            place += 1
            rows = rows[self.lengths[rows] > place]
