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
    table = differing(kind, a, b, key, fields).persist()
    try:
        by_change = {row["change"]: row["count"] for row in table.groupBy("change").count().collect()}
        by_field = {
            row["field"]: row["count"]
            for row in table.select(sf.explode("fields.field").alias("field")).groupBy("field").count().collect()
        }
        first = [row.asDict(recursive=True) for row in table.orderBy(*key).limit(limit).collect()]
    finally:
        table.unpersist()
    counts = {change: by_change.get(change, 0) for change in (ONLY_A, ONLY_B, CHANGED)}
    return Differences(
        kind.name,
        a.count(),
        b.count(),
        tuple(fields),
        counts,
        dict(sorted(by_field.items())),
        [line for row in first for line in _lines(row, key)],
    )


def differing(kind: Kind, a: DataFrame, b: DataFrame, key: Sequence[str], fields: Sequence[str]) -> DataFrame:
    """The rows that differ: the key, ``change`` and ``fields``, a list of field, old and new value as text."""
    sides = [
        side.select(*key, sf.lit(True).alias("is_there"), sf.struct(sf.lit(0), *map(sf.col, fields)).alias("row"))
        for side in (a, b)
    ]
    joined = sides[0].alias("a").join(sides[1].alias("b"), list(key), "full_outer")
    changed = (
        sf.array_compact(sf.array(*[_field(name, name in kind.sets) for name in fields])) if fields else sf.array()
    )
    change = (
        sf.when(sf.col("b.is_there").isNull(), ONLY_A).when(sf.col("a.is_there").isNull(), ONLY_B).otherwise(CHANGED)
    )
    found = joined.select(*key, change.alias("change"), changed.alias("fields"))
    none = sf.col("change") != CHANGED
    return found.where(none | (sf.size("fields") > 0)).withColumn(
        "fields", sf.when(~none, sf.col("fields")).otherwise(sf.slice("fields", 1, 0))
    )


def _field(name: str, is_set: bool) -> Column:
    old, new = (sf.col(f"{side}.row.{name}") for side in ("a", "b"))
    if is_set:
        old, new = sf.array_sort(old), sf.array_sort(new)
    shown = sf.struct(sf.lit(name).alias("field"), old.cast("string").alias("old"), new.cast("string").alias("new"))
    return sf.when(~old.eqNullSafe(new), shown)


def _lines(row: dict[str, Any], key: Sequence[str]) -> list[dict[str, Any]]:
    where = {name: row[name] for name in key}
    if row["change"] != CHANGED:
        return [{"key": where, "change": row["change"], "field": None, "old": None, "new": None}]
    return [{"key": where, "change": CHANGED, **one} for one in row["fields"]]
