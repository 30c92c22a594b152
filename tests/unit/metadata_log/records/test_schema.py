"""The schema tables and the record classes say the same."""

import dataclasses
import inspect
import types
import typing
from collections.abc import Iterator

import pytest

from quorate.metadata_log.records import records
from quorate.metadata_log.records.schema import (
    CONTROL_SCHEMAS,
    DATA_SCHEMAS,
    SCHEMAS,
    Field,
    RecordSchema,
    StructSchema,
)

PYTHON_TYPES = {"string": str, "bytes": bytes, "uuid": bytes, "bool": bool, "float64": float}


def structs(schema: StructSchema) -> Iterator[StructSchema]:
    """A struct and all in it."""
    yield schema
    for field in schema.fields:
        if field.struct is not None:
            yield from structs(field.struct)


ALL_STRUCTS = {struct.cls.__name__: struct for schema in SCHEMAS for struct in structs(schema.struct)}


def annotation_of(field: Field) -> object:
    """The annotation that a field of a record class must have."""
    element = field.struct.cls if field.struct is not None else PYTHON_TYPES.get(field.element_type, int)
    plain = types.GenericAlias(tuple, (element, ...)) if field.is_array else element
    return plain | None if field.nullable.last >= field.nullable.first else plain


@pytest.mark.parametrize("name", ALL_STRUCTS)
def test_record_class_has_the_fields_of_its_schema(name: str) -> None:
    """Names in the order of the wire, annotations and defaults."""
    schema = ALL_STRUCTS[name]
    hints = typing.get_type_hints(schema.cls)
    fields = {field.name: field for field in dataclasses.fields(schema.cls)}

    assert list(fields) == [field.name for field in schema.fields]
    assert hints == {field.name: annotation_of(field) for field in schema.fields}
    assert {name: field.default for name, field in fields.items()} == {f.name: f.default for f in schema.fields}


@pytest.mark.parametrize("name", ALL_STRUCTS)
def test_record_class_is_a_bare_frozen_value(name: str) -> None:
    """The codec makes objects through their slots: a class with work to do in its constructor would not get it done."""
    cls = ALL_STRUCTS[name].cls

    assert getattr(cls, "__slots__", None) == tuple(field.name for field in dataclasses.fields(cls))
    assert not hasattr(cls, "__post_init__")
    assert dataclasses.is_dataclass(cls)
    assert cls.__dataclass_params__.frozen  # type: ignore[attr-defined]


def test_record_unions_name_every_schema() -> None:
    assert set(typing.get_args(records.DataRecord)) == {schema.struct.cls for schema in DATA_SCHEMAS.values()}
    assert set(typing.get_args(records.ControlRecord)) == {schema.struct.cls for schema in CONTROL_SCHEMAS.values()}
    classes = {cls for _, cls in inspect.getmembers(records, dataclasses.is_dataclass)}
    assert classes == {schema.cls for schema in ALL_STRUCTS.values()}


def test_tags_are_unique_within_a_struct() -> None:
    for name, schema in ALL_STRUCTS.items():
        tags = [field.tag for field in schema.fields if field.tag is not None]
        assert len(set(tags)) == len(tags), name


def test_every_version_of_kafka_4_3_is_there() -> None:
    """What the newest metadata version writes; a schema that loses a version fails here."""
    newest: dict[str, RecordSchema] = {schema.json_type: schema for schema in SCHEMAS}

    assert len(DATA_SCHEMAS) == 26
    assert len(CONTROL_SCHEMAS) == 5
    assert {
        name: newest[name].versions.last
        for name in ("REGISTER_BROKER_RECORD", "PARTITION_RECORD", "PARTITION_CHANGE_RECORD")
    } == {"REGISTER_BROKER_RECORD": 4, "PARTITION_RECORD": 2, "PARTITION_CHANGE_RECORD": 2}
    assert newest["BROKER_REGISTRATION_CHANGE_RECORD"].versions.last == 3
    assert newest["LeaderChange"].versions.last == 1
