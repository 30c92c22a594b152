"""Since when replicas are being added, record by record and out of mass changes."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest

from quorate.controller.feed.feed import FeedSource
from quorate.controller.reads import replica_additions
from quorate.controller.reads.additions import Additions, adding_changes
from quorate.controller.reads.replica_additions import LogAdditions
from quorate.metadata_log.batches.batch import data_batch, place_batch
from quorate.metadata_log.records.records import PartitionChangeRecord, Record, RemoveTopicRecord
from tests.unit.controller.reads.test_broker_absences import Log

TOPIC, OTHER = bytes(15) + b"\1", bytes(15) + b"\2"
END = 1_000


def change(adding: tuple[int, ...] | None, partition: int = 0, topic: bytes = TOPIC) -> PartitionChangeRecord:
    """Other parts of the record say nothing about additions."""
    return PartitionChangeRecord(partition_id=partition, topic_id=topic, isr=(1,), adding_replicas=adding)


def told(additions: Additions, *records: Record, begin: int = 0) -> Additions:
    """The same, behind a batch for each record, at times 1, 2, 3 and so on from there."""
    for offset, record in enumerate(records, start=begin):
        version = 2 if isinstance(record, PartitionChangeRecord) else 0
        batch = place_batch(data_batch([(record, version)], offset + 1), offset, 1)
        changes, end = adding_changes(batch, END)
        assert end == offset + 1
        additions.take(changes)
    return additions


@pytest.mark.parametrize(
    ("records", "since_ms"),
    [
        ([change(None)], {}),
        ([change((3,))], {3: 1}),
        ([change((3,)), change(None)], {3: 1}),
        ([change((3,)), change((3, 4))], {3: 1, 4: 2}),
        ([change((3, 4)), change((4,))], {4: 1}),
        ([change((3,)), change(())], {}),
        ([change((3,)), change(()), change((3,))], {3: 3}),
        ([change((3,)), change((4,), partition=1)], {3: 1}),
        ([change((3,)), RemoveTopicRecord(topic_id=TOPIC)], {}),
        ([change((3,)), RemoveTopicRecord(topic_id=OTHER)], {3: 1}),
    ],
)
def test_replica_is_added_since_the_first_record_that_has_it_among_the_added(
    records: list[Record], since_ms: dict[int, int]
) -> None:
    assert told(Additions(), *records).since_ms(TOPIC, 0, END) == since_ms


def test_state_of_a_while_ago_had_what_was_being_added_before_it() -> None:
    additions = told(Additions(), change((3,)), change((3, 4)))
    assert [additions.since_ms(TOPIC, 0, end) for end in (0, 1, 2)] == [{}, {3: 1}, {3: 1, 4: 2}]


def test_mass_change_of_a_log_tells_of_each_of_its_partitions() -> None:
    """As the log has them: many records of one shape are one run of columns."""
    changes: list[tuple[Record, int]] = [(change((number,), number), 2) for number in range(50)]
    ends: list[tuple[Record, int]] = [(change((), number), 2) for number in range(0, 50, 2)]
    batches = [place_batch(data_batch(changes, 7), 0, 1), place_batch(data_batch(ends, 8), 50, 1)]
    additions = Additions()

    found, end = adding_changes(b"".join(batches), END)
    additions.take(found)

    assert (end, len(found)) == (75, 75)
    assert [additions.since_ms(TOPIC, number, END) for number in (3, 4)] == [{3: 7}, {}]
    assert adding_changes(b"".join(batches), 50)[1] == 50


def test_no_more_partitions_are_remembered_than_there_is_room_for_and_room_comes_back() -> None:
    additions = told(Additions(partitions_max=2), *(change((9,), partition) for partition in range(3)))
    assert [additions.since_ms(TOPIC, partition, END) for partition in range(3)] == [{9: 1}, {9: 2}, {}]

    told(additions, change((), 0), change((9,), 3), begin=3)
    assert additions.since_ms(TOPIC, 3, END) == {9: 5}
    told(additions, RemoveTopicRecord(topic_id=TOPIC), change((9,), 0, OTHER), change((9,), 1, OTHER), begin=5)
    assert additions.since_ms(OTHER, 1, END) == {9: 8}


def of(source: Log, monkeypatch: pytest.MonkeyPatch, patience_s: float = 60.0) -> LogAdditions:
    monkeypatch.setattr(replica_additions, "PATIENCE_S", patience_s)
    return LogAdditions(cast(FeedSource, source))


async def test_log_is_read_once_and_gone_on_with_where_somebody_gave_up(monkeypatch: pytest.MonkeyPatch) -> None:
    source = Log((change((3,)), change((3, 4)), change((4,))))
    additions = of(source, monkeypatch)
    assert await additions.of(TOPIC, 0, 2) == {3: 1, 4: 2}

    asking = asyncio.create_task(additions.of(TOPIC, 0, 3))
    source.when_read = lambda _: asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    source.when_read = lambda _: None

    assert await additions.of(TOPIC, 0, 3) == {4: 2}
    assert source.read == [0, 1, 2, 2]


async def test_nothing_is_told_before_the_log_is_read_so_far_and_after_retention_what_is_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    source = Log((change((3,)), change((3, 4)), change((3, 4, 5))))
    additions = of(source, monkeypatch, patience_s=0.0)
    assert await additions.of(TOPIC, 0, 3) == {}
    source.log_start_offset = 1
    patient = of(source, monkeypatch)
    assert await patient.of(TOPIC, 0, 3) == {3: 2, 4: 2, 5: 3}


async def test_retention_that_overtakes_the_reading_ends_it_with_what_is_left_for_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    source = Log((change((3,)), change((3, 4)), change((3, 4, 5))))
    additions = of(source, monkeypatch)

    def deleted(offset: int) -> None:
        if offset == 0:
            source.log_start_offset = 2

    source.when_read = deleted
    assert await additions.of(TOPIC, 0, 3) == {}
    assert source.read == [0]
    assert await additions.of(TOPIC, 0, 3) == {3: 3, 4: 3, 5: 3}
