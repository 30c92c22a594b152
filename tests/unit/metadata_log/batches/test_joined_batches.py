"""Batches read together: few runs, and each partition's changes in their order."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from random import Random

import pytest

from quorate.metadata_log.batches.batch import (
    HEADER_BYTES,
    build_batch,
    control_batch,
    data_batch,
    frame_record,
    iter_records,
    place_batch,
)
from quorate.metadata_log.batches.columns import decode_batch
from quorate.metadata_log.batches.joined_batches import JoinedBatches, join_batches
from quorate.metadata_log.batches.runs import BatchItem
from quorate.metadata_log.errors import MalformedData
from quorate.metadata_log.records import records as r
from quorate.metadata_log.records.codec import encode_value
from quorate.metadata_log.records.records import VersionedRecord

TOPICS = [Random(number).randbytes(16) for number in range(20)]
CHANGED = r.BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=0, fenced=1)


def change(chance: Random, number: int) -> r.PartitionChangeRecord:
    """Of one of 200 partitions at random; its leader is the change's number."""
    isr = tuple(chance.sample(range(5), chance.choice((2, 3))))
    return r.PartitionChangeRecord(chance.randrange(10), chance.choice(TOPICS), isr=isr, leader=number)


def batch(records: Sequence[object], base: int) -> bytes:
    """In versions 2 of changes and 0 of all else."""
    versions = [2 if isinstance(record, r.PartitionChangeRecord) else 0 for record in records]
    kind = control_batch if isinstance(records[0], r.LeaderChangeMessage) else data_batch
    return place_batch(kind(list(zip(records, versions, strict=True)), 7), base, 1)  # type: ignore[arg-type]


def scattered(count: int, changes: int) -> list[bytes]:
    """Batches of changes at random, each with a record of another kind among them."""
    chance, found, base = Random(5), [], 0
    for _ in range(count):
        records: list[object] = [change(chance, base + number) for number in range(changes)]
        records.insert(chance.randrange(changes), CHANGED)
        found.append(batch(records, base))
        base += len(records)
    return found


def items(joined: Sequence[JoinedBatches]) -> list[BatchItem]:
    return [item for one in joined for item in one.items or ()]


def flat(found: Sequence[BatchItem]) -> list[object]:
    records: list[object] = []
    for item in found:
        if isinstance(item, VersionedRecord):
            records.append(item.record)
        else:
            records += [item.record(row) for row in range(len(item))]
    return records


def by_partition(records: Sequence[object]) -> dict[tuple[bytes, int], list[object]]:
    found: dict[tuple[bytes, int], list[object]] = defaultdict(list)
    for record in records:
        if isinstance(record, r.PartitionChangeRecord):
            found[record.topic_id, record.partition_id].append(record)
    return found


def test_changes_of_many_batches_are_few_runs_and_keep_their_order_for_each_partition() -> None:
    log = scattered(30, 100)
    joined = list(join_batches(log))
    one_by_one = [item for data in log for item in decode_batch(data)]

    assert [(one.first, one.end) for one in joined] == [(0, 30)]
    assert by_partition(flat(items(joined))) == by_partition(flat(one_by_one))
    assert len(flat(items(joined))) == 30 * 101
    # 3,000 changes of 200 partitions: some 15 layers of two shapes, and what is left of the last ones. Each batch by
    # itself names partitions again and again, and is read one by one.
    runs = [item for item in items(joined) if not isinstance(item, VersionedRecord)]
    assert len(runs) < 60
    assert sum(map(len, runs)) > 2_500
    assert len([item for item in one_by_one if isinstance(item, VersionedRecord)]) > 2_500


@pytest.mark.parametrize(
    "record",
    [
        r.TopicRecord("t", bytes(16)),
        r.RemoveTopicRecord(bytes(16)),
        r.PartitionRecord(0, TOPICS[0], leader=1, replicas=(1,), isr=(1,)),
        r.ClearElrRecord("t"),
        r.FeatureLevelRecord("metadata.version", 27),
        r.BeginTransactionRecord("work"),
        r.EndTransactionRecord(),
        r.AbortTransactionRecord("no"),
        r.LeaderChangeMessage(leader_id=1),
    ],
    ids=lambda record: type(record).__name__,
)
def test_a_record_that_changes_may_not_pass_has_its_batch_to_itself(record: object) -> None:
    log = scattered(4, 40)
    log.insert(2, batch([record], 82))

    assert parts(log) == [(0, 2, False), (2, 3, True), (3, 5, False)]


