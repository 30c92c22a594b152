"""The primitive encodings of Kafka's flexible message format (KIP-482), one reader and one writer each.

A reader takes ``(buffer, position)`` and returns ``(value, next position)``. Readers raise ``MalformedData`` or one of
``DECODE_ERRORS``, which whoever owns the whole message turns into ``MalformedData``.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any, Final

from quorate.metadata_log.errors import MalformedData
from quorate.metadata_log.limits import STRING_BYTES_MAX

Buffer = bytes | bytearray | memoryview

#: What reading past an end or a wrong encoding raises below us.
DECODE_ERRORS: Final = (struct.error, IndexError, UnicodeDecodeError, OverflowError)

_VARINT_BYTES_MAX: Final = 5  # 32 bits in groups of 7
_UINT32_MAX: Final = 0xFFFF_FFFF

#: The unsigned varints of one byte.
SINGLE_BYTES: Final = tuple(bytes((n,)) for n in range(128))


def uvarint(value: int) -> bytes:
    """Unsigned LEB128: 7 bits a byte, lowest first."""
    if value < 128:
        return SINGLE_BYTES[value]
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def varint(value: int) -> bytes:
    """Zigzag varint of a signed number of at most 64 bits."""
    if 0 <= value < 64:
        return SINGLE_BYTES[value << 1]
    return uvarint(value << 1 if value >= 0 else (-value << 1) - 1)


def read_uvarint(buf: Buffer, pos: int) -> tuple[int, int]:
    """An unsigned varint of at most 32 bits."""
    byte = buf[pos]
    if byte < 128:
        return byte, pos + 1
    return _read_unsigned(buf, pos)


def read_varint(buf: Buffer, pos: int) -> tuple[int, int]:
    """A zigzag varint of at most 32 bits."""
    raw = buf[pos]
    if raw < 128:
        return (raw >> 1) ^ -(raw & 1), pos + 1
    raw, pos = _read_unsigned(buf, pos)
    return (raw >> 1) ^ -(raw & 1), pos


def _read_unsigned(buf: Buffer, pos: int) -> tuple[int, int]:
    value = shift = 0
    for _ in range(_VARINT_BYTES_MAX):
        byte = buf[pos]
        pos += 1
        value |= (byte & 127) << shift
        if byte < 128:
            if value > _UINT32_MAX:
                break
            return value, pos
        shift += 7
    raise MalformedData(f"a variable-length number does not end within {_VARINT_BYTES_MAX} bytes or is too large")


# --- bytes and strings -------------------------------------------------------------------------------


def compact_bytes(value: bytes | None) -> bytes:
    """Length + 1 as an unsigned varint, then the bytes; null is 0."""
    return b"\0" if value is None else uvarint(len(value) + 1) + value


def compact_string(value: str | None) -> bytes:
    """UTF-8 as compact bytes.

    Raises:
        MalformedData: longer than ``STRING_BYTES_MAX``, or not encodable.
    """
    return b"\0" if value is None else plain_string(value)


def plain_string(value: str) -> bytes:
    """As ``compact_string``, where null is not allowed (``AttributeError``).

    Raises:
        MalformedData: it cannot be written as UTF-8.
    """
    try:
        data = value.encode()
    except UnicodeEncodeError as error:
        raise MalformedData(f"{value[:40]!r} cannot be written as UTF-8") from error
    size = len(data)
    if size < 127:
        return SINGLE_BYTES[size + 1] + data
    if size > STRING_BYTES_MAX:
        raise MalformedData(f"a string of {size} bytes; {STRING_BYTES_MAX} is the most")
    return uvarint(size + 1) + data


def read_string(buf: bytes, pos: int) -> tuple[str, int]:
    """A string that must not be null.

    Raises:
        MalformedData: it is null, or not whole.
    """
    size, pos = read_size(buf, pos)
    if size < 0:
        raise MalformedData("a string must not be null")
    return cut_string(buf, pos, size)


def cut_bytes(buf: bytes, pos: int, size: int) -> tuple[bytes, int]:
    """``size`` bytes from ``pos`` on.

    Raises:
        MalformedData: fewer are there.
    """
    end = pos + size
    if end > len(buf):
        raise MalformedData(f"{size} bytes announced, {len(buf) - pos} there")
    return buf[pos:end], end


def cut_string(buf: bytes, pos: int, size: int) -> tuple[str, int]:
    """A string of ``size`` bytes from ``pos`` on.

    Raises:
        MalformedData: fewer are there, or it is longer than ``STRING_BYTES_MAX``. UnicodeDecodeError: it is no UTF-8.
    """
    end = pos + size
    if end > len(buf):
        raise MalformedData(f"{size} bytes announced, {len(buf) - pos} there")
    if size > STRING_BYTES_MAX:
        raise MalformedData(f"a string of {size} bytes; {STRING_BYTES_MAX} is the most")
    return buf[pos:end].decode(), end


# --- arrays ------------------------------------------------------------------------------------------

#: Arrays up to this length have a ready-made ``struct``.
_SHORT_ARRAY: Final = 32
_INT32S: Final = tuple(struct.Struct(f">{size}i") for size in range(_SHORT_ARRAY))
_READ_INT32S: Final = tuple(packer.unpack_from for packer in _INT32S)
#: With the length in front.
_WRITE_INT32S: Final = tuple(struct.Struct(f">B{size}i").pack for size in range(_SHORT_ARRAY))


def read_size(buf: Buffer, pos: int) -> tuple[int, int]:
    """A length that is written plus 1; -1 for null. It has not been held against anything yet."""
    size, pos = read_uvarint(buf, pos)
    return size - 1, pos


def check_array(buf: Buffer, pos: int, size: int) -> None:
    """Refuse an array of more elements than there are bytes left: every element takes one at least.

    Raises:
        MalformedData: it has more.
    """
    if size > len(buf) - pos:
        raise MalformedData(f"an array of {size} elements in {len(buf) - pos} bytes")


def read_int32s(buf: bytes, pos: int, size: int) -> tuple[tuple[int, ...], int]:
    """``size`` int32 elements."""
    if size < _SHORT_ARRAY:
        return _READ_INT32S[size](buf, pos), pos + 4 * size
    check_array(buf, pos, size)
    return struct.unpack_from(f">{size}i", buf, pos), pos + 4 * size


def read_uuids(buf: bytes, pos: int, size: int) -> tuple[tuple[bytes, ...], int]:
    """``size`` uuids.

    Raises:
        MalformedData: fewer bytes are there.
    """
    end = pos + 16 * size
    if end > len(buf):
        raise MalformedData(f"an array of {size} uuids in {len(buf) - pos} bytes")
    return tuple([buf[at : at + 16] for at in range(pos, end, 16)]), end


def read_elements(
    read: Callable[[bytes, int], tuple[Any, int]], buf: bytes, pos: int, size: int
) -> tuple[tuple[Any, ...], int]:
    """``size`` elements, each read by ``read``."""
    check_array(buf, pos, size)
    items = []
    for _ in range(size):
        item, pos = read(buf, pos)
        items.append(item)
    return tuple(items), pos


def compact_int32s(values: Sequence[int] | None) -> bytes:
    """Length + 1, then the elements; null is 0."""
    if values is None:
        return b"\0"
    size = len(values)
    if size < _SHORT_ARRAY:
        return _WRITE_INT32S[size](size + 1, *values)
    return uvarint(size + 1) + struct.pack(f">{size}i", *values)


def compact_uuids(values: Sequence[bytes] | None) -> bytes:
    """Length + 1, then the elements; null is 0."""
    if values is None:
        return b"\0"
    for value in values:
        if len(value) != 16:
            raise bad_uuid(value)
    return uvarint(len(values) + 1) + b"".join(values)


def compact_elements(write: Callable[[Any], bytes], values: Sequence[Any] | None) -> bytes:
    """Length + 1, then the elements, each written by ``write``; null is 0."""
    return b"\0" if values is None else uvarint(len(values) + 1) + b"".join([write(value) for value in values])


def bad_uuid(value: bytes) -> MalformedData:
    """The error of a uuid that has not 16 bytes."""
    return MalformedData(f"a uuid has 16 bytes, not {len(value)}")
