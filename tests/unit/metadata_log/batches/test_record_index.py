"""The walk over the records of batches: every record is found where it lies, and what cannot be is refused."""

from __future__ import annotations

from typing import Final

import pytest

from quorate.metadata_log.batches.batch import HEADER_BYTES, data_batch, frame_record, read_frame
from quorate.metadata_log.batches.record_index import UNUSUAL, RecordWalk, WrongLength
from quorate.metadata_log.errors import MalformedData
from quorate.metadata_log.records.codec import encode_value
from quorate.metadata_log.records.records import NoOpRecord, PartitionChangeRecord, Record, TopicRecord

_NO_OP: Final = frame_record(0, None, encode_value(NoOpRecord(), 0))


def batch_of(count: int, broker: int) -> bytes:
    """Changes of one size, and among them names of topics that have each another one, some of over 8 KiB."""
    records: list[tuple[Record, int]] = [
        (TopicRecord("t" * (number * 80), bytes(16)), 0)
        if number % 40 == 39
        else (PartitionChangeRecord(0, bytes(16), isr=(broker,), leader=broker), 2)
        for number in range(count)
    ]
    return data_batch(records, 0)


def test_records_of_all_batches_are_found_where_they_lie() -> None:
    batches = [batch_of(1, 1), batch_of(300, 2), batch_of(2, 3), batch_of(39, 4)]
    data, walk, expected = b"", RecordWalk(b"".join(batches)), []
    for batch, count in zip(batches, (1, 300, 2, 39), strict=True):
        pos, end = len(data) + HEADER_BYTES, len(data) + len(batch)
        walk.batch(pos, end, count)
        data += batch
        while pos < end:
            _, _, _, value_start, value_end = read_frame(data, pos, end)
            expected.append((pos, value_start, value_end))
            pos = value_end + 1

    index = walk.index()

    assert index.starts.tolist() == [start for start, _, _ in expected]
    assert index.ends.tolist() == [end + 1 for _, _, end in expected]
    usual = [number for number, (_, start, end) in enumerate(expected) if end - start < 8192]
    assert [number for number, kind in enumerate(index.types.tolist()) if kind != UNUSUAL] == usual
    values = zip(index.value_starts[usual].tolist(), index.value_sizes[usual].tolist(), strict=True)
    assert [(start, start + size) for start, size in values] == [expected[number][1:] for number in usual]


@pytest.mark.parametrize(
    ("body", "count", "why"),
    [
        (_NO_OP, 2, "2 records in 11 bytes"),
        (_NO_OP, 0, "0 records do not fill their batch: the last one ends -11 bytes off"),
        (b"\xff" * 20, 2, "does not end within 5 bytes"),
        (b"\x7f" * 20, 2, "2 records do not fill their batch: the last one ends 44 bytes off"),
        (b"\xff\x7f" * 10, 2, "2 records do not fill"),
    ],
)
def test_batch_that_its_records_do_not_fill_is_refused(body: bytes, count: int, why: str) -> None:
    with pytest.raises(MalformedData, match=why):
        RecordWalk(body).batch(0, len(body), count)


def test_record_that_has_another_length_than_it_says_is_named() -> None:
    body = _NO_OP + frame_record(1, None, encode_value(NoOpRecord(), 0)) + b"more"
    walk = RecordWalk(_NO_OP + body)
    walk.batch(0, len(_NO_OP), 1)
    walk.batch(len(_NO_OP), len(_NO_OP + body), 2)

    with pytest.raises(WrongLength, match="record 1 of the batch does not have the length it says") as found:
        walk.index()
    assert found.value.number == 2
