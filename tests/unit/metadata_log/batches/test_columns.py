"""Mass records as columns: where runs begin and end, and what must not become one."""

import tracemalloc
from collections.abc import Callable, Iterable, Sequence

import numpy as np
import pytest

from quorate.metadata_log.batches.batch import build_batch, data_batch, frame_record, iter_records
from quorate.metadata_log.batches.builder import BatchBuilder, build_batches, encode_items, item_count
from quorate.metadata_log.batches.columns import decode_batch, decode_body
from quorate.metadata_log.batches.runs import BatchItem, PartitionChangeRun, PartitionRun
from quorate.metadata_log.errors import MalformedData, UnsupportedRecord
from quorate.metadata_log.records.codec import encode_value
from quorate.metadata_log.records.records import (
    ConfigRecord,
    NoOpRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
    VersionedRecord,
)
from tests.strategies import records_of

TIME = 1_700_000_000_000


def topic_id(number: int) -> bytes:
    return number.to_bytes(16, "big")


def changes(count: int, topic: int = 1, leader: int = 3) -> list[VersionedRecord]:
    """One change each for ``count`` partitions, all of one shape."""
    return [
        VersionedRecord(PartitionChangeRecord(n, topic_id(topic), isr=(1, 2), leader=leader), 2) for n in range(count)
    ]


def partitions(count: int, topic: int = 1) -> list[VersionedRecord]:
    return [
        VersionedRecord(PartitionRecord(n, topic_id(topic), (1, 2), (1, 2), leader=1, leader_epoch=0), 2)
        for n in range(count)
    ]


def no_ops(count: int) -> list[VersionedRecord]:
    return [VersionedRecord(NoOpRecord(), 0)] * count


def batch_of(items: Iterable[BatchItem]) -> bytes:
    builder = BatchBuilder()
    for item in items:
        builder.add_item(item)
    return builder.build(TIME)


def rows(items: Iterable[BatchItem]) -> list[VersionedRecord]:
    return [record for item in items for record in records_of(item)]


def kinds(items: Iterable[BatchItem]) -> list[str]:
    """What was read, as text: a record's class, or a run's with its rows."""
    return [
        type(item.record).__name__ if isinstance(item, VersionedRecord) else f"{type(item).__name__} {len(item)}"
        for item in items
    ]


def row_path(batch: bytes) -> list[VersionedRecord]:
    return [VersionedRecord(logged.record, logged.version) for logged in iter_records(batch)]


@pytest.mark.parametrize("before", [0, 1, 62, 63, 64, 65, 8_150, 8_191, 8_192, 8_193])
def test_run_at_deltas_where_their_varint_grows_has_the_bytes_of_single_records(before: int) -> None:
    """The offset delta takes two bytes from 64 on and three from 8192 on: rows of one run have different strides."""
    records = changes(100)
    numbers = np.arange(100, dtype=np.int32)
    run = PartitionChangeRun(
        2,
        np.frombuffer(topic_id(1) * 100, np.uint8).reshape(100, 16),
        numbers,
        isr=np.tile(np.array([1, 2], np.int32), (100, 1)),
        leader=np.full(100, 3, np.int32),
    )
    assert records_of(run) == records

    batch = batch_of([*no_ops(before), run])

    assert batch == batch_of([*no_ops(before), *records])
    assert rows(decode_batch(batch)) == [*no_ops(before), *records]


def test_run_longer_than_two_growths_comes_back_in_order() -> None:
    count = 9_000
    run = PartitionChangeRun(
        2,
        np.random.default_rng(1).integers(0, 256, (count, 16), np.uint8),
        np.arange(count, dtype=np.int32)[::-1].copy(),
        leader=np.arange(count, dtype=np.int32),
    )
    batch = batch_of([run])

    assert kinds(decode_batch(batch)) == ["PartitionChangeRun 9000"]  # offset deltas of one, two and three bytes
    assert rows(decode_batch(batch)) == records_of(run) == row_path(batch)


