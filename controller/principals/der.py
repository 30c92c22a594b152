"""Reads ASN.1 values in DER, as far as names in certificates are made of them. Linear, and strict about lengths."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from quorate.metadata_log.errors import QuorateError

SEQUENCE: Final = 0x30
SET: Final = 0x31
OBJECT_IDENTIFIER: Final = 0x06

#: More bytes of length than any certificate needs.
_LENGTH_BYTES_MAX: Final = 3
_LONG: Final = 0x80
#: A tag whose number takes more bytes.
_LONG_TAG: Final = 0x1F


class BadDer(QuorateError, ValueError):
    """Bytes that are not the DER of what they should be. Says what was expected, and at which byte."""


class DerValue(NamedTuple):
    """One value."""

    tag: int
    content: bytes
    #: The whole of it, tag and length included.
    encoded: bytes


def der_values(data: bytes) -> Iterator[DerValue]:
    """All values that stand one after the other.

    Raises:
        BadDer: what is there is no value, or goes beyond the end.
    """
    at = 0
    while at < len(data):
        value = _value_at(data, at)
        at += len(value.encoded)
        yield value


def der_value(data: bytes, tag: int) -> DerValue:
    """The only value in ``data``.

    Raises:
        BadDer: it has another tag, or is not the only one.
    """
    value = _value_at(data, 0)
    if value.tag != tag:
        raise BadDer(f"tag 0x{value.tag:02x} where 0x{tag:02x} is due")
    if len(value.encoded) != len(data):
        raise BadDer(f"{len(data) - len(value.encoded)} bytes more than the value at byte 0 has")
    return value


def object_identifier(content: bytes) -> str:
    """An object identifier in dotted form, such as ``2.5.4.3``.

    Raises:
        BadDer: it is empty, or breaks off.
    """
    if not content or content[-1] & _LONG:
        raise BadDer("an object identifier breaks off")
    numbers = []
    number = 0
    for byte in content:
        number = number << 7 | byte & 0x7F
        if not byte & _LONG:
            numbers.append(number)
            number = 0
    first = min(numbers[0] // 40, 2)
    return ".".join(map(str, (first, numbers[0] - 40 * first, *numbers[1:])))


def _value_at(data: bytes, at: int) -> DerValue:
    if len(data) - at < 2:
        raise BadDer(f"a value at byte {at} breaks off")
    tag, length = data[at], data[at + 1]
    if tag & _LONG_TAG == _LONG_TAG:
        raise BadDer(f"tag 0x{tag:02x} at byte {at} is of none of the kinds that names have")
    start = at + 2
    if length & _LONG:
        count = length & 0x7F
        if not 1 <= count <= _LENGTH_BYTES_MAX:
            raise BadDer(f"a length of {count} bytes at byte {at}; 1 to {_LENGTH_BYTES_MAX} can be")
        length = int.from_bytes(data[start : start + count], "big")
        start += count
    end = start + length
    if end > len(data):
        raise BadDer(f"a value at byte {at} breaks off")
    return DerValue(tag, data[start:end], data[at:end])
