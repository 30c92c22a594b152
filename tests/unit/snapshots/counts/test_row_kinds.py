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


def test_sets_that_all_have_the_last_slots_are_told_apart() -> None:
    """The lowest of them is beyond what a signed number holds, and they are not far apart."""
    sets = np.array([2**63, 2**63 + 1, 2**63 + 5, 2**63 + 1], np.uint64)
    assert_are_kinds([sets])
    assert_are_kinds([np.array([0, 1, 0, 1]), sets, sets[::-1].copy()])


def test_few_rows_of_sets_over_many_slots_are_told_apart() -> None:
    """Of either column the combinations with as many rows as there are do not fit into one number."""
    wide = (1 << 61) - 1
    isr = np.array([(1 << count) - 1 for count in range(1, 10)] + [wide], np.uint64)
    adding = np.array([0] * 9 + [wide], np.uint64)
    assert_are_kinds([isr, adding])
    assert_are_kinds([np.arange(10), isr, adding, isr[::-1].copy()])
    # Eight of one where numbers are 2**61 apart: as many times as much would be the same, in 64 bits.
    assert_are_kinds([np.repeat(np.array([0, 1 << 61], np.uint64), 8), np.tile(np.arange(8) << 40, 2)])
    draw = Random(3)
    for slots in (40, 60, 61, 62, 63, 64):
        assert_are_kinds([np.array([draw.getrandbits(slots) for _ in range(300)], np.uint64) for _ in range(3)])
