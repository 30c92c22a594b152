"""Every record type and version through bytes and through JSON and back; anything else is a typed error."""

import json

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from quorate.metadata_log.batches.batch import (
    BatchHeader,
    checked_header,
    control_batch,
    data_batch,
    iter_records,
    place_batch,
)
from quorate.metadata_log.errors import MalformedData
from quorate.metadata_log.records.codec import decode_control, decode_value, encode_control, encode_value
from quorate.metadata_log.records.json_form import json_type, record_data, record_from_data
from quorate.metadata_log.records.records import Record, VersionedRecord
from quorate.metadata_log.records.schema import SCHEMA_OF_CLASS
from tests.strategies import ALL_VERSIONS, DATA_VERSIONS, data_records, versioned_records

CONTROL_VERSIONS = [each for each in ALL_VERSIONS if each not in DATA_VERSIONS]
many = settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow])


def encoded(record: Record, version: int) -> tuple[bytes | None, bytes]:
    if SCHEMA_OF_CLASS[type(record)].is_control:
        return encode_control(record, version)
    return None, encode_value(record, version)


def decoded(key: bytes | None, value: bytes) -> VersionedRecord:
    return decode_value(value) if key is None else decode_control(key, value)


@many
@given(versioned_records())
def test_record_through_its_bytes_comes_back(versioned: VersionedRecord) -> None:
    assert decoded(*encoded(*versioned)) == versioned


@many
@given(versioned_records())
def test_record_through_its_json_comes_back(versioned: VersionedRecord) -> None:
    record, version = versioned
    text = json.dumps(record_data(record, version))
    assert record_from_data(json_type(record), version, json.loads(text)) == versioned


@given(st.lists(data_records(), min_size=1, max_size=8), st.integers(0, 2**62), st.integers(0, 2**31 - 1))
def test_records_through_a_batch_come_back_at_their_offsets(
    records: list[VersionedRecord], base_offset: int, epoch: int
) -> None:
    batch = place_batch(data_batch([(each.record, each.version) for each in records], 5), base_offset, epoch)
    header = checked_header(batch)

    assert header == BatchHeader(base_offset, len(batch), epoch, header.crc, 0, 5, len(records))
    logged = list(iter_records(batch))
    assert [(each.record, each.version) for each in logged] == records
    assert [each.offset for each in logged] == list(range(base_offset, base_offset + len(records)))
    assert [each.value_size for each in logged] == [len(encode_value(*each)) for each in records]


@given(st.lists(versioned_records(CONTROL_VERSIONS), min_size=1, max_size=4))
def test_control_records_through_a_batch_come_back(records: list[VersionedRecord]) -> None:
    batch = control_batch([(each.record, each.version) for each in records], 5)
    assert [(each.record, each.version) for each in iter_records(batch)] == records


def assert_value_or_error(key: bytes | None, value: bytes) -> None:
    """A value that is read can be written, and read again as the same; nothing but a typed error comes out."""
    try:
        record, version = decoded(key, value)
    except MalformedData:
        return
    # Not always the same bytes: a default may have been written out, or a tag of a later version dropped.
    assert repr(decoded(*encoded(record, version))) == repr(VersionedRecord(record, version))


@many
@given(st.binary(max_size=60))
@example(b"\1\3\2" + b"\xff" * 40)
@example(b"\1\5\2" + b"\0" * 20 + b"\xff\xff\xff\xff\x0f" + b"\0\0" * 20)
def test_any_bytes_are_a_value_or_a_typed_error(data: bytes) -> None:
    assert_value_or_error(None, data)
    assert_value_or_error(data[:4], data[4:])


@many
@given(st.sampled_from(DATA_VERSIONS), st.binary(max_size=80))
def test_any_message_behind_a_known_head_is_a_value_or_a_typed_error(known: tuple[object, int], data: bytes) -> None:
    schema, version = known
    type_id = getattr(schema, "type_id")  # noqa: B009
    assert_value_or_error(None, bytes((1, type_id, version)) + data)


@many
@given(versioned_records(), st.data())
def test_changed_bytes_of_a_record_are_a_value_or_a_typed_error(
    versioned: VersionedRecord, data: st.DataObject
) -> None:
    key, value = encoded(*versioned)
    changed = bytearray(value)
    for _ in range(data.draw(st.integers(1, 3))):
        changed[data.draw(st.integers(0, len(changed) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(changed)))
    assert_value_or_error(key, bytes(changed))
    assert_value_or_error(key, bytes(changed[:cut]))
