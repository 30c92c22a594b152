"""Record batches v2: header, checks, building and walking, one record at a time.

A batch is the unit of append, CRC, replication and atomicity. Its CRC-32C covers everything from the attributes on,
so base offset and leader epoch are patched in at append (``place_batch``) without touching it.
Layout: Kafka's ``DefaultRecordBatch`` and ``DefaultRecord``.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from crc32c import crc32c

from quorate.metadata_log.errors import MalformedData
from quorate.metadata_log.limits import BATCH_BYTES_READ_MAX
from quorate.metadata_log.records import wire
from quorate.metadata_log.records.codec import decode_control, decode_value_at, encode_control, encode_value
from quorate.metadata_log.records.records import LoggedRecord, Record
from quorate.metadata_log.records.wire import Buffer

_HEADER: Final = struct.Struct(">qiibIhiqqqhii")
_UP_TO_CRC: Final = struct.Struct(">qiibI")
_AFTER_CRC: Final = struct.Struct(">hiqqqhii")
#: Base offset, length and epoch: all of a batch before the magic byte.
_PLACE: Final = struct.Struct(">qii")
HEADER_BYTES: Final = _HEADER.size  # 61
#: Base offset and length: the bytes that the length field does not count.
LOG_OVERHEAD_BYTES: Final = 12
#: Where the bytes begin that the CRC covers.
CRC_START: Final = 21
_MAGIC: Final = 2
CONTROL_ATTRIBUTE: Final = 0x20


class BatchHeader(NamedTuple):
    """The header of a batch. All of it but the first three fields is covered by the CRC."""

    base_offset: int
    #: Bytes of the whole batch, header included.
    size: int
    epoch: int
    crc: int
    attributes: int
    #: Milliseconds since 1970; one time for all records of a batch.
    timestamp: int
    record_count: int

    @property
    def end_offset(self) -> int:
        """Exclusive."""
        return self.base_offset + self.record_count

    @property
    def last_offset(self) -> int:
        """Inclusive."""
        return self.base_offset + self.record_count - 1

    @property
    def is_control(self) -> bool:
        """Whether it holds control records (a batch never mixes the two kinds)."""
        return bool(self.attributes & CONTROL_ATTRIBUTE)


#: A ``BatchHeader`` without names.
HeaderFields = tuple[int, int, int, int, int, int, int]


def parse_header(buf: Buffer, pos: int = 0) -> BatchHeader:
    """The header at ``pos``. The body behind it need not be there, and the CRC is not checked.

    Raises:
        MalformedData: fewer than 61 bytes, or a field that no metadata batch has.
    """
    return BatchHeader._make(header_fields(buf, pos))


def header_fields(buf: Buffer, pos: int) -> HeaderFields:
    """As ``parse_header``, for whoever reads a header per entry of the log."""
    try:
        base, length, epoch, magic, crc, attributes, last_delta, time, time_max, producer, _, _, count = (
            _HEADER.unpack_from(buf, pos)
        )
    except struct.error as error:
        raise MalformedData(f"{len(buf) - pos} bytes are less than a batch header of {HEADER_BYTES}") from error
    size = length + LOG_OVERHEAD_BYTES
    if (
        magic != _MAGIC
        or not HEADER_BYTES < size <= BATCH_BYTES_READ_MAX
        or base < 0
        or epoch < 0
        or count < 1
        or last_delta != count - 1
        or attributes & ~CONTROL_ATTRIBUTE
        or time != time_max
        or producer != -1
    ):
        raise MalformedData(_header_fault(magic, size, base, epoch, count, last_delta))
    return base, size, epoch, crc, attributes, time, count


def _header_fault(magic: int, size: int, base: int, epoch: int, count: int, last_delta: int) -> str:
    if magic != _MAGIC:
        return f"batch magic is {magic}, not {_MAGIC}"
    if not HEADER_BYTES < size <= BATCH_BYTES_READ_MAX:
        return f"batch size {size} is not within {HEADER_BYTES + 1}..{BATCH_BYTES_READ_MAX}"
    if base < 0 or epoch < 0:
        return f"base offset {base} or epoch {epoch} is negative"
    if count < 1 or last_delta != count - 1:
        return f"{count} records with a last offset delta of {last_delta}"
    return "compressed, transactional or multi-timestamp batches do not occur in a metadata log"


#: Below this many bytes a copy is quicker than a view of them.
_SMALL_BYTES: Final = 4096


def crc_ok(buf: Buffer, pos: int, header: BatchHeader) -> bool:
    """Whether the whole batch is there and its CRC holds."""
    end = pos + header.size
    return end <= len(buf) and crc32c(memoryview(buf)[pos + CRC_START : end]) == header.crc


def checked_header(buf: Buffer, pos: int = 0) -> BatchHeader:
    """The header of a batch that is whole.

    Raises:
        MalformedData: as ``parse_header``, or the batch is cut short, or its CRC does not hold.
    """
    return BatchHeader._make(checked_fields(buf, pos))


def checked_fields(buf: Buffer, pos: int) -> tuple[int, int, int, int, int, int, int]:
    """As ``checked_header``, without names: see ``header_fields``."""
    fields = header_fields(buf, pos)
    size = fields[1]
    end = pos + size
    if end > len(buf):
        raise MalformedData(f"batch of {size} bytes, {len(buf) - pos} there")
    covered = (buf if size < _SMALL_BYTES else memoryview(buf))[pos + CRC_START : end]
    if crc32c(covered) != fields[3]:
        raise MalformedData("the CRC does not match")
    return fields


def build_batch(body: Buffer, record_count: int, timestamp: int, *, is_control: bool = False) -> bytes:
    """A batch around encoded records, with base offset 0 and epoch 0 until it is placed."""
    return join_batch((body,), record_count, timestamp, is_control=is_control)


def join_batch(pieces: Sequence[Buffer], record_count: int, timestamp: int, *, is_control: bool = False) -> bytes:
    """As ``build_batch``, with the body in pieces; they are copied once."""
    return b"".join((batch_head(pieces, record_count, timestamp, is_control=is_control), *pieces))


def batch_head(
    pieces: Sequence[Buffer],
    record_count: int,
    timestamp: int,
    *,
    is_control: bool = False,
    base_offset: int = 0,
    epoch: int = 0,
) -> bytes:
    """The bytes that stand before the body of a batch, given the body in pieces."""
    attributes = CONTROL_ATTRIBUTE if is_control else 0
    after = _AFTER_CRC.pack(attributes, record_count - 1, timestamp, timestamp, -1, -1, -1, record_count)
    crc, size = crc32c(after), HEADER_BYTES - LOG_OVERHEAD_BYTES
    for piece in pieces:
        crc = crc32c(piece, crc)
        size += len(piece)
    return _UP_TO_CRC.pack(base_offset, size, epoch, _MAGIC, crc) + after


def place_batch(batch: Buffer, base_offset: int, epoch: int) -> bytes:
    """The same batch at its place in the log."""
    place = _PLACE.pack(base_offset, len(batch) - LOG_OVERHEAD_BYTES, epoch)
    if len(batch) < _SMALL_BYTES:
        return place + batch[_PLACE.size :]
    # One copy: a batch has up to 8 MiB.
    return b"".join((place, memoryview(batch)[_PLACE.size :]))


def frame_record(offset_delta: int, key: bytes | None, value: bytes) -> bytes:
    """One record of a batch: attributes 0, timestamp delta 0, no headers."""
    if key is None:
        head = _DATA_HEADS[offset_delta] if offset_delta < _HEADS else _data_head(offset_delta)
    else:
        head = b"\0\0" + wire.varint(offset_delta) + wire.varint(len(key)) + key
    size = wire.varint(len(value))
    return wire.varint(len(head) + len(size) + len(value) + 1) + head + size + value + b"\0"


def _data_head(offset_delta: int) -> bytes:
    """The bytes of a data record between its length and that of its value: attributes, time, offset delta, null key."""
    return b"\0\0" + wire.varint(offset_delta) + b"\1"


#: Heads that are kept ready: few batches of single records have more.
_HEADS: Final = 256
_DATA_HEADS: Final = tuple(_data_head(delta) for delta in range(_HEADS))


def control_batch(records: list[tuple[Record, int]], timestamp: int) -> bytes:
    """A batch of control records, given with their versions."""
    framed = [frame_record(delta, *encode_control(record, v)) for delta, (record, v) in enumerate(records)]
    return build_batch(b"".join(framed), len(records), timestamp, is_control=True)


def data_batch(records: list[tuple[Record, int]], timestamp: int) -> bytes:
    """A batch of a few data records, given with their versions. Mass records go through ``BatchBuilder``."""
    framed = [frame_record(delta, None, encode_value(record, v)) for delta, (record, v) in enumerate(records)]
    return build_batch(b"".join(framed), len(records), timestamp)


#: One record's offset delta, key size (-1 = null), and the positions of key, value and value's end (exclusive). The
#: record itself ends one byte later. A plain tuple: it is made for every record that is read by itself.
Frame = tuple[int, int, int, int, int]


def read_frame(buf: Buffer, pos: int, end: int) -> Frame:
    """The record at ``pos`` of a batch body that ends at ``end``.

    Raises:
        MalformedData: the framing is not what Kafka's Raft reader accepts.
    """
    try:
        # A call costs more than the reading: numbers of one byte and the null key of a data record are read in place.
        first = buf[pos]
        length, pos = ((first >> 1) ^ -(first & 1), pos + 1) if first < 128 else wire.read_varint(buf, pos)
        record_end = pos + length
        if length < 0 or record_end > end:
            raise MalformedData(f"a record of {length} bytes, {end - pos} left in the batch")
        if buf[pos] != 0 or buf[pos + 1] != 0:
            raise MalformedData("record attributes or timestamp delta are not 0")
        first = buf[pos + 2]
        delta, pos = ((first >> 1) ^ -(first & 1), pos + 3) if first < 128 else wire.read_varint(buf, pos + 2)
        key_size, key_start = (-1, pos + 1) if buf[pos] == 1 else wire.read_varint(buf, pos)
        value_at = key_start + key_size if key_size > 0 else key_start
        first = buf[value_at]
        value_size, value_start = (
            ((first >> 1) ^ -(first & 1), value_at + 1) if first < 128 else wire.read_varint(buf, value_at)
        )
        value_end = value_start + value_size
        if value_size < 0 or value_end + 1 != record_end or buf[value_end] != 0:
            raise MalformedData("a record has no value, has headers, or does not fill its length")
    except wire.DECODE_ERRORS as error:
        raise MalformedData(f"record framing is cut short: {error}") from error
    return delta, key_size, key_start, value_start, value_end


def iter_records(buf: Buffer, pos: int = 0) -> Iterator[LoggedRecord]:
    """The records of the batch at ``pos``, typed, one by one. The caller has checked the CRC.

    Raises:
        MalformedData: framing, count or a value is not the format. UnsupportedRecord: type or version unknown.
    """
    base, size, _, _, _, timestamp, record_count = header = parse_header(buf, pos)
    is_control = header.is_control
    if type(buf) is bytes:
        data, start = buf, pos
    else:  # one copy of the batch saves one for each record: slices of bytes are bytes
        data, start = bytes(memoryview(buf)[pos : pos + size]), 0
    at, end = start + HEADER_BYTES, start + size
    expected = 0
    while at < end:
        delta, key_size, key_start, value_start, value_end = read_frame(data, at, end)
        if delta != expected:
            raise MalformedData(f"offset delta {delta} where {expected} is due")
        if is_control:
            key = data[key_start : key_start + max(key_size, 0)]
            record, version = decode_control(key, data[value_start:value_end])
        else:
            record, version = decode_value_at(data, value_start, value_end)
        yield LoggedRecord(base + delta, timestamp, key_size, value_end - value_start, record, version)
        at = value_end + 1
        expected += 1
    if expected != record_count:
        raise MalformedData(f"{expected} records where the header says {record_count}")
