"""Records in the JSON of Kafka's own dump tool (its generated ``*JsonConverter`` classes).

Field names are camelCase, uuids are Kafka's text, bytes are base64. A tagged field at its default is absent, a field
that the version does not carry too.
"""

from __future__ import annotations

import base64
import binascii
from typing import Any

from metadata_log.errors import InvalidId, MalformedData
from metadata_log.ids import uuid_from_text, uuid_text
from metadata_log.records import Record, VersionedRecord
from metadata_log.schema import SCHEMA_OF_CLASS, SCHEMAS, Field, StructSchema

_SCHEMA_OF_JSON_TYPE = {schema.json_type: schema for schema in SCHEMAS}


def json_type(record: Record) -> str:
    """The type as Kafka's tools print it, such as ``TOPIC_RECORD`` or ``LeaderChange``."""
    return SCHEMA_OF_CLASS[type(record)].json_type


def record_data(record: Record, version: int) -> dict[str, Any]:
    """The record's fields as JSON values."""
    return _struct_data(SCHEMA_OF_CLASS[type(record)].struct, record, version)


def record_from_data(type_name: str, version: int, data: dict[str, Any]) -> VersionedRecord:
    """The record that ``record_data`` gave this for.

    Raises:
        MalformedData: unknown type, version or field, or a value of the wrong kind.
    """
    schema = _SCHEMA_OF_JSON_TYPE.get(type_name)
    if schema is None or version not in schema.versions:
        raise MalformedData(f"no record type {type_name!r} with version {version}")
    try:
        return VersionedRecord(_struct_from_data(schema.struct, data, version), version)
    except (TypeError, ValueError, AttributeError, binascii.Error, InvalidId) as error:
        raise MalformedData(f"{type_name} version {version}: {error}") from error


def _struct_data(schema: StructSchema, value: Any, version: int) -> dict[str, Any]:
    data: dict[str, Any] = {}
    for field in schema.fields:
        item = getattr(value, field.name)
        if version in field.versions and not (field.tag is not None and item == field.default):
            data[field.json_name] = _field_data(field, item, version)
    return data


def _field_data(field: Field, value: Any, version: int) -> Any:
    if value is None:
        return None
    if field.is_array:
        return [_element_data(field, item, version) for item in value]
    return _element_data(field, value, version)


def _element_data(field: Field, value: Any, version: int) -> Any:
    if field.struct is not None:
        return _struct_data(field.struct, value, version)
    if field.element_type == "uuid":
        return uuid_text(value)
    if field.element_type == "bytes":
        return base64.b64encode(value).decode("ascii")
    return value


def _struct_from_data(schema: StructSchema, data: dict[str, Any], version: int) -> Any:
    fields = {field.json_name: field for field in schema.fields if version in field.versions}
    unknown = data.keys() - fields.keys()
    if unknown:
        raise MalformedData(f"unknown field {min(unknown)!r}")
    return schema.cls(**{fields[name].name: _from_json(fields[name], item, version) for name, item in data.items()})


def _from_json(field: Field, value: Any, version: int) -> Any:
    if value is None:
        return None
    if field.is_array:
        return tuple(_element_from_json(field, item, version) for item in value)
    return _element_from_json(field, value, version)


def _element_from_json(field: Field, value: Any, version: int) -> Any:
    if field.struct is not None:
        return _struct_from_data(field.struct, value, version)
    if field.element_type == "uuid":
        return uuid_from_text(value)
    if field.element_type == "bytes":
        return base64.b64decode(value, validate=True)
    return value
