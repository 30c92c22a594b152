"""Record batches: the bytes of Kafka's format, and what is refused in a header or in the framing of a record."""

import struct
from typing import Any

import pytest

from quorate.metadata_log.batches.batch import (
    HEADER_BYTES,
    BatchHeader,
    build_batch,
    checked_header,
    control_batch,
    crc_ok,
    data_batch,
    frame_record,
    iter_records,
    join_batch,
    parse_header,
    place_batch,
)
from quorate.metadata_log.errors import MalformedData
from quorate.metadata_log.limits import BATCH_BYTES_READ_MAX
from quorate.metadata_log.records.records import (
    KRaftVersionRecord,
    LoggedRecord,
    NoOpRecord,
    SnapshotHeaderRecord,
    TopicRecord,
)

TOPIC = bytes(range(16))
TIME = 1_700_000_000_000
#: Batch of a NoOpRecord, from Kafka's layout: only the CRC is taken over from the code, and held to its parts below.
NO_OP_BATCH = (
    "0000000000000000 0000003c 00000000 02 {crc} 0000 00000000 0000018bcfe56800 0000018bcfe56800 "
    "ffffffffffffffff ffff ffffffff 00000001  14 00 00 00 01 08 01140000 00"
)


def no_op_batch() -> bytes:
    return data_batch([(NoOpRecord(), 0)], TIME)


def with_bytes(batch: bytes, position: int, data: bytes) -> bytes:
    return batch[:position] + data + batch[position + len(data) :]


def test_batch_has_the_bytes_of_kafkas_format() -> None:
    batch = no_op_batch()
    assert batch.hex() == NO_OP_BATCH.replace(" ", "").format(crc=batch[17:21].hex())
    assert crc_ok(batch, 0, parse_header(batch))


def test_header_says_what_the_batch_holds() -> None:
    batch = place_batch(data_batch([(NoOpRecord(), 0), (TopicRecord("a", TOPIC), 0)], TIME), 40, 3)
    header = checked_header(b"before" + batch, 6)
    assert header == BatchHeader(40, len(batch), 3, header.crc, 0, TIME, 2)
    assert (header.last_offset, header.end_offset, header.is_control) == (41, 42, False)


def test_records_carry_offset_time_and_sizes() -> None:
    batch = place_batch(data_batch([(NoOpRecord(), 0), (TopicRecord("a", TOPIC), 0)], TIME), 40, 3)
    assert list(iter_records(b"xx" + batch + b"yy", 2)) == [
        LoggedRecord(40, TIME, -1, 4, NoOpRecord(), 0),
        LoggedRecord(41, TIME, -1, 22, TopicRecord("a", TOPIC), 0),
    ]


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_control_batch_in_any_buffer_is_read(kind: Any) -> None:
    batch = control_batch([(SnapshotHeaderRecord(5), 0), (KRaftVersionRecord(1), 0)], TIME)
    assert parse_header(kind(batch)).is_control
    assert list(iter_records(kind(b"x" + batch), 1)) == [
        LoggedRecord(0, TIME, 4, 11, SnapshotHeaderRecord(5), 0),
        LoggedRecord(1, TIME, 4, 5, KRaftVersionRecord(1), 0),
    ]


def test_placing_changes_neither_crc_nor_records() -> None:
    batch = no_op_batch()
    placed = place_batch(memoryview(batch), 2**40, 2**31 - 1)
    header = checked_header(placed)
    assert (header.base_offset, header.epoch, header.crc) == (2**40, 2**31 - 1, parse_header(batch).crc)
    assert placed[21:] == batch[21:]
    assert placed[8:12] == batch[8:12]


def test_batch_of_pieces_equals_that_of_the_whole_body() -> None:
    pieces: list[bytes | bytearray] = [frame_record(0, None, b"abc"), bytearray(frame_record(1, None, b"d" * 300))]
    assert join_batch(pieces, 2, TIME) == build_batch(b"".join(pieces), 2, TIME)


@pytest.mark.parametrize("size", [0, 1, 60])
def test_header_that_is_cut_short_is_refused(size: int) -> None:
    with pytest.raises(MalformedData, match=f"{size} bytes are less than a batch header of 61"):
        parse_header(no_op_batch()[:size])


