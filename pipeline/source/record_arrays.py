"""Records as Arrow structs: mass records column by column, the others by way of Python values.

Both give an array in an order of their own; who wants rows takes from it (``RecordStructs.rows``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from quorate.metadata_log.batches.run_layout import RUN_CLASSES
from quorate.metadata_log.batches.runs import Run
from quorate.metadata_log.ids import uuid_text
from quorate.metadata_log.records.records import Record
from quorate.metadata_log.records.schema import SCHEMA_OF_CLASS, Field, StructSchema
from quorate.pipeline.files.walk import Offsets, PlacedRecord, PlacedRun
from quorate.pipeline.source.schema import UNCHANGED, RecordColumn
from quorate.pipeline.tables.uuid_column import uuid_texts

#: The run's names of two fields.
_RUN_NAMES: Final = {"partition_id": "partition_ids", "topic_id": "topic_ids"}
_ABSENT: Final = -1


class RecordStructs:
    """The records of a chunk, to be taken as struct columns."""

    def __init__(
        self, runs: Sequence[PlacedRun], records: Sequence[PlacedRecord], first_offset: int, count: int
    ) -> None:
        self._runs = runs
        self._first_offset = first_offset
        self._count = count
        self._by_class: dict[type[Record], list[PlacedRecord]] = {}
        for one in records:
            self._by_class.setdefault(type(one.record), []).append(one)

    def rows(self, column: RecordColumn, kept: Offsets | None) -> pa.StructArray:
        """The column for every record of the chunk, or for the rows ``kept``: null where a row is of another type."""
        pieces: list[pa.StructArray] = []
        offsets: list[npt.NDArray[np.int64]] = []
        if not column.record.is_control and column.record.type_id in RUN_CLASSES:
            runs = [one for one in self._runs if column.record.type_id == one.run.TYPE_ID]
            if runs:
                pieces.append(_mass_structs(column, [one.run for one in runs]))
                offsets += [one.offsets for one in runs]
        single = self._by_class.get(column.record.struct.cls)
        if single:
            pieces.append(_structs(column, [one.record for one in single]))
            offsets.append(np.array([one.offset for one in single], np.int64))
        count = self._count if kept is None else len(kept)
        if not pieces:
            return pa.nulls(count, column.type)
        indices = np.full(self._count, _ABSENT, np.int64)
        rows = np.concatenate(offsets) - self._first_offset
        indices[rows] = np.arange(len(rows))
        if kept is not None:
            indices = indices[kept]
        structs = pieces[0] if len(pieces) == 1 else pa.concat_arrays(pieces)
        return structs.take(pa.array(indices, mask=indices == _ABSENT))


# --- one by one --------------------------------------------------------------------------------------


def _structs(column: RecordColumn, records: Sequence[Record]) -> pa.StructArray:
    schema = SCHEMA_OF_CLASS[column.record.struct.cls]
    arrays = []
    for field in schema.struct.fields:
        convert = _converter(field)
        unchanged = UNCHANGED.get((schema.name, field.name), _NOTHING)
        values = [getattr(record, field.name) for record in records]
        values = [None if value is None or value == unchanged else convert(value) for value in values]
        arrays.append(pa.array(values, column.type.field(field.name).type))
    return pa.StructArray.from_arrays(arrays, fields=list(column.type))


#: Equal to no field's value.
_NOTHING: Final = object()


def _converter(field: Field) -> Callable[[Any], Any]:
    element: Callable[[Any], Any] | None = None
    if field.struct is not None:
        element = _struct_converter(field.struct)
    elif field.element_type == "uuid":
        element = uuid_text
    if not field.is_array:
        return element or _itself
    return list if element is None else lambda values: [element(value) for value in values]


def _struct_converter(struct: StructSchema) -> Callable[[Any], dict[str, Any]]:
    fields = [(field.name, _converter(field)) for field in struct.fields]

    def convert(value: Any) -> dict[str, Any]:
        items = ((name, one, getattr(value, name)) for name, one in fields)
        return {name: None if item is None else one(item) for name, one, item in items}

    return convert


def _itself(value: Any) -> Any:
    return value


# --- by columns --------------------------------------------------------------------------------------


def _mass_structs(column: RecordColumn, runs: Sequence[Run]) -> pa.StructArray:
    arrays = [_mass_array(column, field, runs) for field in column.record.struct.fields]
    return pa.StructArray.from_arrays(arrays, fields=list(column.type))


def _mass_array(column: RecordColumn, field: Field, runs: Sequence[Run]) -> pa.Array:
    name = _RUN_NAMES.get(field.name, field.name)
    columns = [getattr(run, name) for run in runs]
    counts = [len(run) for run in runs]
    if field.is_array:
        return _list_array(field, columns, counts)
    if field.element_type == "uuid":
        return uuid_texts(np.concatenate(columns))
    dtype = np.int8 if field.element_type == "int8" else np.int32
    values = np.concatenate(
        [
            np.full(count, field.default, dtype) if one is None else one
            for one, count in zip(columns, counts, strict=True)
        ]
    )
    unchanged = UNCHANGED.get((column.record.name, field.name))
    return pa.array(values, mask=None if unchanged is None else values == unchanged)


def _list_array(field: Field, columns: Sequence[npt.NDArray[Any] | None], counts: Sequence[int]) -> pa.ListArray:
    """Arrays of one field: a run's all have one length, and an absent column is the field's default, null or empty."""
    widths = [0 if one is None else one.shape[1] for one in columns]
    ends = np.zeros(sum(counts) + 1, np.int32)
    np.cumsum(np.repeat(widths, counts), out=ends[1:])
    present = [one for one in columns if one is not None and one.size]
    values: pa.Array
    if field.element_type == "uuid":
        flat = np.concatenate([one.reshape(-1, 16) for one in present]) if present else np.empty((0, 16), np.uint8)
        values = uuid_texts(flat)
    else:
        values = pa.array(np.concatenate([one.ravel() for one in present]) if present else np.empty(0, np.int32))
    mask = None
    if field.default is None and any(one is None for one in columns):
        mask = pa.array(np.repeat([one is None for one in columns], counts))
    element = pa.field("element", values.type)
    return pa.ListArray.from_arrays(pa.array(ends), values, type=pa.list_(element), mask=mask)
