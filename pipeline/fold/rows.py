"""The mass records of a task as columns: rows of one shape together, each with its offset."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from quorate.metadata_log.batches.runs import ByteColumn, PartitionRun, Run
from quorate.metadata_log.records.records import (
    NO_LEADER_CHANGE,
    NO_RECOVERY_CHANGE,
    PartitionChangeRecord,
    PartitionRecord,
)
from quorate.pipeline.fold.fields import (
    ALL_FIELDS,
    BASE,
    BIT,
    DIRECTORIES,
    ID_LISTS,
    KEEPS_DIRECTORIES,
    LISTS,
    AnyColumn,
    Bools,
    Flags,
    Ints,
    Longs,
    list_type,
    uuid_array,
)

MassRecord = PartitionRecord | PartitionChangeRecord

#: Whether it is a declaration; for each list field its length, None where it is absent; whether leader and recovery
#: state are there. Rows of one shape are one table.
_Shape = tuple[bool, tuple[int | None, ...], bool, bool]

_SCALARS: Final = ("leader", "leader_recovery_state", "leader_epoch", "partition_epoch")


@dataclass(slots=True)
class _RowPart:
    """Some rows of one shape: columns by name, as runs have them."""

    offsets: Longs
    columns: dict[str, AnyColumn]


class MassRows:
    """Gathers the mass records of a task. They may come in any order."""

    def __init__(self) -> None:
        self._parts: dict[_Shape, list[_RowPart]] = {}
        self._singles: dict[_Shape, list[tuple[int, MassRecord]]] = {}

    def add_run(self, offsets: Longs, run: Run) -> None:
        """A run, and the offset of each of its rows."""
        columns = dict(run.columns())
        shape = (
            isinstance(run, PartitionRun),
            tuple(columns[name].shape[1] if name in columns else None for name in LISTS),
            "leader" in columns,
            "leader_recovery_state" in columns,
        )
        self._parts.setdefault(shape, []).append(_RowPart(offsets, columns))

    def add_record(self, offset: int, record: MassRecord) -> None:
        """One record that is not in a run."""
        is_base = isinstance(record, PartitionRecord)
        lengths = tuple(None if (ids := getattr(record, name)) is None else len(ids) for name in LISTS)
        has_leader = is_base or record.leader != NO_LEADER_CHANGE
        has_recovery = is_base or record.leader_recovery_state != NO_RECOVERY_CHANGE
        self._singles.setdefault((is_base, lengths, has_leader, has_recovery), []).append((offset, record))

    def close(self) -> RowTable:
        """All rows added; the gatherer is empty afterwards."""
        for shape, singles in self._singles.items():
            self._parts.setdefault(shape, []).append(_part_of(shape, singles))
        tables = [_joined(shape, parts) for shape, parts in self._parts.items()]
        self._parts, self._singles = {}, {}
        return RowTable(tables)


def _part_of(shape: _Shape, singles: Sequence[tuple[int, MassRecord]]) -> _RowPart:
    is_base, lengths, has_leader, has_recovery = shape
    records = [record for _, record in singles]
    count = len(records)
    columns: dict[str, AnyColumn] = {
        "topic_ids": _bytes_column([record.topic_id for record in records]),
        "partition_ids": _ints(records, "partition_id"),
    }
    for name, length in zip(LISTS, lengths, strict=True):
        if length is None:
            continue
        values = [getattr(record, name) for record in records]
        if name == DIRECTORIES:
            flat = _bytes_column([uuid for row in values for uuid in row])
            columns[name] = flat.reshape(count, length, 16)
        else:
            columns[name] = np.array(values, np.int32).reshape(count, length)
    present = {"leader": has_leader, "leader_recovery_state": has_recovery}
    for name in _SCALARS:
        if present.get(name, is_base):
            columns[name] = _ints(records, name)
    return _RowPart(np.array([offset for offset, _ in singles], np.int64), columns)


def _bytes_column(uuids: Sequence[bytes]) -> ByteColumn:
    return np.frombuffer(b"".join(uuids), np.uint8).reshape(-1, 16)


def _ints(records: Sequence[MassRecord], name: str) -> Ints:
    return np.array([getattr(record, name) for record in records], np.int32)


@dataclass(frozen=True, slots=True)
class ShapeTable:
    """Rows of one shape."""

    is_base: bool
    offsets: Longs
    columns: dict[str, AnyColumn]

    def __len__(self) -> int:
        return len(self.offsets)


def _joined(shape: _Shape, parts: list[_RowPart]) -> ShapeTable:
    if len(parts) == 1:
        return ShapeTable(shape[0], parts[0].offsets, parts[0].columns)
    columns = {name: np.concatenate([part.columns[name] for part in parts]) for name in parts[0].columns}
    return ShapeTable(shape[0], np.concatenate([part.offsets for part in parts]), columns)


class RowTable:
    """The rows of a task, numbered over all shapes. The columns of all rows are made when they are asked for."""

    def __init__(self, tables: list[ShapeTable]) -> None:
        self.tables = tables
        self.count = sum(map(len, tables))

    def __len__(self) -> int:
        return self.count

    def where(self, counts: Callable[[Longs], Bools]) -> RowTable:
        """Only the rows whose offsets count."""
        return RowTable([_filtered(table, counts(table.offsets)) for table in self.tables])

    def offsets(self) -> Longs:
        """int64[n]"""
        return _concatenated([table.offsets for table in self.tables], np.empty(0, np.int64))

    def topic_ids(self) -> ByteColumn:
        """uint8[n, 16]"""
        return _concatenated([table.columns["topic_ids"] for table in self.tables], np.empty((0, 16), np.uint8))

    def scalars(self, name: str) -> Ints:
        """int32[n] of a field that is no list; 0 in rows that do not have it."""
        columns: list[AnyColumn] = [
            table.columns.get(name, np.zeros(len(table), np.int32)).astype(np.int32, copy=False)
            for table in self.tables
        ]
        return _concatenated(columns, np.empty(0, np.int32))

    def flags(self) -> Flags:
        """uint16[n]: what each row sets."""
        return _concatenated([_flags_of(table) for table in self.tables], np.empty(0, np.uint16))

    def lists(self, name: str) -> pa.Array:
        """A list field of all rows; empty in rows that do not have it."""
        return pa.concat_arrays([_list_column(table, name) for table in self.tables] or [pa.array([], list_type(name))])


def _filtered(table: ShapeTable, counts: Bools) -> ShapeTable:
    if counts.all():
        return table
    return ShapeTable(
        table.is_base, table.offsets[counts], {name: column[counts] for name, column in table.columns.items()}
    )


def _concatenated(columns: list[AnyColumn], empty: AnyColumn) -> AnyColumn:
    if len(columns) == 1:
        return columns[0]
    return np.concatenate(columns) if columns else empty


def _flags_of(table: ShapeTable) -> Flags:
    if table.is_base:
        return np.full(len(table), ALL_FIELDS | BASE, np.uint16)
    columns = table.columns
    common = sum(BIT[name] for name in ID_LISTS if name in columns)
    # An empty list of directories says nothing, as an absent one does.
    names_directories = DIRECTORIES in columns and columns[DIRECTORIES].shape[1] > 0
    if names_directories:
        common |= BIT[DIRECTORIES]
    elif "replicas" in columns:
        common |= KEEPS_DIRECTORIES
    flags = np.full(len(table), common, np.uint16)
    for name, unchanged in (("leader", NO_LEADER_CHANGE), ("leader_recovery_state", NO_RECOVERY_CHANGE)):
        if name in columns:
            flags |= np.where(columns[name] != unchanged, np.uint16(BIT[name]), np.uint16(0))
    return flags


def _list_column(table: ShapeTable, name: str) -> pa.Array:
    count = len(table)
    column: Any = table.columns.get(name)
    length = 0 if column is None else column.shape[1]
    offsets = pa.array(np.arange(count + 1, dtype=np.int32) * np.int32(length))
    if name == DIRECTORIES:
        flat = np.empty((0, 16), np.uint8) if column is None else column.reshape(-1, 16)
        return pa.ListArray.from_arrays(offsets, uuid_array(flat))
    values = np.empty(0, np.int32) if column is None else np.ascontiguousarray(column).reshape(-1)
    return pa.ListArray.from_arrays(offsets, pa.array(values, pa.int32()))
