"""The columnar path and the row path always say the same."""

from collections.abc import Callable

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from quorate.metadata_log.batches.batch import (
    HEADER_BYTES,
    build_batch,
    checked_header,
    frame_record,
    iter_records,
    parse_header,
)
from quorate.metadata_log.batches.builder import BatchBuilder, build_batches, encode_items
from quorate.metadata_log.batches.columns import decode_batch, decode_body
from quorate.metadata_log.batches.runs import BatchItem, Run
from quorate.metadata_log.errors import MalformedData, UnsupportedRecord
from quorate.metadata_log.ids import Uuid
from quorate.metadata_log.records.codec import encode_value
from quorate.metadata_log.records.records import PartitionChangeRecord, PartitionRecord, Record, VersionedRecord
from tests.strategies import data_records, mass_records, records_of, runs

TIME = 1_700_000_000_000
slow = settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
#: Offset deltas before the records in question: the varint of a delta grows at 64 and at 8192.
starts = st.sampled_from([0, 1, 30, 62, 63, 64, 8_100, 8_191, 8_192])
#: Runs and single records as a writer may hand them over.
any_items = st.lists(runs() | data_records() | mass_records(st.integers(1, 20)), min_size=1, max_size=4)


def flattened(parts: list[BatchItem | list[VersionedRecord]]) -> list[BatchItem]:
    return [item for part in parts for item in (part if isinstance(part, list) else [part])]


def batch_of(items: list[BatchItem]) -> bytes:
    builder = BatchBuilder()
    for item in items:
        builder.add_item(item)
    return builder.build(TIME)


def row_path(batch: bytes) -> list[VersionedRecord]:
    return [VersionedRecord(logged.record, logged.version) for logged in iter_records(batch)]


def columnar_path(batch: bytes) -> list[VersionedRecord]:
    return [record for item in decode_batch(batch) for record in records_of(item)]


def framed(records: list[VersionedRecord], first_delta: int) -> bytes:
    """What the row path writes."""
    return b"".join(
        frame_record(delta, None, encode_value(*each)) for delta, each in enumerate(records, start=first_delta)
    )


def by_partition(records: list[VersionedRecord]) -> dict[tuple[type[Record], Uuid, int], list[VersionedRecord]]:
    """What happens to each partition, in order."""
    found: dict[tuple[type[Record], Uuid, int], list[VersionedRecord]] = {}
    for each in records:
        record = each.record
        if isinstance(record, PartitionRecord | PartitionChangeRecord):
            found.setdefault((type(record), record.topic_id, record.partition_id), []).append(each)
    return found


def assert_same(columns: list[VersionedRecord], rows: list[VersionedRecord]) -> None:
    """The same records; those of one partition, and all that are no mass records, in the same order."""
    assert sorted(map(repr, columns)) == sorted(map(repr, rows))
    assert by_partition(columns) == by_partition(rows)
    assert [repr(each) for each in columns if not is_mass(each)] == [repr(each) for each in rows if not is_mass(each)]


def is_mass(each: VersionedRecord) -> bool:
    return isinstance(each.record, PartitionRecord | PartitionChangeRecord)


@slow
@given(runs(st.integers(1, 200), repeats=True), starts)
def test_run_is_written_as_its_records_are_and_comes_back(run: Run, first_delta: int) -> None:
    piece = encode_items([run], first_delta)
    read = [record for item in decode_body(piece, first_delta, len(run)) for record in records_of(item)]

    assert [repr(each) for each in read] == [repr(each) for each in records_of(run)]


@slow
@given(mass_records(st.integers(1, 100)), starts)
def test_mass_records_of_mixed_shapes_are_read_as_written(records: list[VersionedRecord], first_delta: int) -> None:
    piece = framed(records, first_delta)
    assert piece == encode_items(records, first_delta)
    read = [record for item in decode_body(piece, first_delta, len(records)) for record in records_of(item)]

    assert_same(read, records)


@slow
@given(runs(st.integers(33, 200), repeats=True))
def test_run_read_as_one_run_has_equal_columns(run: Run) -> None:
    """Also where partitions occur again within the run: rows of one run keep their order."""
    (read,) = decode_body(encode_items([run], 8_192), 8_192, len(run))

    assert not isinstance(read, VersionedRecord)
    assert type(read) is type(run)
    assert columns_of(read) == columns_of(run)


def columns_of(run: Run) -> dict[str, tuple[bytes, tuple[int, ...], object]]:
    return {name: (column.tobytes(), column.shape, column.dtype) for name, column in run.columns()}


@slow
@given(any_items)
def test_batch_of_anything_reads_the_same_on_both_paths(parts: list[BatchItem | list[VersionedRecord]]) -> None:
    batch = batch_of(flattened(parts))
    assert_same(columnar_path(batch), row_path(batch))


@slow
@given(any_items, st.integers(200, 3_000))
def test_batches_under_a_limit_hold_the_same_records(
    parts: list[BatchItem | list[VersionedRecord]], bytes_max: int
) -> None:
    items = flattened(parts)
    batches = list(build_batches(items, TIME, bytes_max))

    for batch in batches:
        assert len(batch) <= bytes_max or checked_header(batch).record_count == 1
    assert [repr(each) for batch in batches for each in row_path(batch)] == [
        repr(each) for item in items for each in records_of(item)
    ]


def outcome(path: Callable[[bytes], list[VersionedRecord]], batch: bytes) -> list[VersionedRecord] | type[Exception]:
    """What is read, or the kind of error."""
    try:
        return path(batch)
    except UnsupportedRecord:
        return UnsupportedRecord
    except MalformedData:
        return MalformedData


@slow
@given(mass_records(st.integers(20, 60)), st.data())
def test_changed_bytes_of_a_body_are_the_same_to_both_paths(
    records: list[VersionedRecord], data: st.DataObject
) -> None:
    """Whatever a changed byte does, one path must not read what the other refuses."""
    batch = batch_of(list(records))
    body = bytearray(batch[HEADER_BYTES:])
    for _ in range(data.draw(st.integers(1, 2))):
        body[data.draw(st.integers(0, len(body) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    changed = build_batch(body, parse_header(batch).record_count, TIME)
    by_rows, by_columns = outcome(row_path, changed), outcome(columnar_path, changed)
    if isinstance(by_rows, list) and isinstance(by_columns, list):
        assert_same(by_columns, by_rows)
    else:
        assert by_rows == by_columns


@settings(max_examples=200)
@given(st.binary(min_size=1, max_size=200), st.integers(1, 200))
def test_any_body_is_the_same_to_both_paths(body: bytes, count: int) -> None:
    batch = build_batch(body, count, TIME)
    assert outcome(row_path, batch) == outcome(columnar_path, batch)