def test_a_change_that_no_run_can_hold_is_not_lost() -> None:
    first, second = scattered(2, 40)
    odd = b"\1\5\2" + bytes(4) + TOPICS[0] + b"\1\x63\1\0"  # a tag of a later version
    third = place_batch(build_batch(frame_record(0, None, odd), 1, 7), 82, 1)
    log = [first, second, third]

    [joined] = join_batches(log)

    assert joined.items is not None
    assert by_partition(flat(joined.items)) == by_partition(flat([item for data in log for item in decode_batch(data)]))


def parts(log: Sequence[bytes]) -> list[tuple[int, int, bool]]:
    """First and end of what is read together, and whether it is a batch by itself."""
    return [(one.first, one.end, one.items is None) for one in join_batches(log)]


def test_a_batch_that_gains_nothing_by_company_has_itself_to_itself() -> None:
    """It is large; or its records are all as long, and lie there as a run; or there are few beside it."""
    small, large = scattered(4, 40), scattered(1, 4_096)
    equal = batch([r.PartitionChangeRecord(number, TOPICS[0], leader=1) for number in range(1_024)], 0)

    assert parts([*small[:2], *large, *small[2:]]) == [(0, 2, False), (2, 3, True), (3, 5, False)]
    assert parts([*small[:2], equal, *small[2:]]) == [(0, 2, False), (2, 3, True), (3, 5, False)]
    assert parts([*small[:2], *scattered(1, 1_024)]) == [(0, 3, False)]
    assert parts(scattered(4, 10)) == [(number, number + 1, True) for number in range(4)]
    assert parts([*small[:2], batch([r.TopicRecord("t", bytes(16))], 0), small[2]])[-1] == (3, 4, True)
    assert parts(large) == [(0, 1, True)]


def test_changes_of_too_many_shapes_are_read_one_by_one_and_keep_their_order() -> None:
    """Runs are looked for among the first changes of all partitions only."""
    chance, log = Random(3), []
    for base in range(0, 3_000, 50):
        records = [
            r.PartitionChangeRecord(
                number, TOPICS[0], isr=tuple(range(chance.randrange(9))), replicas=tuple(range(chance.randrange(9)))
            )
            for number in range(50)
        ]
        log.append(batch(records, base))
    one_by_one: list[object] = [logged.record for data in log for logged in iter_records(data)]

    [joined] = join_batches(log)

    assert joined.items is not None
    assert all(isinstance(item, VersionedRecord) for item in joined.items)
    assert by_partition(flat(joined.items)) == by_partition(one_by_one)
    assert flat(joined.items)[50:] == one_by_one[50:]


@pytest.mark.parametrize(
    "value",
    [b"\1\5\2", b"\1\5\2" + bytes(19), b"\1\5\x82\0" + bytes(4) + TOPICS[0] + b"\0"],
    ids=["head only", "cut short", "padded version"],
)
def test_a_change_that_does_not_name_its_partition_where_it_is_looked_for_has_its_batch_to_itself(value: bytes) -> None:
    odd = place_batch(build_batch(frame_record(0, None, value), 1, 7), 164, 1)

    assert parts([*scattered(4, 40), odd]) == [(0, 4, False), (4, 5, True)]


@pytest.mark.parametrize("record", [r.NoOpRecord(), change(Random(1), 1)], ids=lambda record: type(record).__name__)
def test_a_control_batch_of_data_records_is_left_to_be_refused(record: r.NoOpRecord | r.PartitionChangeRecord) -> None:
    framed = frame_record(0, None, encode_value(record, 2 if isinstance(record, r.PartitionChangeRecord) else 0))
    control = place_batch(build_batch(framed, 1, 7, is_control=True), 164, 1)

    assert parts([*scattered(4, 40), control]) == [(0, 4, False), (4, 5, True)]


def test_records_that_do_not_fill_their_batch_are_refused() -> None:
    first, second = scattered(2, 80)

    with pytest.raises(MalformedData):
        list(join_batches([first, second[:HEADER_BYTES] + b"\x7f" + second[HEADER_BYTES + 1 :]]))