def test_records_of_one_shape_become_one_run_with_their_columns() -> None:
    records = [
        VersionedRecord(
            PartitionRecord(
                n, topic_id(n), (n, 1, 2), (n,), (), (2,), -1, 0, n * 2, n * 3, (topic_id(7),) * 3, (), (5, -1)
            ),
            2,
        )
        for n in range(50)
    ]  # fmt: skip
    (run,) = decode_batch(batch_of(records))

    assert isinstance(run, PartitionRun)
    assert run.version == 2
    assert run.partition_ids.tolist() == list(range(50))
    assert run.topic_ids[3].tobytes() == topic_id(3)
    assert run.replicas[3].tolist() == [3, 1, 2]
    assert run.removing_replicas.shape == (50, 0)
    assert run.adding_replicas.tolist() == [[2]] * 50
    assert run.leader_recovery_state is None
    assert run.directories is not None
    assert run.directories.shape == (50, 3, 16)
    assert run.eligible_leader_replicas is not None
    assert run.eligible_leader_replicas.shape == (50, 0)
    assert run.last_known_elr is not None
    assert run.last_known_elr.tolist() == [[5, -1]] * 50
    assert [run.record(n) for n in range(50)] == [each.record for each in records]
    assert [run.slice(10, 20).record(n) for n in range(10)] == [each.record for each in records[10:20]]


def test_few_records_are_read_one_by_one() -> None:
    assert kinds(decode_batch(batch_of(changes(31)))) == ["PartitionChangeRecord"] * 31
    assert kinds(decode_batch(batch_of(changes(32)))) == ["PartitionChangeRun 32"]


def test_runs_among_other_records_keep_the_order_of_the_log() -> None:
    records = [*no_ops(70), *changes(40), *no_ops(1), *partitions(40), *changes(40, leader=4)]
    batch = batch_of(records)

    assert kinds(decode_batch(batch))[70:] == [
        "PartitionChangeRun 40",
        "NoOpRecord",
        "PartitionRun 40",
        "PartitionChangeRun 40",
    ]
    assert rows(decode_batch(batch)) == records


def test_a_few_rows_of_another_shape_do_not_spoil_a_long_run() -> None:
    batch = batch_of([*changes(3, topic=1), *partitions(2, topic=2), *changes(5_000, topic=3)])
    found = kinds(decode_batch(batch))

    assert found[:5] == ["PartitionChangeRecord"] * 3 + ["PartitionRecord"] * 2
    assert found[5:] == ["PartitionChangeRun 5000"]
    assert rows(decode_batch(batch)) == row_path(batch)


def alternating(count: int, topic: int = 1) -> list[VersionedRecord]:
    """As Kafka writes the loss of a broker: some partitions get a new leader, some only lose a replica."""
    return [
        VersionedRecord(PartitionChangeRecord(n, topic_id(topic), isr=(1,), leader=2 if n % 3 else -2), 2)
        for n in range(count)
    ]


def test_alternating_shapes_are_gathered_into_a_run_each() -> None:
    batch = batch_of(alternating(300))
    found = kinds(decode_batch(batch))

    # The first few are read one by one, until it is clear that shapes alternate.
    assert found[:3] == ["PartitionChangeRecord"] * 3
    assert [kind for kind in found if "Run" in kind] == ["PartitionChangeRun 98", "PartitionChangeRun 196"]
    assert sorted(map(repr, rows(decode_batch(batch)))) == sorted(map(repr, row_path(batch)))


def test_partition_that_occurs_twice_among_alternating_shapes_keeps_its_order() -> None:
    """The second change must be replayed after the first: runs are made up to it, and from it on."""
    records = [*alternating(150), *alternating(150)]
    batch = batch_of(records)

    for partition in (0, 1, 149):
        changed = [each for each in rows(decode_batch(batch)) if partition_of(each) == partition]
        assert changed == [each for each in records if partition_of(each) == partition]
    assert any("Run" in kind for kind in kinds(decode_batch(batch)))


def partition_of(each: VersionedRecord) -> int:
    assert isinstance(each.record, PartitionChangeRecord | PartitionRecord)
    return each.record.partition_id


def test_same_partition_number_of_other_topics_is_no_repeat() -> None:
    batch = batch_of([*alternating(60, topic=1), *alternating(60, topic=2), *alternating(60, topic=2**100)])
    found = [kind for kind in kinds(decode_batch(batch)) if "Run" in kind]
    assert len(found) == 2


