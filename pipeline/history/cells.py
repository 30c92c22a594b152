"""Cells: the mass records of one task and one bucket, as bytes that travel between workers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple, get_args

import msgpack
import numpy as np

from quorate.metadata_log.records.codec import decode_control, decode_value_at, encode_control, encode_value
from quorate.metadata_log.records.records import ControlRecord, Record
from quorate.pipeline.fold.fields import Longs
from quorate.pipeline.fold.grouping import topic_hashes
from quorate.pipeline.fold.rows import RowTable, ShapeTable

#: Column of a cell with each record's time, milliseconds since 1970.
TIMES: Final = "times"


class RareRecord(NamedTuple):
    """A record that is no mass record, its place and its time."""

    offset: int
    #: Milliseconds since 1970.
    time: int
    record: Record
    version: int


def split_rows(rows: RowTable, buckets: int) -> list[list[ShapeTable]]:
    """The rows by bucket: those of one topic are in one."""
    found: list[list[ShapeTable]] = [[] for _ in range(buckets)]
    for table in rows.tables:
        numbers = (topic_hashes(table.columns["topic_ids"]) % np.uint64(buckets)).astype(np.int64)
        order = np.argsort(numbers, kind="stable")
        borders = np.searchsorted(numbers[order], np.arange(buckets + 1))
        for bucket in range(buckets):
            first, end = int(borders[bucket]), int(borders[bucket + 1])
            if end > first:
                found[bucket].append(_taken(table, order[first:end]))
    return found


def _taken(table: ShapeTable, rows: Longs) -> ShapeTable:
    return ShapeTable(
        table.is_base, table.offsets[rows], {name: column[rows] for name, column in table.columns.items()}
    )


def encode_tables(tables: Sequence[ShapeTable]) -> bytes:
    """Some tables as bytes."""
    packed: bytes = msgpack.packb(
        [
            [table.is_base, _packed(table.offsets), [[name, _packed(c)] for name, c in table.columns.items()]]
            for table in tables
        ]
    )
    return packed


def _packed(column: np.ndarray[Any, Any]) -> list[Any]:
    return [column.dtype.str, list(column.shape), np.ascontiguousarray(column).tobytes()]


def decode_tables(cells: Iterable[bytes]) -> RowTable:
    """The rows of some cells; those of one shape are one table."""
    shapes: dict[Any, list[ShapeTable]] = {}
    for cell in cells:
        for is_base, offsets, columns in msgpack.unpackb(cell, strict_map_key=False):
            table = ShapeTable(is_base, _unpacked(offsets), {name: _unpacked(column) for name, column in columns})
            shape = (is_base, tuple((name, column.shape[1:]) for name, column in table.columns.items()))
            shapes.setdefault(shape, []).append(table)
    return RowTable([_joined(tables) for tables in shapes.values()])


def _unpacked(column: list[Any]) -> np.ndarray[Any, Any]:
    kind, shape, data = column
    return np.frombuffer(data, kind).reshape(shape)


def _joined(tables: list[ShapeTable]) -> ShapeTable:
    if len(tables) == 1:
        return tables[0]
    columns = {name: np.concatenate([table.columns[name] for table in tables]) for name in tables[0].columns}
    return ShapeTable(tables[0].is_base, np.concatenate([table.offsets for table in tables]), columns)


def times_of(rows: RowTable) -> Longs:
    """The time of every row."""
    return np.concatenate([np.empty(0, np.int64), *(table.columns[TIMES] for table in rows.tables)])


def encode_rare(records: Iterable[RareRecord]) -> bytes:
    """Rare records as bytes."""
    rows = []
    for offset, time, record, version in records:
        if isinstance(record, get_args(ControlRecord)):
            key, value = encode_control(record, version)
            rows.append([offset, time, key, value])
        else:
            rows.append([offset, time, None, encode_value(record, version)])
    packed: bytes = msgpack.packb(rows)
    return packed


def decode_rare(cells: Iterable[bytes]) -> list[RareRecord]:
    """The rare records of some cells, by offset."""
    found = []
    for cell in cells:
        for offset, time, key, value in msgpack.unpackb(cell):
            decoded = decode_control(key, value) if key is not None else decode_value_at(value, 0, len(value))
            found.append(RareRecord(offset, time, decoded.record, decoded.version))
    found.sort(key=lambda rare: rare.offset)
    return found
