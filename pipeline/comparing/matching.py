"""Two tables of one kind, row beside row: which are on one side only, which differ, and in what. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from quorate.pipeline.fold.fields import Bools, Longs

ONLY_A: Final = "only_a"
ONLY_B: Final = "only_b"
CHANGED: Final = "changed"
CHANGES: Final = (ONLY_A, ONLY_B, CHANGED)

#: Names of the columns of a match: the row of either side, null where there is none; the number of a pair among pairs.
_ROW_A: Final = "row of a"
_ROW_B: Final = "row of b"
_PAIR: Final = "pair"


def matched(
    a: pa.Table, b: pa.Table, key: Sequence[str], fields: Sequence[str], sets: Collection[str], limit: int
) -> dict[str, Any]:
    """Compare two tables that have these columns.

    Args:
        key: a row's name; rows without one are alike to none. sets: list columns whose order means nothing.
        limit: so many differing rows are told.

    Returns:
        ``rows_a`` and ``rows_b``, ``counts`` by change, ``by_field``, and ``first``: differing rows by key, each with
        its ``key``, its ``change`` and what is ``changed``: field, old and new as texts.
    """
    keys = [table.select(list(key)) for table in (a, b)]
    keys = [
        one.append_column(name, pa.array(np.arange(len(one)), pa.int64()))
        for one, name in zip(keys, (_ROW_A, _ROW_B), strict=True)
    ]
    pairs = keys[0].join(keys[1], list(key), join_type="full outer", use_threads=False).combine_chunks()
    row_a, row_b = pairs[_ROW_A].combine_chunks(), pairs[_ROW_B].combine_chunks()
    is_pair = pc.and_(row_a.is_valid(), row_b.is_valid()).to_numpy(zero_copy_only=False)
    at_a, at_b = row_a.filter(pa.array(is_pair)), row_b.filter(pa.array(is_pair))
    differ = {
        name: differing(_flat(a[name].take(at_a)), _flat(b[name].take(at_b)), is_set=name in sets) for name in fields
    }
    is_told = ~is_pair
    is_told[is_pair] = np.logical_or.reduce(list(differ.values())) if differ else False
    told = pairs.append_column(_PAIR, pa.array(np.cumsum(is_pair) - 1)).filter(pa.array(is_told))
    told = told.sort_by([(name, "ascending") for name in key]).slice(0, limit)
    return {
        "rows_a": len(a),
        "rows_b": len(b),
        "counts": {
            ONLY_A: row_b.null_count,
            ONLY_B: row_a.null_count,
            CHANGED: int(np.count_nonzero(is_told & is_pair)),
        },
        "by_field": {name: int(np.count_nonzero(found)) for name, found in differ.items()},
        "first": [_told(row, a, b, key, differ, sets) for row in told.to_pylist()],
    }


def _flat(column: pa.ChunkedArray) -> pa.Array:
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)


# --- what differs ------------------------------------------------------------------------------------


def differing(old: pa.Array, new: pa.Array, *, is_set: bool) -> Bools:
    """For each row whether its two values differ; two nulls do not."""
    if pa.types.is_list(old.type):
        return _lists_differ(old, new, is_set=is_set)
    unlike = pc.fill_null(pc.not_equal(old, new), False)
    found: Bools = pc.or_(unlike, pc.xor(old.is_null(), new.is_null())).to_numpy(zero_copy_only=False)
    return found


def _lists_differ(old: pa.Array, new: pa.Array, *, is_set: bool) -> Bools:
    lengths = [_lengths(side) for side in (old, new)]
    codes = _codes(old.flatten(), new.flatten())
    if is_set:
        codes = [_sorted_within(values, count) for values, count in zip(codes, lengths, strict=True)]
    found: Bools = lengths[0] != lengths[1]
    rows = np.flatnonzero(~found & (lengths[0] > 0))
    count = lengths[0][rows]
    # Elements of those rows, one after another, on either side.
    within = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
    at = [np.repeat(_starts(one)[rows], count) + within for one in lengths]
    unlike = codes[0][at[0]] != codes[1][at[1]]
    found[np.repeat(rows, count)[unlike]] = True
    return found


def _lengths(lists: pa.Array) -> Longs:
    """Of each list; of none -1, so that it is not like an empty one."""
    found: Longs = pc.fill_null(lists.value_lengths(), -1).to_numpy().astype(np.int64)
    return found


def _starts(lengths: Longs) -> Longs:
    held = np.maximum(lengths, 0)
    found: Longs = np.cumsum(held) - held
    return found


def _codes(old: pa.Array, new: pa.Array) -> list[Longs]:
    """A number for each value, equal for equal ones of both sides."""
    both = pa.concat_arrays([old, new.cast(old.type)])
    if pa.types.is_struct(both.type):
        both = pa.array([text(value) for value in both.to_pylist()], pa.string())
    numbers = both.dictionary_encode("encode").indices.to_numpy().astype(np.int64)
    return [numbers[: len(old)], numbers[len(old) :]]


def _sorted_within(values: Longs, lengths: Longs) -> Longs:
    held = np.maximum(lengths, 0)
    found: Longs = values[np.lexsort((values, np.repeat(np.arange(len(held)), held)))]
    return found


# --- how it is told ----------------------------------------------------------------------------------


def _told(
    row: dict[str, Any],
    a: pa.Table,
    b: pa.Table,
    key: Sequence[str],
    differ: Mapping[str, Bools],
    sets: Collection[str],
) -> dict[str, Any]:
    """One row of the match."""
    found: dict[str, Any] = {"key": {name: row[name] for name in key}, "change": CHANGED, "changed": []}
    if row[_ROW_B] is None:
        return {**found, "change": ONLY_A}
    if row[_ROW_A] is None:
        return {**found, "change": ONLY_B}
    found["changed"] = [
        {"field": name, **_old_and_new(a, b, row, name, is_set=name in sets)}
        for name, of_pairs in differ.items()
        if of_pairs[row[_PAIR]]
    ]
    return found


def _old_and_new(a: pa.Table, b: pa.Table, row: dict[str, Any], name: str, *, is_set: bool) -> dict[str, str | None]:
    old, new = a[name][row[_ROW_A]].as_py(), b[name][row[_ROW_B]].as_py()
    if is_set:
        old, new = (None if value is None else sorted(value, key=_order) for value in (old, new))
    return {side: None if value is None else text(value) for side, value in (("old", old), ("new", new))}


def _order(value: Any) -> tuple[bool, Any]:
    """Nulls last."""
    return value is None, tuple(map(_order, value.values())) if isinstance(value, dict) else value


def text(value: Any) -> str:
    """A value as Spark SQL writes it: ``[1, 2]``, ``{a, b}``, ``true``, ``null``."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return f"[{', '.join(map(text, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(map(text, value.values()))}}}"
    return str(value)
