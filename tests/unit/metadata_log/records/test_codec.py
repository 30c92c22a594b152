"""Single records as bytes: known bytes, and an error of a known kind for everything else."""

import inspect
from dataclasses import replace
from typing import Any

import pytest

from quorate.metadata_log.errors import MalformedData, UnsupportedRecord
from quorate.metadata_log.records.codec import decode_control, decode_value, encode_control, encode_value
from quorate.metadata_log.records.codec_source import struct_reader
from quorate.metadata_log.records.records import (
    BeginTransactionRecord,
    BrokerEndpoint,
    ClientQuotaRecord,
    ConfigRecord,
    EntityData,
    FeatureLevelRecord,
    LeaderChangeMessage,
    NoOpRecord,
    PartitionChangeRecord,
    PartitionRecord,
    Record,
    RegisterBrokerRecord,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    TopicRecord,
    Voter,
)
from quorate.metadata_log.records.schema import CONTROL_SCHEMAS, DATA_SCHEMAS

TOPIC = bytes(range(16))

#: Written out by hand from Kafka's schemas and its encoding.
VECTORS: list[tuple[str, Record, int, str]] = [
    ("no fields", NoOpRecord(), 0, "01 14 00  00"),
    ("string and uuid", TopicRecord("ab", TOPIC), 0, f"01 02 00  03 6162 {TOPIC.hex()} 00"),
    ("null string", ConfigRecord(2, "", "c", None), 0, "01 04 00  02 01 02 63 00 00"),
    ("int16", FeatureLevelRecord("x", 258), 0, "01 0c 00  02 78 0102 00"),
    ("tagged string", BeginTransactionRecord("t"), 0, "01 17 00  01 00 02 02 74"),
    ("tagged string at its default", BeginTransactionRecord(None), 0, "01 17 00  00"),
    (
        "structs, float and bool",
        ClientQuotaRecord((EntityData("user", None),), "k", 1.5, True),
        0,
        "01 0e 00  02 05 75736572 00 00  02 6b  3ff8000000000000 01 00",
    ),
    (
        "tags in order",
        PartitionChangeRecord(7, TOPIC, isr=(1, 2), leader=2, eligible_leader_replicas=()),
        2,
        f"01 05 02  00000007 {TOPIC.hex()} 03  00 09 03 00000001 00000002  01 04 00000002  06 01 01",
    ),
    (
        "fields around a tag",
        PartitionRecord(1, TOPIC, (3,), (3,), (), (), 3, 1, 4, 5, (TOPIC,)),
        1,
        f"010301 00000001 {TOPIC.hex()} 0200000003 0200000003 0101 00000003 00000004 00000005 02{TOPIC.hex()} 01000101",
    ),
]


@pytest.mark.parametrize(("record", "version", "data"), [v[1:] for v in VECTORS], ids=[v[0] for v in VECTORS])
def test_record_has_the_bytes_of_its_schema(record: Record, version: int, data: str) -> None:
    assert encode_value(record, version).hex() == data.replace(" ", "")
    assert decode_value(bytes.fromhex(data)) == (record, version)


def test_control_record_has_key_and_version_of_its_own() -> None:
    assert encode_control(SnapshotHeaderRecord(258), 0) == (
        bytes.fromhex("00000003"),
        bytes.fromhex("0000 0000000000000102 00"),
    )
    key, value = encode_control(LeaderChangeMessage(1, (Voter(1, TOPIC),), ()), 1)
    assert value.hex() == f"0001 00000001 02 00000001 {TOPIC.hex()} 00 01 00".replace(" ", "")
    assert decode_control(key, value) == (LeaderChangeMessage(1, (Voter(1, TOPIC),), ()), 1)


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_value_in_any_buffer_is_read(kind: Any) -> None:
    assert decode_value(kind(encode_value(TopicRecord("ab", TOPIC), 0))).record == TopicRecord("ab", TOPIC)


def test_arrays_read_are_tuples_and_uuids_bytes() -> None:
    """Records are compared and hashed: what was read must not be some other kind of sequence."""
    record = decode_value(
        bytearray(encode_value(PartitionRecord(1, TOPIC, (3,), (3,), directories=(TOPIC,)), 2))
    ).record
    assert isinstance(record, PartitionRecord)
    assert hash(record) == hash(PartitionRecord(1, TOPIC, (3,), (3,), directories=(TOPIC,)))
    assert type(record.topic_id) is type(record.directories[0]) is bytes


# --- reading: what is refused, what is let through ---------------------------------------------------


@pytest.mark.parametrize(
    ("data", "type_id", "version"), [("016300", 99, 0), ("010201", 2, 1), ("01020a", 2, 10), ("01ac0200", 300, 0)]
)
def test_unknown_type_or_version_is_refused_with_both_numbers(data: str, type_id: int, version: int) -> None:
    with pytest.raises(UnsupportedRecord) as refusal:
        decode_value(bytes.fromhex(data))
    assert (refusal.value.type_id, refusal.value.version) == (type_id, version)
    assert str(type_id) in str(refusal.value)
    assert str(version) in str(refusal.value)


