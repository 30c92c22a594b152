"""Records in the JSON of Kafka's own dump tool (its generated ``*JsonConverter`` classes).

Field names are camelCase, uuids are Kafka's text, bytes are base64. A tagged field at its default is absent, a field
that the version does not carry too.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any, Final, NamedTuple

from quorate.metadata_log.errors import InvalidId, MalformedData
from quorate.metadata_log.ids import uuid_from_text, uuid_text
from quorate.metadata_log.records.records import Record, VersionedRecord
from quorate.metadata_log.records.schema import SCHEMA_OF_CLASS, SCHEMAS, Field, StructSchema

_SCHEMA_OF_JSON_TYPE: Final = {schema.json_type: schema for schema in SCHEMAS}

#: What JSON has for the types that need no conversion.
_PLAIN_TYPES: Final[dict[str, type]] = {"string": str, "bool": bool, "float64": float}

#: Turns a field's value into JSON; None = it is JSON already.
_ToJson = Callable[[Any], Any]


class _JsonField(NamedTuple):
    """The JSON form of one field in one version."""

    name: str
    json_name: str
    is_tagged: bool
    default: Any
    to_json: _ToJson | None


def json_type(record: Record) -> str:
    """The type as Kafka's tools print it, such as ``TOPIC_RECORD`` or ``LeaderChange``."""
    return SCHEMA_OF_CLASS[type(record)].json_type


def record_data(record: Record, version: int) -> dict[str, Any]:
    """The record's fields as JSON values."""
    return _struct_data(_json_fields(SCHEMA_OF_CLASS[type(record)].struct, version), record)


def record_from_data(type_name: str, version: int, data: dict[str, Any]) -> VersionedRecord:
    """The record that ``record_data`` gave this for.

    Raises:
        MalformedData: unknown type, version or field, a field that is missing, or a value of the wrong kind.
    """
    schema = _SCHEMA_OF_JSON_TYPE.get(type_name)
    if schema is None or version not in schema.versions:
        raise MalformedData(f"no record type {type_name!r} with version {version}")
    try:
        return VersionedRecord(_struct_from_data(schema.struct, data, version), version)
    except (TypeError, ValueError, AttributeError, binascii.Error, InvalidId) as error:
        raise MalformedData(f"{type_name} version {version}: {error}") from error


# --- to JSON -----------------------------------------------------------------------------------------


@cache
def _json_fields(schema: StructSchema, version: int) -> tuple[_JsonField, ...]:
    fields = [field for field in schema.fields if version in field.versions]
    return tuple(
        _JsonField(f.name, f.json_name, f.tag is not None, f.default, _field_to_json(f, version)) for f in fields
    )


def _struct_data(fields: tuple[_JsonField, ...], value: Any) -> dict[str, Any]:
    data: dict[str, Any] = {}
    for name, json_name, is_tagged, default, to_json in fields:
        item = getattr(value, name)
        if not is_tagged or item != default:
            data[json_name] = item if to_json is None or item is None else to_json(item)
    return data


def _field_to_json(field: Field, version: int) -> _ToJson | None:
    element = _element_to_json(field, version)
    if not field.is_array:
        return element
    return list if element is None else lambda items: [element(item) for item in items]


def _element_to_json(field: Field, version: int) -> _ToJson | None:
    if field.struct is not None:
        fields = _json_fields(field.struct, version)
        return lambda value: _struct_data(fields, value)
    if field.element_type == "uuid":
        return _uuid_text
    return _base64_text if field.element_type == "bytes" else None


#: The ids of topics, directories and brokers come again and again.
_uuid_text: Final = lru_cache(maxsize=65_536)(uuid_text)


def _base64_text(value: bytes) -> str:
    return base64.b64encode(value).decode("ascii")


# --- from JSON ---------------------------------------------------------------------------------------


def _struct_from_data(schema: StructSchema, data: dict[str, Any], version: int) -> Any:
    fields = {field.json_name: field for field in schema.fields if version in field.versions}
    unknown = data.keys() - fields.keys()
    if unknown:
        raise MalformedData(f"unknown field {min(unknown)!r}")
    missing = [name for name, field in fields.items() if field.tag is None and name not in data]
    if missing:
        raise MalformedData(f"field {missing[0]!r} is missing")
    return schema.cls(**{fields[name].name: _from_json(fields[name], item, version) for name, item in data.items()})


def _from_json(field: Field, value: Any, version: int) -> Any:
    if value is None:
        if version not in field.nullable:
            raise MalformedData(f"{field.json_name} must not be null")
        return None
    if not field.is_array:
        return _element_from_json(field, value, version)
    if not isinstance(value, list):
        raise MalformedData(f"{field.json_name} must be an array")
    return tuple([_element_from_json(field, item, version) for item in value])


def _element_from_json(field: Field, value: Any, version: int) -> Any:
    if field.struct is not None:
        return _struct_from_data(field.struct, value, version)
    if field.element_type == "uuid":
        return uuid_from_text(value)
    if field.element_type == "bytes":
        return base64.b64decode(value, validate=True)
    if field.element_type == "float64" and type(value) is int:
        return float(value)
    # Exactly this type: a bool is an int, too.
    if type(value) is not _PLAIN_TYPES.get(field.element_type, int):
        raise MalformedData(f"{field.json_name} is {value!r}: no {field.element_type}")
    return value
