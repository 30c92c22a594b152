"""Lists of all rows at once against the same lists one by one."""

from collections.abc import Sequence
from random import Random

import numpy as np
import pyarrow as pa
import pytest

from quorate.pipeline.incidents.partitions.lists import NOBODY, Lists

ROWS = 300


def lists_of(rows: Sequence[list[int] | None]) -> Lists:
    return Lists.of(pa.array(rows, pa.list_(pa.int32())))


@pytest.fixture(params=[0, 1])
def pair(request: pytest.FixtureRequest) -> tuple[list[list[int]], list[list[int]]]:
    dice = Random(request.param)

    def some() -> list[list[int]]:
        return [dice.sample(range(6), dice.randrange(5)) for _ in range(ROWS)]

    one, other = some(), some()
    other[::3] = one[::3]
    return one, other


def test_answers_are_those_of_lists_one_by_one(pair: tuple[list[list[int]], list[list[int]]]) -> None:
    one, other = pair
    some, others = lists_of(one), lists_of(other)
    asked = np.arange(ROWS, dtype=np.int32) % 6

    assert some.array().to_pylist() == one
    assert some.first().tolist() == [row[0] if row else NOBODY for row in one]
    assert some.contains(asked).tolist() == [broker in row for broker, row in zip(asked.tolist(), one, strict=True)]
    assert some.equals(others).tolist() == [a == b for a, b in zip(one, other, strict=True)]
    assert some.without(others).array().to_pylist() == [
        [broker for broker in a if broker not in b] for a, b in zip(one, other, strict=True)
    ]


def test_rows_are_taken_in_any_order(pair: tuple[list[list[int]], list[list[int]]]) -> None:
    one, _ = pair
    rows = np.array([7, 7, 0, ROWS - 1])

    assert lists_of(one).take(rows).array().to_pylist() == [one[row] for row in rows]


def test_null_is_empty_and_empty_columns_have_no_rows() -> None:
    assert lists_of([None, [], [4]]).array().to_pylist() == [[], [], [4]]
    assert lists_of([]).first().tolist() == []
    assert lists_of([None, None]).first().tolist() == [NOBODY, NOBODY]


def test_a_slice_of_a_column_is_its_rows() -> None:
    assert Lists.of(pa.array([[1], [2, 3], [4]], pa.list_(pa.int32())).slice(1)).array().to_pylist() == [[2, 3], [4]]


def test_nulls_may_be_asked_for() -> None:
    assert lists_of([[1], [2]]).array(is_null=np.array([True, False])).to_pylist() == [None, [2]]