def test_topics_between_their_partitions_come_before_them() -> None:
    """Kafka writes each topic before its partitions, few at a time: together they are as fast as a long run."""
    records: list[VersionedRecord] = []
    for number in range(30):
        records.append(VersionedRecord(TopicRecord(f"t{number}", topic_id(number)), 0))
        records.append(VersionedRecord(ConfigRecord(2, f"t{number}", "a", "b"), 0))
        records += partitions(5, topic=number)
    items = list(decode_batch(batch_of(records)))

    assert sum(len(item) for item in items if isinstance(item, PartitionRun)) >= 100
    assert sorted(map(repr, rows(items))) == sorted(map(repr, records))
    declared: set[bytes] = set()
    for each in rows(items):
        if isinstance(each.record, TopicRecord):
            declared.add(each.record.topic_id)
        elif isinstance(each.record, PartitionRecord):
            assert each.record.topic_id in declared


def test_removal_of_a_topic_is_passed_by_nothing() -> None:
    records = [*alternating(100), VersionedRecord(RemoveTopicRecord(topic_id(1)), 0), *partitions(100, topic=1)]
    found = rows(decode_batch(batch_of(records)))

    assert found[100] == records[100]
    assert {type(each.record) for each in found[:100]} == {PartitionChangeRecord}
    assert {type(each.record) for each in found[101:]} == {PartitionRecord}


@pytest.mark.parametrize(
    "odd",
    [
        b"\1\5\2" + b"\0\0\0\7" + topic_id(9) + b"\1\0\1\0",  # a null array written out
        b"\1\5\2" + b"\0\0\0\7" + topic_id(9) + b"\1\x63\1\0",  # a tag of a later version
        b"\1\5\2" + b"\0\0\0\7" + topic_id(9) + b"\1\x81\0\4\0\0\0\1",  # a tag with a padded varint
    ],
    ids=["null array", "unknown tag", "padded varint"],
)
def test_record_that_no_run_can_hold_is_read_as_a_record(odd: bytes) -> None:
    values = [encode_value(each.record, each.version) for each in alternating(80)]
    values.insert(40, odd)
    body = b"".join(frame_record(delta, None, value) for delta, value in enumerate(values))
    batch = build_batch(body, len(values), TIME)

    assert sorted(map(repr, rows(decode_batch(batch)))) == sorted(map(repr, row_path(batch)))


def with_record(position: int, frame: bytes, records: Sequence[VersionedRecord]) -> bytes:
    """A batch of these records in which one has been replaced by ``frame``."""
    frames = [frame_record(delta, None, encode_value(each.record, each.version)) for delta, each in enumerate(records)]
    frames[position] = frame
    return build_batch(b"".join(frames), len(frames), TIME)


@pytest.mark.parametrize("records", [changes(200), alternating(200)], ids=["one shape", "alternating"])
@pytest.mark.parametrize("position", [0, 1, 50, 199])
@pytest.mark.parametrize(
    ("frame", "error"),
    [
        (frame_record(7, None, encode_value(PartitionChangeRecord(1), 2)), MalformedData),
        (frame_record(0, None, b"\1\5\3" + bytes(21)), MalformedData),
        (b"\x03" * 30, MalformedData),
        (b"\xff" * 30, MalformedData),
    ],
    ids=["wrong delta", "unknown version", "negative length", "no length"],
)
def test_bad_record_anywhere_is_refused_as_the_row_path_does(
    records: list[VersionedRecord], position: int, frame: bytes, error: type[Exception]
) -> None:
    batch = with_record(position, frame, records)
    with pytest.raises(error) as by_rows:
        list(iter_records(batch))
    with pytest.raises(error) as by_columns:
        list(decode_batch(batch))
    assert isinstance(by_columns.value, UnsupportedRecord) == isinstance(by_rows.value, UnsupportedRecord)


def test_number_of_records_that_the_header_does_not_say_is_refused() -> None:
    for records in (changes(100), alternating(100), changes(5)):
        frames = [frame_record(n, None, encode_value(each.record, each.version)) for n, each in enumerate(records)]
        with pytest.raises(MalformedData, match=f"records end at offset delta {len(records)}"):
            list(decode_batch(build_batch(b"".join(frames), len(records) + 1, TIME)))
        with pytest.raises(MalformedData):
            list(decode_batch(build_batch(b"".join(frames), len(records) - 1, TIME)))


