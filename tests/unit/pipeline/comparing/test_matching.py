"""Two tables row beside row: what counts as a difference, and how it is told."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from quorate.pipeline.comparing.matching import differing, matched, text

INTS = pa.list_(pa.int32())
PAIRS = pa.list_(pa.struct([("name", pa.string()), ("version", pa.int16())]))
TABLE = pa.schema([("topic", pa.string()), ("partition", pa.int32()), ("leader", pa.int32()), ("isr", INTS)])


def table(*rows: tuple[Any, ...]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(TABLE.names, row, strict=True)) for row in rows], TABLE)


def unlike(kind: pa.DataType, old: list[Any], new: list[Any], *, is_set: bool = False) -> list[bool]:
    found: list[bool] = differing(pa.array(old, kind), pa.array(new, kind), is_set=is_set).tolist()
    return found


def test_rows_meet_by_key_and_each_change_is_counted() -> None:
    a = table(("ants", 0, 1, [1, 2]), ("ants", 1, 1, [1]), ("bees", 0, 2, None), ("gone", 0, 1, []))
    b = table(("new", 7, 1, []), ("bees", 0, None, []), ("ants", 1, 1, [1]), ("ants", 0, 2, [2, 1]))

    found = matched(a, b, ("topic", "partition"), ("leader", "isr"), {"isr"}, limit=9)

    assert (found["rows_a"], found["rows_b"]) == (4, 4)
    assert found["counts"] == {"only_a": 1, "only_b": 1, "changed": 2}
    assert found["by_field"] == {"leader": 2, "isr": 1}
    assert found["first"] == [
        {
            "key": {"topic": "ants", "partition": 0},
            "change": "changed",
            "changed": [{"field": "leader", "old": "1", "new": "2"}],
        },
        {
            "key": {"topic": "bees", "partition": 0},
            "change": "changed",
            "changed": [{"field": "leader", "old": "2", "new": None}, {"field": "isr", "old": None, "new": "[]"}],
        },
        {"key": {"topic": "gone", "partition": 0}, "change": "only_a", "changed": []},
        {"key": {"topic": "new", "partition": 7}, "change": "only_b", "changed": []},
    ]


def test_so_many_are_told_and_all_are_counted() -> None:
    """Those that come first by key."""
    a = table(*(("t", number, 1, [1]) for number in (5, 3, 4, 1, 2)))

    found = matched(a, table(), ("topic", "partition"), ("leader",), (), limit=2)

    assert found["counts"]["only_a"] == 5
    assert [row["key"]["partition"] for row in found["first"]] == [1, 2]
    assert matched(a, a, ("topic", "partition"), (), (), limit=2)["first"] == []


@pytest.mark.parametrize(
    ("kind", "old", "new", "expected"),
    [
        (pa.int32(), [1, 1, None, None], [1, 2, 1, None], [False, True, True, False]),
        (pa.string(), ["a", "a", None], ["a", "", ""], [False, True, True]),
        (pa.bool_(), [True, True, None], [True, False, False], [False, True, True]),
        (INTS, [[1, 2], [1, 2], [], None, None, [1]], [[1, 2], [2, 1], None, [], None, [1, 1]],
         [False, True, True, True, False, True]),
        (pa.list_(pa.string()), [["a", None], ["a"], ["b"]], [["a", None], [None], ["b"]], [False, True, False]),
        (PAIRS, [[{"name": "x", "version": 1}], [{"name": "x", "version": 1}]],
         [[{"name": "x", "version": 2}], [{"name": "x", "version": 1}]], [True, False]),
    ],
)  # fmt: skip
def test_values_differ_where_they_are_not_the_same(
    kind: pa.DataType, old: list[Any], new: list[Any], expected: list[bool]
) -> None:
    assert unlike(kind, old, new) == expected
    assert unlike(kind, new, old) == expected


def test_order_of_a_set_means_nothing() -> None:
    """How often something is in it does."""
    assert unlike(INTS, [[3, 1], [1, 1, 2], [9]], [[1, 3], [1, 2, 2], [9]], is_set=True) == [False, True, False]
    sides = ([{"name": "b", "version": 1}, {"name": "a", "version": 2}], [{"name": "a", "version": 2}])
    assert unlike(PAIRS, [sides[0]], [[*reversed(sides[0])]], is_set=True) == [False]
    assert unlike(PAIRS, [sides[0]], [sides[1]], is_set=True) == [True]


def test_slices_of_tables_are_compared_by_their_own_rows() -> None:
    old, new = pa.array([[9], [1, 2], [3]], INTS), pa.array([[1, 2], [4]], INTS)

    assert differing(old.slice(1), new, is_set=False).tolist() == [False, True]


def test_values_are_told_as_spark_writes_them() -> None:
    assert text([1, None, -2]) == "[1, null, -2]"
    assert text([{"name": "x", "version": None}, {"name": "y", "version": 2}]) == "[{x, null}, {y, 2}]"
    assert list(map(text, (True, False, 7, "a b"))) == ["true", "false", "7", "a b"]


def test_sets_are_told_in_order() -> None:
    a, b = table(("t", 0, 1, [3, 2, 10])), table(("t", 0, 1, [2]))

    (row,) = matched(a, b, ("topic",), ("isr",), {"isr"}, limit=1)["first"]

    assert row["changed"] == [{"field": "isr", "old": "[2, 3, 10]", "new": "[2]"}]
