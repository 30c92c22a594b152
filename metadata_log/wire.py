"""The primitive encodings of Kafka's flexible message format (KIP-482), one reader and one writer each.

A reader takes ``(buffer, position)`` and returns ``(value, next position)``. Readers raise ``MalformedData`` or one of
``DECODE_ERRORS``, which whoever owns the whole message turns into ``MalformedData``.
"""

from __future__ import annotations

import struct
from typing import Final

from metadata_log.errors import MalformedData
from metadata_log.limits import STRING_BYTES_MAX

Buffer = bytes | bytearray | memoryview

#: What reading past an end or a wrong encoding raises below us.
DECODE_ERRORS: Final = (struct.error, IndexError, UnicodeDecodeError, OverflowError)

_VARINT_BYTES_MAX: Final = 5  # 32 bits in groups of 7
_VARLONG_BYTES_MAX: Final = 10  # 64 bits in groups of 7

_SINGLE_UVARINTS: Final = tuple(bytes((n,)) for n in range(128))


def uvarint(value: int) -> bytes:
    """Unsigned LEB128: 7 bits a byte, lowest first."""
    if value < 128:
        return _SINGLE_UVARINTS[value]
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def varint(value: int) -> bytes:
    """Zigzag varint of a signed number of at most 64 bits."""
    return uvarint(value << 1 if value >= 0 else (-value << 1) - 1)


def read_uvarint(buf: Buffer, pos: int) -> tuple[int, int]:
    """An unsigned varint of at most 32 bits."""
    return _read_unsigned(buf, pos, _VARINT_BYTES_MAX, 0xFFFF_FFFF)


def read_varint(buf: Buffer, pos: int) -> tuple[int, int]:
    """A zigzag varint of at most 32 bits."""
    raw, pos = _read_unsigned(buf, pos, _VARINT_BYTES_MAX, 0xFFFF_FFFF)
    return (raw >> 1) ^ -(raw & 1), pos


def read_varlong(buf: Buffer, pos: int) -> tuple[int, int]:
    """A zigzag varint of at most 64 bits."""
    raw, pos = _read_unsigned(buf, pos, _VARLONG_BYTES_MAX, 0xFFFF_FFFF_FFFF_FFFF)
    return (raw >> 1) ^ -(raw & 1), pos


def _read_unsigned(buf: Buffer, pos: int, bytes_max: int, value_max: int) -> tuple[int, int]:
    value = shift = 0
    for _ in range(bytes_max):
        byte = buf[pos]
        pos += 1
        value |= (byte & 127) << shift
        if byte < 128:
            if value > value_max:
                break
            return value, pos
        shift += 7
    raise MalformedData(f"a variable-length number does not end within {bytes_max} bytes or is too large")


def compact_bytes(value: bytes | None) -> bytes:
    """Length + 1 as an unsigned varint, then the bytes; null is 0."""
    return b"\0" if value is None else uvarint(len(value) + 1) + value


def read_compact_bytes(buf: Buffer, pos: int) -> tuple[bytes | None, int]:
    """Bytes, or None for null."""
    size, pos = read_uvarint(buf, pos)
    if size == 0:
        return None, pos
    end = pos + size - 1
    if end > len(buf):
        raise MalformedData(f"{size - 1} bytes announced, {len(buf) - pos} there")
    return bytes(buf[pos:end]), end


def compact_string(value: str | None) -> bytes:
    """UTF-8 as compact bytes.

    Raises:
        MalformedData: longer than ``STRING_BYTES_MAX``, or not encodable.
    """
    if value is None:
        return b"\0"
    try:
        data = value.encode()
    except UnicodeEncodeError as error:
        raise MalformedData(f"{value[:40]!r} cannot be written as UTF-8") from error
    if len(data) > STRING_BYTES_MAX:
        raise MalformedData(f"a string of {len(data)} bytes; {STRING_BYTES_MAX} is the most")
    return uvarint(len(data) + 1) + data


def read_compact_string(buf: Buffer, pos: int) -> tuple[str | None, int]:
    """A string, or None for null."""
    data, pos = read_compact_bytes(buf, pos)
    if data is None:
        return None, pos
    if len(data) > STRING_BYTES_MAX:
        raise MalformedData(f"a string of {len(data)} bytes; {STRING_BYTES_MAX} is the most")
    return data.decode(), pos


def read_array_length(buf: Buffer, pos: int) -> tuple[int, int]:
    """Number of elements of a compact array, -1 for null; never more than there are bytes left."""
    size, pos = read_uvarint(buf, pos)
    if size - 1 > len(buf) - pos:
        raise MalformedData(f"an array of {size - 1} elements in {len(buf) - pos} bytes")
    return size - 1, pos