def test_pieces_of_a_body_are_decoded_by_themselves() -> None:
    first, second = changes(100), [*no_ops(1), *partitions(40)]
    pieces = [encode_items(first, 0), encode_items(second, 100)]
    assert rows(decode_body(pieces[0], 0, 100)) == first
    assert rows(decode_body(pieces[1], 100, 41)) == second
    assert build_batch(b"".join(pieces), 141, TIME) == batch_of([*first, *second])


def test_batches_are_cut_below_the_limit_and_hold_everything() -> None:
    count, limit = 2_000, 20_000
    run = PartitionChangeRun(
        2, np.zeros((count, 16), np.uint8), np.arange(count, dtype=np.int32), leader=np.zeros(count, np.int32)
    )
    items: list[BatchItem] = [*no_ops(3), run, *no_ops(3), run]
    batches = list(build_batches(items, TIME, limit))

    assert max(map(len, batches)) <= limit
    assert min(map(len, batches[:-1])) > limit // 4
    assert [each for batch in batches for each in rows(decode_batch(batch))] == rows(items)


def test_record_larger_than_the_limit_gets_a_batch_of_its_own() -> None:
    large = VersionedRecord(ConfigRecord(2, "t", "n", "x" * 5_000), 0)
    batches = list(build_batches([*no_ops(2), large, *no_ops(2)], TIME, 1_000))
    assert [row_path(batch) for batch in batches] == [no_ops(2), [large], no_ops(2)]


def test_record_that_cannot_be_written_leaves_the_builder_as_it_was() -> None:
    builder = BatchBuilder()
    builder.add(NoOpRecord(), 0)
    with pytest.raises(MalformedData):
        builder.add(TopicRecord("x", b"short"), 0)
    assert builder.build(TIME) == data_batch([(NoOpRecord(), 0)], TIME)
    assert (builder.record_count, builder.size) == (1, len(builder.build(TIME)))


def test_item_counts_its_records() -> None:
    assert item_count(no_ops(1)[0]) == 1
    assert item_count(decode_batch(batch_of(changes(40)))[0]) == 40


def test_reading_and_writing_a_run_make_no_object_per_record() -> None:
    """The fence, create, load and replay paths depend on it: allocations must not grow with the number of rows."""

    def objects(count: int) -> int:
        run = PartitionChangeRun(
            2, np.zeros((count, 16), np.uint8), np.arange(count, dtype=np.int32), leader=np.zeros(count, np.int32)
        )
        tracemalloc.start()
        batch = batch_of([run])
        items = list(decode_batch(batch))
        snapshot = tracemalloc.take_snapshot()
        tracemalloc.stop()
        assert sum(map(item_count, items)) == count
        return sum(statistic.count for statistic in snapshot.statistics("filename"))

    objects(10_000)  # caches of layouts fill up
    assert objects(40_000) < objects(10_000) + 100


def test_run_of_long_records_takes_memory_for_those_that_are_there() -> None:
    long = tuple(range(4_000))
    batch = batch_of(
        VersionedRecord(PartitionChangeRecord(n, topic_id(1), isr=long, replicas=long, leader=3), 2) for n in range(80)
    )
    expected = row_path(batch)
    tracemalloc.start()
    items = list(decode_batch(batch))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kinds(items) == ["PartitionChangeRun 80"]
    assert rows(items) == expected
    assert peak < 6 * len(batch)


@pytest.mark.parametrize("row", [0, 64, 8_191, 8_192])
def test_run_with_a_damaged_byte_is_read_as_the_row_path_does(row: int) -> None:
    """Constant bytes, the offset delta and columns; in the first look, later ones, and another block."""
    frames = [frame_record(n, None, encode_value(one.record, one.version)) for n, one in enumerate(changes(8_300))]
    for place in (0, 3, 4, 7, 15, len(frames[row]) - 1):  # the third or fourth byte is of the offset delta
        damaged = frames[row][:place] + bytes([frames[row][place] ^ 2]) + frames[row][place + 1 :]
        batch = build_batch(b"".join([*frames[:row], damaged, *frames[row + 1 :]]), len(frames), TIME)
        assert read_or_refused(decode_batch, batch) == read_or_refused(row_path, batch), place


def read_or_refused(read: Callable[[bytes], Iterable[BatchItem]], batch: bytes) -> list[VersionedRecord] | str:
    try:
        return rows(read(batch))
    except (MalformedData, UnsupportedRecord) as error:
        return type(error).__name__
