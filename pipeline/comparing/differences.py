"""The differences of two tables, by one join, and how many there are of each sort."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from pipeline.comparing.kinds import Kind, fields_of, key_of
from pipeline.comparing.report import Differences

ONLY_A: Final = "only_a"
ONLY_B: Final = "only_b"
CHANGED: Final = "changed"
CHANGES: Final = (ONLY_A, ONLY_B, CHANGED)
SAME: Final = "same"

_FIELDS: Final = "array<struct<field:string,old:string,new:string>>"


def differences(
    kind: Kind, a: DataFrame, b: DataFrame, *, match_ids: bool, same_cluster: bool, limit: int
) -> Differences:
    """Compare two tables of one kind.

    Args:
        limit: so many differing rows are told one by one.
    """
    key = key_of(kind, match_ids=match_ids)
    columns = [column for column in a.columns if column in b.columns]
    fields = fields_of(kind, columns, match_ids=match_ids, same_cluster=same_cluster)
    table = beside(kind, a, b, key, fields)
    is_change = [sf.count_if(sf.col("change") == change).alias(change) for change in CHANGES]
    is_field = [sf.count_if(sf.array_contains("fields.field", name)).alias(f"field {name}") for name in fields]
    (counts,) = table.agg(sf.count("*").alias("rows"), *is_change, *is_field).collect()
    total = sum(counts[change] for change in CHANGES)
    differing = table.where(sf.col("change") != SAME).orderBy(*key).limit(limit)
    first = [row.asDict(recursive=True) for row in differing.collect()] if total else []
    by_field = {name: counts[f"field {name}"] for name in sorted(fields)}
    return Differences(
        kind.name,
        counts["rows"] - counts[ONLY_B],
        counts["rows"] - counts[ONLY_A],
        tuple(fields),
        {change: counts[change] for change in CHANGES},
        {name: count for name, count in by_field.items() if count},
        [line for row in first for line in _lines(row, key)],
    )


def beside(kind: Kind, a: DataFrame, b: DataFrame, key: Sequence[str], fields: Sequence[str]) -> DataFrame:
    """All rows of both: the key, ``change``, and of changed ones ``fields``, a list of field, old and new as text."""
    sides = [
        side.select(*key, sf.lit(True).alias(f"is_in_{name}"), sf.struct(sf.lit(0), *map(sf.col, fields)).alias(name))
        for name, side in (("a", a), ("b", b))
    ]
    joined = sides[0].join(sides[1], list(key), "full_outer")
    changed = sf.array_compact(sf.array(*[_field(name, name in kind.sets) for name in fields]))
    found = joined.withColumn("fields", changed.cast(_FIELDS))
    change = (
        sf.when(sf.col("is_in_b").isNull(), ONLY_A)
        .when(sf.col("is_in_a").isNull(), ONLY_B)
        .when(sf.size("fields") > 0, CHANGED)
        .otherwise(SAME)
    )
    return found.select(*key, change.alias("change"), sf.when(change == CHANGED, sf.col("fields")).alias("fields"))


def _field(name: str, is_set: bool) -> Column:
    old, new = (sf.col(f"{side}.{name}") for side in ("a", "b"))
    if is_set:
        old, new = sf.array_sort(old), sf.array_sort(new)
    shown = sf.struct(sf.lit(name).alias("field"), old.cast("string").alias("old"), new.cast("string").alias("new"))
    return sf.when(~old.eqNullSafe(new), shown)


def _lines(row: dict[str, Any], key: Sequence[str]) -> list[dict[str, Any]]:
    where = {name: row[name] for name in key}
    if row["change"] != CHANGED:
        return [{"key": where, "change": row["change"], "field": None, "old": None, "new": None}]
    return [{"key": where, "change": CHANGED, **one} for one in row["fields"]]
