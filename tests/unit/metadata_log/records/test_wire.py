"""The primitive encodings: what the numbers look like, and that nothing wrong is read as something."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.metadata_log.errors import MalformedData
from quorate.metadata_log.limits import STRING_BYTES_MAX
from quorate.metadata_log.records import wire

BORDERS = [(1 << bits) + step for bits in (6, 7, 13, 14, 20, 21, 27, 28, 31) for step in (-1, 0)]


@pytest.mark.parametrize(
    ("value", "data"),
    [(0, "00"), (1, "01"), (127, "7f"), (128, "8001"), (300, "ac02"), (16_383, "ff7f"), (2**32 - 1, "ffffffff0f")],
)
def test_unsigned_varint_has_the_bytes_of_kafka(value: int, data: str) -> None:
    assert wire.uvarint(value).hex() == data
    assert wire.read_uvarint(bytes.fromhex(data), 0) == (value, len(data) // 2)


@pytest.mark.parametrize(
    ("value", "data"), [(0, "00"), (-1, "01"), (1, "02"), (63, "7e"), (-64, "7f"), (64, "8001"), (-65, "8101")]
)
def test_zigzag_varint_has_the_bytes_of_kafka(value: int, data: str) -> None:
    assert wire.varint(value).hex() == data
    assert wire.read_varint(bytes.fromhex(data), 0) == (value, len(data) // 2)


@given(st.sampled_from(BORDERS) | st.integers(0, 2**32 - 1), st.binary(max_size=3))
def test_unsigned_varint_written_is_read_again(value: int, before: bytes) -> None:
    data = before + wire.uvarint(value)
    assert wire.read_uvarint(data + b"\xff", len(before)) == (value, len(data))


@given(st.sampled_from([*BORDERS, *(-border for border in BORDERS)]) | st.integers(-(2**31), 2**31 - 1))
def test_zigzag_varint_written_is_read_again(value: int) -> None:
    if abs(value) < 2**31:
        assert wire.read_varint(wire.varint(value), 0) == (value, len(wire.varint(value)))


@given(st.binary(max_size=12))
def test_varint_in_any_bytes_is_a_32_bit_number_or_an_error(data: bytes) -> None:
    try:
        value, end = wire.read_uvarint(data, 0)
    except (MalformedData, *wire.DECODE_ERRORS):
        return
    assert 0 <= value < 2**32
    assert 0 < end <= min(5, len(data))


@pytest.mark.parametrize("data", ["ffffffff10", "ffffffffff01", "8080808080"], ids=["33 bits", "6 bytes", "no end"])
def test_varint_of_more_than_32_bits_is_refused(data: str) -> None:
    with pytest.raises(MalformedData):
        wire.read_uvarint(bytes.fromhex(data), 0)


def test_string_at_its_limit_is_written_and_one_byte_more_is_refused() -> None:
    longest = "x" * STRING_BYTES_MAX
    assert wire.read_string(wire.compact_string(longest), 0)[0] == longest
    with pytest.raises(MalformedData, match="32767 is the most"):
        wire.compact_string(longest + "x")


def test_string_without_utf8_is_refused() -> None:
    with pytest.raises(MalformedData, match="UTF-8"):
        wire.compact_string("\ud800")


def test_string_over_the_limit_in_bytes_is_refused_by_the_reader() -> None:
    size = STRING_BYTES_MAX + 1
    with pytest.raises(MalformedData, match="32767 is the most"):
        wire.cut_string(b"x" * size, 0, size)


@pytest.mark.parametrize("read", [wire.cut_bytes, wire.cut_string, wire.read_uuids])
def test_length_beyond_the_end_is_refused_before_anything_is_made(read: object) -> None:
    """A length of 4 GB in a buffer of a few bytes must cost nothing."""
    assert callable(read)
    with pytest.raises(MalformedData):
        read(b"abc", 1, 2**32 - 2)


def test_array_of_more_elements_than_bytes_is_refused() -> None:
    with pytest.raises(MalformedData, match="4294967294 elements in 2 bytes"):
        wire.read_int32s(b"abc", 1, 2**32 - 2)
    with pytest.raises(MalformedData, match="4294967294 elements in 2 bytes"):
        wire.read_elements(wire.read_string, b"abc", 1, 2**32 - 2)


@pytest.mark.parametrize("size", [0, 1, 31, 32, 33, 126, 127, 128])
def test_int32_array_of_any_length_comes_back(size: int) -> None:
    """Arrays of up to 31 elements take another path than longer ones."""
    values = tuple(range(-size, size, 2))
    data = wire.compact_int32s(values)
    assert wire.read_int32s(data, len(wire.uvarint(size + 1)), size) == (values, len(data))
