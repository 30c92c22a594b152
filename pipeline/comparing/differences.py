"""The differences of two states' tables, by one step of Spark for all of them, which only moves bytes.

Workers read files, and share the rows that count out by key. The rows of a key of both sides meet in one worker, which
compares them; what it tells is counts, and the first of what differs.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self
from zlib import crc32

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession
from pyspark.sql.functions import col

from quorate.pipeline.comparing.kinds import CONFIGS, KINDS, Kind, fields_of, key_of
from quorate.pipeline.comparing.matching import CHANGED, CHANGES, matched
from quorate.pipeline.comparing.report import Differences
from quorate.pipeline.comparing.rows import Rows, all_bytes
from quorate.pipeline.comparing.secrets import Secrets
from quorate.pipeline.fold.fields import Longs
from quorate.pipeline.fold.table_cells import from_bytes, shared_out, to_bytes

#: Bytes of Parquet that are compared at once: some million rows, which take a worker a few hundred MB.
_PLACE_BYTES: Final = 16 * 1024 * 1024
#: Bytes of Parquet that one task reads.
_TASK_BYTES: Final = 8 * 1024 * 1024
#: Between the parts of a key: in no name.
_SEPARATOR: Final = "\0"

_CELLS: Final = "place int, kind int, side int, data binary"
_CELL_SCHEMA: Final = pa.schema(
    [("place", pa.int32()), ("kind", pa.int32()), ("side", pa.int32()), ("data", pa.binary())]
)
_RESULT: Final = "kind int, found string"
_RESULT_SCHEMA: Final = pa.schema([("kind", pa.int32()), ("found", pa.string())])


@dataclass(frozen=True, slots=True)
class _Compared:
    """One kind, and how its rows are compared. Travels to the workers."""

    kind: Kind
    sides: tuple[Rows, Rows]
    key: tuple[str, ...]
    fields: tuple[str, ...]
    #: Of configs.
    secrets: Secrets | None

    @classmethod
    def of(cls, kind: Kind, a: Rows, b: Rows, *, match_ids: bool, same_cluster: bool, secrets: Secrets) -> Self:
        key = key_of(kind, match_ids=match_ids)
        columns = [column for column in a.columns if column in b.columns]
        fields = fields_of(kind, columns, match_ids=match_ids, same_cluster=same_cluster)
        return cls(kind, (a, b), key, tuple(fields), secrets if kind.name == CONFIGS else None)

    @property
    def columns(self) -> list[str]:
        return [*self.key, *self.fields]

    def matched(self, cells: Mapping[int, list[pa.Table]], limit: int) -> dict[str, Any]:
        """Compare the rows of one place, by side."""
        schema = next(tables[0].schema for tables in cells.values())
        a, b = (pa.concat_tables([schema.empty_table(), *cells.get(side, ())]) for side in (0, 1))
        return matched(a, b, self.key, self.fields, self.kind.sets, limit)


def differences(
    spark: SparkSession,
    a: Mapping[str, Rows],
    b: Mapping[str, Rows],
    *,
    match_ids: bool,
    same_cluster: bool,
    limit: int,
    secrets: Secrets,
) -> list[Differences]:
    """Compare the tables of two states, by the name of their kind.

    Args:
        limit: so many differing rows of each kind are told one by one.
    """
    compared = [
        _Compared.of(kind, a[kind.name], b[kind.name], match_ids=match_ids, same_cluster=same_cluster, secrets=secrets)
        for kind in KINDS
    ]
    found = _found(spark, compared, limit)
    return [_added_up(one, found.get(number, []), limit) for number, one in enumerate(compared)]


def _added_up(compared: _Compared, parts: Sequence[Mapping[str, Any]], limit: int) -> Differences:
    told = compared.secrets.told if compared.secrets is not None else dict
    first = sorted((row for part in parts for row in part["first"]), key=lambda row: _order(row["key"].values()))
    by_field = {name: sum(part["by_field"][name] for part in parts) for name in sorted(compared.fields)}
    return Differences(
        compared.kind.name,
        sum(part["rows_a"] for part in parts),
        sum(part["rows_b"] for part in parts),
        compared.fields,
        {change: sum(part["counts"][change] for part in parts) for change in CHANGES},
        {name: count for name, count in by_field.items() if count},
        [told(line) for row in first[:limit] for line in _lines(row)],
    )


def _order(key: Iterable[Any]) -> list[tuple[bool, Any]]:
    return [(value is None, value) for value in key]


def _lines(row: Mapping[str, Any]) -> list[dict[str, Any]]:
    where, change = row["key"], row["change"]
    if change != CHANGED:
        return [{"key": where, "change": change, "field": None, "old": None, "new": None}]
    return [{"key": where, "change": change, **one} for one in row["changed"]]


# --- in the workers ----------------------------------------------------------------------------------


def _found(spark: SparkSession, compared: Sequence[_Compared], limit: int) -> dict[int, list[Any]]:
    """The results of the places, by the kind's number."""
    places = max(1, -(-all_bytes(rows for one in compared for rows in one.sides) // _PLACE_BYTES))
    tasks = _tasks(compared)

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                for kind, side, rows in tasks[number]:
                    yield _read(kind, side, rows, compared[kind], places)

    def match(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        cells: dict[int, dict[int, list[pa.Table]]] = {}
        for batch in batches:
            for cell in batch.to_pylist():
                cells.setdefault(cell["kind"], {}).setdefault(cell["side"], []).append(from_bytes(cell["data"]))
        rows = [
            {"kind": kind, "found": json.dumps(compared[kind].matched(cells.pop(kind), limit))} for kind in list(cells)
        ]
        yield pa.RecordBatch.from_pylist(rows, _RESULT_SCHEMA)

    # A number a partition: the tasks themselves travel with the function.
    cells = spark.range(0, len(tasks), 1, max(1, len(tasks))).mapInArrow(read, _CELLS)
    found: dict[int, list[Any]] = {}
    for row in cells.repartitionById(places, col("place")).mapInArrow(match, _RESULT).collect():
        found.setdefault(row["kind"], []).append(json.loads(row["found"]))
    return found


def _tasks(compared: Sequence[_Compared]) -> list[list[tuple[int, int, Rows]]]:
    """The tasks: rows of a kind, of a side, so many files; small tables share one."""
    tasks: list[list[tuple[int, int, Rows]]] = []
    room = 0
    for kind, one in enumerate(compared):
        for side, rows in enumerate(one.sides):
            for part in rows.parts(_TASK_BYTES):
                if room <= 0:
                    tasks.append([])
                    room = _TASK_BYTES
                tasks[-1].append((kind, side, part))
                room -= sum(part.sizes)
    return tasks


def _read(kind: int, side: int, rows: Rows, compared: _Compared, places: int) -> pa.RecordBatch:
    table = rows.read(compared.columns)
    if compared.secrets is not None:
        table = compared.secrets.hidden(table)
    cells = [to_bytes(table)] if places == 1 else shared_out(table, _places(table, compared.key, places), places)
    columns = [
        pa.array(range(places), pa.int32()),
        pa.array([kind] * places, pa.int32()),
        pa.array([side] * places, pa.int32()),
        pa.array(cells, pa.binary()),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=_CELL_SCHEMA)


def _places(table: pa.Table, key: Sequence[str], places: int) -> Longs:
    """The place at which a row's key is compared: the same for one key, whoever reads it."""
    parts = [table[name].cast(pa.string()).fill_null("") for name in key]
    keys = pc.binary_join_element_wise(*parts, _SEPARATOR).to_pylist()
    return np.array([crc32(one.encode()) % places for one in keys], np.int64)
