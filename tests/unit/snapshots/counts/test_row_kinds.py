"""Rows are of one kind where they say the same in all columns, and only there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import product
from random import Random
from typing import Any

import numpy as np
import pytest

from quorate.snapshots.counts.row_kinds import RowKinds

WHOLE = 2**32 - 1


def assert_are_kinds(columns: Sequence[Any]) -> None:
    kinds = RowKinds.of(columns)
    rows = list(zip(*(column.tolist() for column in columns), strict=True))
    said = [rows[example] for example in kinds.examples.tolist()]
    assert [said[kind] for kind in kinds.of_rows.tolist()] == rows
    assert dict(zip(said, kinds.counts.tolist(), strict=True)) == Counter(rows)
    assert len(set(said)) == len(said), "each kind once"


@pytest.mark.parametrize(
    "values",
    [[5], [-1, 0, 1], [-100, 100], [-(2**31), 2**31 - 1]],
    ids=["one", "counted", "sorted", "far apart"],
)
def test_rows_are_told_apart_whatever_numbers_they_hold(values: list[int]) -> None:
    draw = Random(1)
    assert_are_kinds([np.array([draw.choice(values) for _ in range(50)], np.int32) for _ in range(3)])


def test_rows_are_told_apart_where_one_number_cannot_pack_them() -> None:
    """Of three columns of 32 bits the first would be shifted out."""
    columns = zip(*product([0, 1, WHOLE], repeat=3), strict=True)
    assert_are_kinds([np.array(column, np.int64) for column in columns])


def test_sets_over_all_64_slots_are_told_apart() -> None:
    sets = np.array([0, 1, 2**63, 2**64 - 1, 2**63, 1], np.uint64)
    assert_are_kinds([np.array([7, 7, 7, 7, 8, 7]), sets, sets[::-1]])
