"""The columns of a row: where a record lies, what it is, and one nullable struct for each type with fields.

Names and types follow ``metadata_log.records.schema``. Uuids are Kafka's 22 characters; what a record leaves unchanged
is null.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from quorate.metadata_log.records.schema import SCHEMAS, Field, RecordSchema, StructSchema

#: Columns of every row, in order.
BASE_COLUMNS: Final[dict[str, pa.DataType]] = {
    "cluster_id": pa.string(),
    "file": pa.string(),
    "kind": pa.string(),
    "offset": pa.int64(),
    "epoch": pa.int32(),
    "batch": pa.int64(),
    "position": pa.int64(),
    "time": pa.timestamp("us", tz="UTC"),
    "control": pa.bool_(),
    "type": pa.string(),
    "type_id": pa.int16(),
    "version": pa.int16(),
}

_ELEMENT_TYPES: Final[dict[str, pa.DataType]] = {
    "bool": pa.bool_(),
    "int8": pa.int8(),
    "int16": pa.int16(),
    "uint16": pa.int32(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "float64": pa.float64(),
    "string": pa.string(),
    "bytes": pa.binary(),
    "uuid": pa.string(),
}

#: What stands for "unchanged" in records that say what changes: (record, field) -> value.
UNCHANGED: Final = {
    ("PartitionChangeRecord", "leader"): -2,
    ("PartitionChangeRecord", "leader_recovery_state"): -1,
    ("BrokerRegistrationChangeRecord", "fenced"): 0,
    ("BrokerRegistrationChangeRecord", "in_controlled_shutdown"): 0,
    ("BrokerRegistrationChangeRecord", "log_dirs"): (),
}


@dataclass(frozen=True, slots=True, eq=False)
class RecordColumn:
    """The struct column of one record type."""

    name: str
    record: RecordSchema
    type: pa.StructType


def column_name(record: RecordSchema) -> str:
    """The record's name in snake case, without what all have in common."""
    name = record.name.removesuffix("Record").removesuffix("Message").replace("KRaft", "Kraft")
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


def _field_type(field: Field) -> pa.DataType:
    element = _struct_type(field.struct) if field.struct is not None else _ELEMENT_TYPES[field.element_type]
    # Spark's name for the elements of an array.
    return pa.list_(pa.field("element", element)) if field.is_array else element


def _struct_type(struct: StructSchema) -> pa.StructType:
    return pa.struct([pa.field(field.name, _field_type(field)) for field in struct.fields])


#: By column name. A type without fields has no column: ``type`` says all of it.
RECORD_COLUMNS: Final = {
    column_name(record): RecordColumn(column_name(record), record, _struct_type(record.struct))
    for record in SCHEMAS
    if record.struct.fields
}

COLUMN_TYPES: Final[dict[str, pa.DataType]] = {
    **BASE_COLUMNS,
    **{name: column.type for name, column in RECORD_COLUMNS.items()},
}

#: Of data records and of control records: names by type id.
DATA_TYPE_NAMES: Final = {record.type_id: record.name for record in SCHEMAS if not record.is_control}
CONTROL_TYPE_NAMES: Final = {record.type_id: record.name for record in SCHEMAS if record.is_control}
