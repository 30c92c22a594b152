"""Counts of rows that say the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from random import Random

import numpy as np
import pytest

from quorate.snapshots.counts.cells import Cells


def columns_of(rows: Sequence[tuple[int, ...]]) -> list[np.ndarray]:
    return [np.array(column, np.int64) for column in zip(*rows, strict=True)]


def as_dict(cells: Cells) -> dict[tuple[int, ...], int]:
    keys = zip(*(key.tolist() for key in cells.keys), strict=True)
    return dict(zip(keys, cells.counts.tolist(), strict=True))


@pytest.mark.parametrize(
    "highest", [(3, 2), (2**31 - 1, 3), (2**40, 2**40)], ids=["with counters", "sorted", "too many for one number"]
)
def test_rows_are_counted_whatever_numbers_they_hold(highest: tuple[int, int]) -> None:
    draw = Random(1)
    chosen = [[draw.randrange(-1, most) for most in highest] for _ in range(5)]
    rows = [tuple(draw.choice(chosen)) for _ in range(300)]

    cells = Cells.of(columns_of(rows[:100]), columns_of(rows[100:]))

    assert as_dict(cells) == Counter(rows)
    assert list(as_dict(cells)) == sorted(set(rows))


def test_sum_of_parts_is_the_whole_and_a_difference_leaves_no_cell_of_nothing() -> None:
    first, second = [(1, 2), (1, 2), (3, 4)], [(3, 4), (0, 9)]
    whole = Cells.of(columns_of(first + second))
    one, other = Cells.of(columns_of(first)), Cells.of(columns_of(second))

    assert Cells.total([(one, 1), (other, 1)], 2) == whole
    assert Cells.total([(whole, 1), (other, -1)], 2) == one
    assert as_dict(Cells.total([(whole, 1), (whole, -1)], 2)) == {}
    assert as_dict(Cells.total([(other, -2), (Cells.none(2), 1)], 2)) == {(3, 4): -2, (0, 9): -2}


def test_cells_differ_by_a_number_or_a_count() -> None:
    cells = Cells.of(columns_of([(1, 2), (3, 4)]))

    assert cells == Cells.of(columns_of([(3, 4), (1, 2)]))
    assert cells != Cells.of(columns_of([(1, 2), (3, 5)]))
    assert cells != Cells.of(columns_of([(1, 2), (1, 2), (3, 4)]))
    assert Cells.none(2) == Cells.total([], 2)
