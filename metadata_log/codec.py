"""One record's value, as bytes and back, driven by the tables in ``schema``.

A data value is: frame version 1, type id, record version (all unsigned varints), then the flexible message.
A control record has the key (int16 0, int16 type) and a value that begins with its own int16 version.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import cache
from typing import Any, Final, cast

from metadata_log import wire
from metadata_log.errors import MalformedData, UnsupportedRecord
from metadata_log.records import Record, VersionedRecord
from metadata_log.schema import (
    CONTROL_SCHEMAS,
    DATA_SCHEMAS,
    SCHEMA_OF_CLASS,
    Field,
    RecordSchema,
    StructSchema,
)
from metadata_log.wire import Buffer

FRAME_VERSION: Final = 1
_CONTROL_KEY: Final = struct.Struct(">hh")
_INT16: Final = struct.Struct(">h")

_Write = Callable[[Any], bytes]
_Read = Callable[[Buffer, int], tuple[Any, int]]


def encode_value(record: Record, version: int) -> bytes:
    """The value of a data record.

    Raises:
        UnsupportedRecord: the type has no such version.
        MalformedData: a field is set that this version cannot carry, or has a value its type cannot hold.
    """
    schema = _schema_for(record, version, is_control=False)
    head = wire.uvarint(FRAME_VERSION) + wire.uvarint(schema.type_id) + wire.uvarint(version)
    return head + _encode_body(schema, record, version)


def encode_control(record: Record, version: int) -> tuple[bytes, bytes]:
    """Key and value of a control record; raises as ``encode_value`` does."""
    schema = _schema_for(record, version, is_control=True)
    body = _encode_body(schema, record, version)
    return _CONTROL_KEY.pack(0, schema.type_id), _INT16.pack(version) + body


def decode_value(buf: Buffer) -> VersionedRecord:
    """The data record in ``buf``, which it must fill.

    Raises:
        UnsupportedRecord: unknown type or version.
        MalformedData: anything else that is not the format.
    """
    try:
        frame, pos = wire.read_uvarint(buf, 0)
        type_id, pos = wire.read_uvarint(buf, pos)
        version, pos = wire.read_uvarint(buf, pos)
    except wire.DECODE_ERRORS as error:
        raise MalformedData(f"record value of {len(buf)} bytes has no frame") from error
    if frame != FRAME_VERSION:
        raise MalformedData(f"record frame version {frame}; only {FRAME_VERSION} is known")
    schema = DATA_SCHEMAS.get(type_id)
    if schema is None or version not in schema.versions:
        raise UnsupportedRecord(type_id, version)
    return _decode_body(schema, version, buf, pos)


def decode_control(key: Buffer, value: Buffer) -> VersionedRecord:
    """The control record with this key and value; raises as ``decode_value`` does."""
    try:
        key_version, type_id = _CONTROL_KEY.unpack_from(key)
        (version,) = _INT16.unpack_from(value)
    except struct.error as error:
        raise MalformedData("control record without type or version") from error
    schema = CONTROL_SCHEMAS.get(type_id)
    if key_version != 0 or schema is None or version not in schema.versions:
        raise UnsupportedRecord(type_id, version)
    return _decode_body(schema, version, value, _INT16.size)


def _schema_for(record: Record, version: int, *, is_control: bool) -> RecordSchema:
    schema = SCHEMA_OF_CLASS.get(type(record))
    if schema is None or schema.is_control is not is_control:
        kind = "control" if is_control else "data"
        raise MalformedData(f"{type(record).__name__} is no {kind} record")
    if version not in schema.versions:
        raise UnsupportedRecord(schema.type_id, version)
    return schema


def _encode_body(schema: RecordSchema, record: Record, version: int) -> bytes:
    try:
        return _struct_writer(schema.struct, version)(record)
    except (struct.error, TypeError, OverflowError) as error:
        raise MalformedData(f"{schema.name} version {version} cannot be written: {error}") from error


def _decode_body(schema: RecordSchema, version: int, buf: Buffer, pos: int) -> VersionedRecord:
    try:
        record, end = _struct_reader(schema.struct, version)(buf, pos)
    except wire.DECODE_ERRORS as error:
        raise MalformedData(f"{schema.name} version {version} is cut short or malformed: {error}") from error
    if end != len(buf):
        raise MalformedData(f"{schema.name} version {version} leaves {len(buf) - end} bytes unread")
    return VersionedRecord(cast(Record, record), version)


# --- structs -----------------------------------------------------------------------------------------


@cache
def _struct_writer(schema: StructSchema, version: int) -> _Write:
    plain: list[tuple[str, _Write]] = []
    tagged: list[tuple[int, str, Any, _Write]] = []
    absent: list[tuple[str, Any]] = []
    for field in schema.fields:
        if version not in field.versions:
            absent.append((field.name, field.default))
        elif field.tag is None:
            plain.append((field.name, _field_writer(field, version)))
        else:
            tagged.append((field.tag, field.name, field.default, _field_writer(field, version)))
    tagged.sort()

    def write(value: Any) -> bytes:
        for name, default in absent:
            if getattr(value, name) != default:
                raise MalformedData(f"{type(value).__name__} version {version} cannot carry {name}")
        parts = [writer(getattr(value, name)) for name, writer in plain]
        tags = []
        for tag, name, default, writer in tagged:
            item = getattr(value, name)
            if item != default:
                payload = writer(item)
                tags.append(wire.uvarint(tag) + wire.uvarint(len(payload)) + payload)
        parts.append(wire.uvarint(len(tags)))
        return b"".join(parts + tags)

    return write


@cache
def _struct_reader(schema: StructSchema, version: int) -> _Read:
    plain: list[tuple[str, _Read]] = []
    tagged: dict[int, tuple[str, _Read]] = {}
    for field in schema.fields:
        if version not in field.versions:
            continue
        if field.tag is None:
            plain.append((field.name, _field_reader(field, version)))
        else:
            tagged[field.tag] = (field.name, _field_reader(field, version))
    cls = schema.cls

    def read(buf: Buffer, pos: int) -> tuple[Any, int]:
        values: dict[str, Any] = {}
        for name, reader in plain:
            values[name], pos = reader(buf, pos)
        count, pos = wire.read_uvarint(buf, pos)
        for _ in range(count):
            tag, pos = wire.read_uvarint(buf, pos)
            size, pos = wire.read_uvarint(buf, pos)
            end = pos + size
            if end > len(buf):
                raise MalformedData(f"tagged field {tag} of {size} bytes, {len(buf) - pos} there")
            known = tagged.get(tag)
            # A tag of a later version is skipped, as Kafka does: that is what tags are for.
            if known is not None:
                values[known[0]], pos = known[1](buf, pos)
                if pos != end:
                    raise MalformedData(f"tagged field {tag} does not fill its {size} bytes")
            pos = end
        return cls(**values), pos

    return read


# --- fields ------------------------------------------------------------------------------------------


def _field_writer(field: Field, version: int) -> _Write:
    if field.is_array:
        return _array_writer(field, version)
    element = _element_writer(field, version)
    if version in field.nullable or field.element_type not in ("string", "bytes"):
        return element

    def write(value: Any) -> bytes:
        if value is None:
            raise MalformedData(f"{field.name} must not be null")
        return element(value)

    return write


def _field_reader(field: Field, version: int) -> _Read:
    if field.is_array:
        return _array_reader(field, version)
    element = _element_reader(field, version)
    if version in field.nullable or field.element_type not in ("string", "bytes"):
        return element

    def read(buf: Buffer, pos: int) -> tuple[Any, int]:
        value, pos = element(buf, pos)
        if value is None:
            raise MalformedData(f"{field.name} must not be null")
        return value, pos

    return read


def _array_writer(field: Field, version: int) -> _Write:
    element = _element_writer(field, version)
    is_nullable = version in field.nullable

    def write(value: Any) -> bytes:
        if value is None:
            if not is_nullable:
                raise MalformedData(f"{field.name} must not be null")
            return b"\0"
        return wire.uvarint(len(value) + 1) + b"".join(map(element, value))

    return write


def _array_reader(field: Field, version: int) -> _Read:
    element = _element_reader(field, version)
    is_nullable = version in field.nullable

    def read(buf: Buffer, pos: int) -> tuple[Any, int]:
        count, pos = wire.read_array_length(buf, pos)
        if count < 0:
            if not is_nullable:
                raise MalformedData(f"{field.name} must not be null")
            return None, pos
        items = []
        for _ in range(count):
            item, pos = element(buf, pos)
            items.append(item)
        return tuple(items), pos

    return read


def _element_writer(field: Field, version: int) -> _Write:
    if field.struct is not None:
        return _struct_writer(field.struct, version)
    return _PRIMITIVES[field.element_type][0]


def _element_reader(field: Field, version: int) -> _Read:
    if field.struct is not None:
        return _struct_reader(field.struct, version)
    return _PRIMITIVES[field.element_type][1]


def _number(code: str) -> tuple[_Write, _Read]:
    packer = struct.Struct(">" + code)
    pack, unpack, size = packer.pack, packer.unpack_from, packer.size

    def read(buf: Buffer, pos: int) -> tuple[Any, int]:
        return unpack(buf, pos)[0], pos + size

    return pack, read


def _write_uuid(value: bytes) -> bytes:
    if len(value) != 16:
        raise MalformedData(f"a uuid has 16 bytes, not {len(value)}")
    return value


def _read_uuid(buf: Buffer, pos: int) -> tuple[bytes, int]:
    end = pos + 16
    if end > len(buf):
        raise MalformedData("a uuid is cut short")
    return bytes(buf[pos:end]), end


_PRIMITIVES: Final[dict[str, tuple[_Write, _Read]]] = {
    "int8": _number("b"),
    "int16": _number("h"),
    "uint16": _number("H"),
    "int32": _number("i"),
    "int64": _number("q"),
    "float64": _number("d"),
    "bool": _number("?"),
    "string": (wire.compact_string, wire.read_compact_string),
    "bytes": (wire.compact_bytes, wire.read_compact_bytes),
    "uuid": (_write_uuid, _read_uuid),
}
