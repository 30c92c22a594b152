"""One record's value, as bytes and back, in any version of Kafka 4.3.1's schemas.

A data value is: frame version 1, type id, record version (all unsigned varints), then the flexible message.
A control record has the key (int16 0, int16 type) and a value that begins with its own int16 version.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

from quorate.metadata_log.errors import MalformedData, UnsupportedRecord
from quorate.metadata_log.records import wire
from quorate.metadata_log.records.codec_source import ENCODE_ERRORS, Reader, Writer, struct_reader, struct_writer
from quorate.metadata_log.records.records import Record, VersionedRecord
from quorate.metadata_log.records.schema import CONTROL_SCHEMAS, DATA_SCHEMAS, SCHEMA_OF_CLASS, RecordSchema
from quorate.metadata_log.records.wire import Buffer

FRAME_VERSION: Final = 1
_CONTROL_KEY: Final = struct.Struct(">hh")
_INT16: Final = struct.Struct(">h")


class _ValueReader(NamedTuple):
    """Reads the values that begin with one head."""

    version: int
    #: Bytes of the head, behind which the message begins.
    head_size: int
    read: Reader
    schema: RecordSchema


class _ValueWriter(NamedTuple):
    """Writes the values of one record class in one version."""

    head: bytes
    write: Writer
    schema: RecordSchema


# Both are filled as types and versions are met, by ``_find_reader`` and ``_find_writer``.
#: By the first three bytes, which are the whole head in all that Kafka writes.
_READERS: Final[dict[bytes, _ValueReader]] = {}
_PLAIN_HEAD_BYTES: Final = 3
#: By record class, version and whether a control record is wanted.
_WRITERS: Final[dict[tuple[type, int, bool], _ValueWriter]] = {}


def encode_value(record: Record, version: int) -> bytes:
    """The value of a data record.

    Raises:
        UnsupportedRecord: the type has no such version.
        MalformedData: a field is set that this version cannot carry, or has a value its type cannot hold.
    """
    head, write, schema = _WRITERS.get((type(record), version, False)) or _find_writer(record, version, False)
    try:
        return head + write(record)
    except ENCODE_ERRORS as error:
        raise _unwritable(schema, version, error) from error


def encode_control(record: Record, version: int) -> tuple[bytes, bytes]:
    """Key and value of a control record; raises as ``encode_value`` does."""
    head, write, schema = _WRITERS.get((type(record), version, True)) or _find_writer(record, version, True)
    try:
        return _CONTROL_KEY.pack(0, schema.type_id), head + write(record)
    except ENCODE_ERRORS as error:
        raise _unwritable(schema, version, error) from error


def decode_value(buf: Buffer) -> VersionedRecord:
    """The data record in ``buf``, which it must fill.

    Raises:
        UnsupportedRecord: unknown type or version.
        MalformedData: anything else that is not the format.
    """
    data = bytes(buf)  # itself if it is bytes already
    return decode_value_at(data, 0, len(data))


def decode_value_at(buf: bytes, start: int, end: int) -> VersionedRecord:
    """The data record whose value lies from ``start`` to ``end`` (exclusive); raises as ``decode_value`` does."""
    version, head_size, read, schema = _READERS.get(buf[start : start + _PLAIN_HEAD_BYTES]) or _find_reader(
        buf[start:end]
    )
    try:
        record, stop = read(buf, start + head_size)
    except wire.DECODE_ERRORS as error:
        raise _unreadable(schema, version, error) from error
    # A message that is longer than its value was read on behind it.
    if stop != end:
        raise _misfit(schema, version, stop - end)
    return VersionedRecord(record, version)


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
    data = bytes(value)
    try:
        record, stop = struct_reader(schema.struct, version)(data, _INT16.size)
    except wire.DECODE_ERRORS as error:
        raise _unreadable(schema, version, error) from error
    if stop != len(data):
        raise _misfit(schema, version, stop - len(data))
    return VersionedRecord(record, version)


def _find_writer(record: Record, version: int, is_control: bool) -> _ValueWriter:
    schema = SCHEMA_OF_CLASS.get(type(record))
    if schema is None or schema.is_control is not is_control:
        raise MalformedData(f"{type(record).__name__} is no {'control' if is_control else 'data'} record")
    if version not in schema.versions:
        raise UnsupportedRecord(schema.type_id, version)
    if is_control:
        head = _INT16.pack(version)
    else:
        head = wire.uvarint(FRAME_VERSION) + wire.uvarint(schema.type_id) + wire.uvarint(version)
    writer = _ValueWriter(head, struct_writer(schema.struct, version), schema)
    _WRITERS[type(record), version, is_control] = writer
    return writer


def _find_reader(data: bytes) -> _ValueReader:
    """Read the head; remembers the reader where the head has the usual length."""
    try:
        frame, pos = wire.read_uvarint(data, 0)
        type_id, pos = wire.read_uvarint(data, pos)
        version, pos = wire.read_uvarint(data, pos)
    except wire.DECODE_ERRORS as error:
        raise MalformedData(f"record value of {len(data)} bytes has no frame") from error
    if frame != FRAME_VERSION:
        raise MalformedData(f"record frame version {frame}; only {FRAME_VERSION} is known")
    schema = DATA_SCHEMAS.get(type_id)
    if schema is None or version not in schema.versions:
        raise UnsupportedRecord(type_id, version)
    reader = _ValueReader(version, pos, struct_reader(schema.struct, version), schema)
    if pos == _PLAIN_HEAD_BYTES:
        _READERS[data[:pos]] = reader
    return reader


def _unreadable(schema: RecordSchema, version: int, error: Exception) -> MalformedData:
    return MalformedData(f"{schema.name} version {version} is cut short or malformed: {error}")


def _misfit(schema: RecordSchema, version: int, excess: int) -> MalformedData:
    fault = f"needs {excess} bytes more" if excess > 0 else f"leaves {-excess} bytes unread"
    return MalformedData(f"{schema.name} version {version} {fault}")


def _unwritable(schema: RecordSchema, version: int, error: Exception) -> MalformedData:
    return MalformedData(f"{schema.name} version {version} cannot be written: {error}")