@pytest.mark.parametrize(
    ("position", "data", "reason"),
    [
        (16, b"\x01", "batch magic is 1"),
        (8, struct.pack(">i", 49), "batch size 61 is not within"),
        (8, struct.pack(">i", BATCH_BYTES_READ_MAX), "is not within 62..67108864"),
        (8, struct.pack(">i", -1), "batch size 11 is not within"),
        (0, struct.pack(">q", -1), "base offset -1 or epoch 0 is negative"),
        (12, struct.pack(">i", -7), "base offset 0 or epoch -7 is negative"),
        (57, struct.pack(">i", 0), "0 records with a last offset delta of 0"),
        (57, struct.pack(">i", 2), "2 records with a last offset delta of 0"),
        (21, b"\x00\x01", "compressed"),
        (21, b"\x00\x10", "transactional"),
        (35, struct.pack(">q", TIME + 1), "multi-timestamp"),
        (43, struct.pack(">q", 5), "transactional"),
    ],
)
def test_header_that_no_metadata_batch_has_is_refused(position: int, data: bytes, reason: str) -> None:
    with pytest.raises(MalformedData, match=reason):
        parse_header(with_bytes(no_op_batch(), position, data))


def test_batch_cut_short_or_changed_fails_the_check() -> None:
    batch = no_op_batch()
    with pytest.raises(MalformedData, match=f"batch of {len(batch)} bytes, {len(batch) - 1} there"):
        checked_header(batch[:-1])
    for position in range(21, len(batch)):
        changed = with_bytes(batch, position, bytes((batch[position] ^ 1,)))
        with pytest.raises(MalformedData):
            checked_header(changed)


def framed(*fields: bytes) -> bytes:
    """A batch whose one record has these bytes behind its length."""
    inner = b"".join(fields)
    return build_batch(bytes((len(inner) << 1,)) + inner, 1, TIME)


@pytest.mark.parametrize(
    ("batch", "reason"),
    [
        (framed(b"\1\0", b"\0", b"\1", b"\x08\1\x14\0\0", b"\0"), "attributes or timestamp delta"),
        (framed(b"\0\2", b"\0", b"\1", b"\x08\1\x14\0\0", b"\0"), "attributes or timestamp delta"),
        (framed(b"\0\0", b"\2", b"\1", b"\x08\1\x14\0\0", b"\0"), "offset delta 1 where 0 is due"),
        (framed(b"\0\0", b"\0", b"\1", b"\x08\1\x14\0\0", b"\2"), "has headers"),
        (framed(b"\0\0", b"\0", b"\1", b"\x01", b"\0"), "has no value"),
        (framed(b"\0\0", b"\0", b"\1", b"\x06\1\x14\0\0", b"\0"), "does not fill its length"),
        (build_batch(b"\x03" + b"\0" * 6, 1, TIME), "a record of -2 bytes"),
        (build_batch(b"\x40" + b"\0" * 6, 1, TIME), "a record of 32 bytes, 6 left"),
        (build_batch(b"\x80" * 7, 1, TIME), "does not end within 5 bytes"),
        (build_batch(frame_record(0, None, b"\1\x14\0\0"), 2, TIME), "1 records where the header says 2"),
        (build_batch(frame_record(0, None, b"\1\x14\0\0") * 2, 1, TIME), "offset delta 0 where 1 is due"),
        (
            build_batch(frame_record(0, None, b"\1\x14\0\0") + b"\0", 1, TIME),
            "cut short|a record of 0 bytes|attributes",
        ),
    ],
)
def test_framing_that_kafka_would_refuse_is_refused(batch: bytes, reason: str) -> None:
    with pytest.raises(MalformedData, match=reason):
        list(iter_records(batch))


def test_records_before_a_bad_one_are_yielded() -> None:
    batch = build_batch(frame_record(0, None, b"\1\x14\0\0") + frame_record(1, None, b"\1\x63\0\0"), 2, TIME)
    records = iter_records(batch)
    assert next(records).record == NoOpRecord()
    with pytest.raises(MalformedData, match="record type 99 version 0"):
        next(records)


def test_frame_of_a_large_value_has_lengths_of_more_than_one_byte() -> None:
    value = b"\1\2\0" + b"\xac\x02" + b"x" * 299 + TOPIC + b"\0"
    batch = build_batch(frame_record(0, None, value), 1, TIME)
    assert next(iter_records(batch)).record == TopicRecord("x" * 299, TOPIC)
    assert len(batch) == HEADER_BYTES + 2 + 2 + 1 + 1 + 2 + len(value) + 1
