"""Hypothesis strategies shared by all tests; those for records are derived from the schema tables."""

from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np
from hypothesis import strategies as st

from quorate.metadata_log.batches.runs import BatchItem, PartitionChangeRun, PartitionRun, Run
from quorate.metadata_log.records.records import PartitionChangeRecord, PartitionRecord, Record, VersionedRecord
from quorate.metadata_log.records.schema import SCHEMA_OF_CLASS, SCHEMAS, Field, RecordSchema, StructSchema

#: Every record type with every version it has.
ALL_VERSIONS = [
    (schema, version) for schema in SCHEMAS for version in range(schema.versions.first, schema.versions.last + 1)
]
DATA_VERSIONS = [(schema, version) for schema, version in ALL_VERSIONS if not schema.is_control]

uuids = st.binary(min_size=16, max_size=16)


def _integers(bits: int) -> st.SearchStrategy[int]:
    return st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


_PRIMITIVES: Mapping[str, st.SearchStrategy[Any]] = {
    "int8": _integers(8),
    "int16": _integers(16),
    "uint16": st.integers(0, 65_535),
    "int32": _integers(32),
    "int64": _integers(64),
    "float64": st.floats(allow_nan=False),  # a NaN does not equal itself
    "bool": st.booleans(),
    # Around the lengths where a varint grows, too; lone surrogates have no UTF-8.
    "string": st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
    | st.sampled_from([126, 127, 128]).map(lambda size: "x" * size),
    "bytes": st.binary(max_size=20),
    "uuid": uuids,
}  # fmt: skip


def _element(field: Field, version: int) -> st.SearchStrategy[Any]:
    return structs(field.struct, version) if field.struct is not None else _PRIMITIVES[field.element_type]


def _values(field: Field, version: int) -> st.SearchStrategy[Any]:
    values = _element(field, version)
    if field.is_array:
        values = st.lists(values, max_size=4).map(tuple)
        if field.struct is None:
            # Long arrays: past the ready-made ones, and past one byte of length.
            values |= st.sampled_from([31, 32, 33, 127, 128]).flatmap(
                lambda size: _element(field, version).map(lambda element: (element,) * size)
            )
    if version in field.nullable:
        values = st.none() | values
    return st.just(field.default) | values if field.tag is not None else values


@cache
def structs(schema: StructSchema, version: int) -> st.SearchStrategy[Any]:
    """Objects of a struct's class that its version can carry."""
    present = {field.name: _values(field, version) for field in schema.fields if version in field.versions}
    return st.builds(schema.cls, **present)


def versioned_records_of(schema: RecordSchema, version: int) -> st.SearchStrategy[VersionedRecord]:
    """Records of one type in one version."""
    return structs(schema.struct, version).map(lambda record: VersionedRecord(record, version))


def versioned_records(versions: list[tuple[RecordSchema, int]] | None = None) -> st.SearchStrategy[VersionedRecord]:
    """Records of all types and versions, or of those given."""
    return st.sampled_from(versions or ALL_VERSIONS).flatmap(lambda each: versioned_records_of(*each))


def data_records() -> st.SearchStrategy[VersionedRecord]:
    """Records of all types that a data batch may hold."""
    return versioned_records(DATA_VERSIONS)


# --- mass records ------------------------------------------------------------------------------------

RUN_NAMES = {"partition_id": "partition_ids", "topic_id": "topic_ids"}
RUN_CLASSES: Mapping[type[Record], type[Run]] = {
    PartitionRecord: PartitionRun,
    PartitionChangeRecord: PartitionChangeRun,
}


def _length(field: Field) -> st.SearchStrategy[int | None]:
    """Elements of a field in a shape, 1 for one that is no array; None = absent."""
    lengths = st.integers(0, 4) | st.sampled_from([31, 32, 40]) if field.is_array else st.just(1)
    return st.none() | lengths if field.tag is not None else lengths


@st.composite
def runs(draw: st.DrawFn, rows: st.SearchStrategy[int] | None = None, *, repeats: bool = False) -> Run:
    """A run of either kind, of any version and shape.

    The values come from a seed: what matters of a run is its shape, and drawing cells one by one is slow.

    Args:
        rows: how many records. repeats: whether partitions come from so few that some occur again.
    """
    cls = draw(st.sampled_from(list(RUN_CLASSES)))
    schema = SCHEMA_OF_CLASS[cls]
    version = draw(st.integers(schema.versions.first, schema.versions.last))
    count = draw(rows if rows is not None else st.integers(1, 80))
    generator = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    columns: dict[str, Any] = {}
    for field in schema.struct.fields:
        length = draw(_length(field)) if version in field.versions else None
        if length is not None:
            columns[RUN_NAMES.get(field.name, field.name)] = _column(generator, field, count, length)
    if repeats:
        columns["topic_ids"][...] = 7
        columns["partition_ids"] %= 9
    return RUN_CLASSES[cls](version=version, **columns)


def _column(generator: np.random.Generator, field: Field, count: int, length: int) -> Any:
    size = (count, length) if field.is_array else (count,)
    if field.element_type == "uuid":
        return generator.integers(0, 256, (*size, 16), dtype=np.uint8)
    if field.element_type == "int8":
        return generator.integers(-2, 3, size, dtype=np.int8)
    return generator.integers(-(2**31), 2**31, size, dtype=np.int32)


def records_of(item: BatchItem) -> list[VersionedRecord]:
    """The records that an item stands for."""
    if isinstance(item, VersionedRecord):
        return [item]
    return [VersionedRecord(item.record(row), item.version) for row in range(len(item))]


@st.composite
def mass_records(draw: st.DrawFn, rows: st.SearchStrategy[int] | None = None) -> list[VersionedRecord]:
    """Mass records of a few shapes in a row, taking turns or mixed, as in logs that Kafka wrote."""
    parts = draw(st.lists(runs(rows, repeats=draw(st.booleans())), min_size=1, max_size=4))
    records = [record for part in parts for record in records_of(part)]
    order = draw(st.sampled_from(["in a row", "taking turns", "mixed"]))
    if order == "taking turns":
        records = [records[at] for step in range(len(parts)) for at in range(step, len(records), len(parts))]
    elif order == "mixed":
        draw(st.randoms(use_true_random=False)).shuffle(records)
    return records