def test_unknown_control_type_is_refused_with_both_numbers() -> None:
    with pytest.raises(UnsupportedRecord, match="record type 9 version 0"):
        decode_control(bytes.fromhex("00000009"), b"\0\0\0")
    with pytest.raises(UnsupportedRecord, match="record type 4 version 7"):
        decode_control(bytes.fromhex("00000004"), b"\0\7\0")


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        ("", "has no frame"),
        ("01", "has no frame"),
        ("01ffffffffff", "does not end"),
        ("020200", "record frame version 2"),
        ("011400", "cut short"),
        ("01140000ff", "leaves 1 bytes unread"),
        ("010200 03 61", "2 bytes announced, 1 there"),
        ("010200 00", "name must not be null"),
        ("010200 02 ff" + "00" * 17, "can't decode"),
        ("010200 ff ff ff ff 0f 61", "bytes announced"),
        ("011700 01 00 05 00", "tagged field 0 of 5 bytes, 1 there"),
        ("011700 01 00 02 00 00", "does not fill its 2 bytes"),
        ("011700 ff ff ff ff 0f", "cut short"),
        ("010e00 ff ff ff ff 0f 00", "4294967294 elements"),
    ],
)
def test_malformed_value_is_refused_with_its_reason(data: str, reason: str) -> None:
    with pytest.raises(MalformedData, match=reason):
        decode_value(bytes.fromhex(data))


def test_control_record_without_version_or_type_is_refused() -> None:
    with pytest.raises(MalformedData):
        decode_control(b"\0\0\0", b"\0\0\0")
    with pytest.raises(MalformedData):
        decode_control(b"\0\0\0\2", b"\0")


def test_value_cut_anywhere_is_refused() -> None:
    value = encode_value(PartitionChangeRecord(7, TOPIC, isr=(1, 2), leader=2, directories=(TOPIC, TOPIC)), 2)
    for size in range(len(value)):
        with pytest.raises(MalformedData):
            decode_value(value[:size])


def test_tag_of_a_later_version_is_skipped() -> None:
    """As Kafka does: that is what tags are for. The fields that are known are read."""
    data = f"010502 00000007 {TOPIC.hex()} 03  01 04 00000002  63 03 ababab  c801 00"
    assert decode_value(bytes.fromhex(data)).record == PartitionChangeRecord(7, TOPIC, leader=2)


def test_head_with_padded_varints_is_read() -> None:
    """Nobody writes it so, and Kafka reads it so: 5 as 0x85 0x00."""
    plain = encode_value(PartitionChangeRecord(7, TOPIC, leader=2), 2)
    assert decode_value(b"\x81\x00\x85\x00\x02" + plain[3:]) == decode_value(plain)


def test_tagged_field_of_more_than_127_bytes_is_read() -> None:
    record = PartitionChangeRecord(7, TOPIC, replicas=tuple(range(40)), directories=(TOPIC,) * 40)
    assert decode_value(encode_value(record, 2)).record == record


# --- writing: what is refused ------------------------------------------------------------------------


def test_version_that_does_not_exist_is_refused_with_both_numbers() -> None:
    with pytest.raises(UnsupportedRecord, match="record type 2 version 1"):
        encode_value(TopicRecord("a", TOPIC), 1)


def test_record_of_the_other_kind_is_refused() -> None:
    with pytest.raises(MalformedData, match="SnapshotFooterRecord is no data record"):
        encode_value(SnapshotFooterRecord(), 0)
    with pytest.raises(MalformedData, match="TopicRecord is no control record"):
        encode_control(TopicRecord("a", TOPIC), 0)


def test_field_that_the_version_cannot_carry_is_refused_by_name() -> None:
    """It must never be dropped silently: replay of the bytes would give another state than the record."""
    record = PartitionChangeRecord(7, TOPIC, directories=(TOPIC,))
    with pytest.raises(MalformedData, match="PartitionChangeRecord version 0 cannot carry directories"):
        encode_value(record, 0)
    assert encode_value(replace(record, directories=None), 0)


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (TopicRecord(None, TOPIC), "name must not be null"),  # type: ignore[arg-type]
        (TopicRecord("a", TOPIC[:15]), "a uuid has 16 bytes, not 15"),
        (TopicRecord(5, TOPIC), "TopicRecord version 0 cannot be written"),  # type: ignore[arg-type]
        (TopicRecord("x" * 40_000, TOPIC), "32767 is the most"),
        (FeatureLevelRecord("x", 32_768), "FeatureLevelRecord version 0 cannot be written"),
        (FeatureLevelRecord("x", 1.5), "FeatureLevelRecord version 0 cannot be written"),  # type: ignore[arg-type]
        (ClientQuotaRecord(None, "k"), "entity must not be null"),  # type: ignore[arg-type]
        (ClientQuotaRecord((EntityData(None),), "k"), "entity_type must not be null"),  # type: ignore[arg-type]
        (ClientQuotaRecord((TopicRecord(),), "k"), "cannot be written"),  # type: ignore[arg-type]
    ],
)  # fmt: skip
def test_value_that_its_type_cannot_hold_is_refused(record: Record, reason: str) -> None:
    with pytest.raises(MalformedData, match=reason):
        encode_value(record, 0)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"replicas": None}, "replicas must not be null"),
        ({"replicas": (2**31,)}, "cannot be written"),
        ({"replicas": ("1",)}, "cannot be written"),
        ({"directories": (b"short",)}, "a uuid has 16 bytes, not 5"),
        ({"leader_epoch": None}, "cannot be written"),
    ],
)
def test_partition_with_a_bad_array_is_refused(changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(MalformedData, match=reason):
        encode_value(replace(PartitionRecord(1, TOPIC), **changes), 2)


def test_port_is_unsigned() -> None:
    record = RegisterBrokerRecord(1, end_points=(BrokerEndpoint("a", "h", 65_535, 0),))
    assert decode_value(encode_value(record, 4)).record == record


def test_generated_source_is_there_for_tracebacks() -> None:
    """An error inside a generated reader must show the line that raised it."""
    for schema in (DATA_SCHEMAS[5], CONTROL_SCHEMAS[2]):
        source = inspect.getsource(struct_reader(schema.struct, 0))
        assert source.startswith("def read(buf, pos):")
