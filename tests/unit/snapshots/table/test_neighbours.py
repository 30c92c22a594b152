"""Rows of topics that lie beside each other are found without a look-up of each: the same rows as one by one."""

from __future__ import annotations

import random

import numpy as np
import pytest

from quorate.metadata_log.ids import Uuid
from quorate.metadata_log.records import records as r
from quorate.snapshots.image.image import EMPTY_IMAGE, MetadataImage
from quorate.snapshots.replay.replay import replay
from quorate.snapshots.table.extents import Extent
from quorate.snapshots.table.partition_table import PartitionTable
from tests.record_stream import as_runs, versioned

TOPICS = 120


class CountedMap:
    """The extents of a table; counts the topics that are looked up."""

    def __init__(self, table: PartitionTable) -> None:
        self._extents = table.extents
        self.looked_up = 0

    def get(self, key: Uuid, /) -> Extent | None:
        self.looked_up += 1
        return self._extents.get(key)

    def get_many(self, keys: list[Uuid], /) -> list[Extent | None]:
        self.looked_up += len(keys)
        return self._extents.get_many(keys)


def topic_id(number: int) -> bytes:
    return random.Random(number).randbytes(16)


def image_of(draw: random.Random, *, sparse: bool) -> MetadataImage:
    """Topics of some partitions; of sparse ones not every number was declared, and some moved or went."""
    records: list[r.Record] = []
    for topic in range(TOPICS):
        records.append(r.TopicRecord(f"t{topic}", topic_id(topic)))
        count = draw.choice([1, 2, 7, 60, 200])
        declared = sorted(draw.sample(range(count), max(1, count // 2))) if sparse else range(count)
        records += [declared_record(topic, number) for number in declared]
    if sparse:
        records += [declared_record(topic, 300) for topic in draw.sample(range(TOPICS), 5)]
        records += [r.RemoveTopicRecord(topic_id(topic)) for topic in draw.sample(range(TOPICS), 5)]
    return replay(EMPTY_IMAGE, [versioned(record) for record in records])


def declared_record(topic: int, number: int) -> r.PartitionRecord:
    return r.PartitionRecord(partition_id=number, topic_id=topic_id(topic), replicas=(1,), isr=(1,), leader=1)


def found_and_looked_up(table: PartitionTable, topic_ids: np.ndarray, numbers: np.ndarray) -> tuple[list[int], int]:
    counted = CountedMap(table)
    table = PartitionTable(table.pages, counted, table.directories, table.row_end)  # type: ignore[arg-type]
    return table.reserved_rows_for(topic_ids, numbers).tolist(), counted.looked_up


def one_by_one(table: PartitionTable, topic_ids: np.ndarray, numbers: np.ndarray) -> list[int]:
    rows = []
    for topic, number in zip(topic_ids, numbers.tolist(), strict=True):
        extent = table.extents.get(topic.tobytes())
        is_reserved = extent is not None and 0 <= number < extent.size
        rows.append(extent.first_row + number if extent is not None and is_reserved else -1)
    return rows


def asked_for(table: PartitionTable, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return table.column(rows, "topic_ids"), table.column(rows, "partition_ids")


@pytest.mark.parametrize("share", [1.0, 0.3, 0.1])
def test_some_partitions_in_the_order_of_the_table_cost_two_looks(share: float) -> None:
    draw = random.Random(7)
    table = image_of(draw, sparse=False).partitions
    held = table.all_rows()
    rows = held[np.array([draw.random() < share for _ in held])]
    found, looked_up = found_and_looked_up(table, *asked_for(table, rows))
    assert found == rows.tolist()
    assert looked_up == 2


@pytest.mark.parametrize("seed", range(24))
def test_any_partitions_have_the_rows_of_a_look_at_each(seed: int) -> None:
    """In order or not, twice, of topics that went, of numbers that were never declared, negative ones."""
    draw = random.Random(seed)
    table = image_of(draw, sparse=seed % 3 > 0).partitions
    held = table.all_rows()
    first = draw.randrange(len(held))
    rows = held[first : first + draw.randrange(1, len(held))]
    rows = rows[np.array([draw.random() < 0.5 for _ in rows], np.bool_)]
    if seed % 4 == 1:
        rows = rows[np.array(draw.sample(range(len(rows)), len(rows)), np.int64)]
    topic_ids, numbers = (column.copy() for column in asked_for(table, rows))
    for _ in range(draw.randrange(3) if len(numbers) else 0):
        at = draw.randrange(len(numbers))
        numbers[at] = draw.choice([-1, 0, 1, 250, 2**31 - 1, numbers[at - 1]])
        if draw.random() < 0.5:
            topic_ids[at] = np.frombuffer(topic_id(draw.randrange(TOPICS + 3)), np.uint8)
    assert found_and_looked_up(table, topic_ids, numbers)[0] == one_by_one(table, topic_ids, numbers)


def whole_table() -> PartitionTable:
    """Topics of three partitions each."""
    records: list[r.Record] = [r.TopicRecord(f"t{topic}", topic_id(topic)) for topic in range(TOPICS)]
    records += [declared_record(topic, number) for topic in range(TOPICS) for number in range(3)]
    return replay(EMPTY_IMAGE, [versioned(record) for record in records]).partitions


@pytest.mark.parametrize(
    ("at", "number", "topic"),
    [
        pytest.param(0, -1, None, id="negative, first"),
        pytest.param(30, -1, None, id="negative"),
        pytest.param(32, 3, None, id="beyond the topic's last"),
        pytest.param(-1, 3, None, id="beyond the last of all"),
        pytest.param(-1, 2**31 - 1, None, id="far beyond"),
        pytest.param(31, 0, None, id="twice"),
        pytest.param(31, 2, None, id="backwards"),
        pytest.param(30, None, 10_000, id="of no topic"),
        pytest.param(31, None, 10_000, id="of no topic, amid others"),
        pytest.param(30, None, 40, id="of another topic"),
        pytest.param(30, None, 11, id="of the next topic"),
    ],
)
@pytest.mark.parametrize("is_whole_topic", [True, False])
def test_one_partition_amid_neighbours_that_is_none_leaves_the_others_where_they_are(
    at: int, number: int | None, topic: int | None, is_whole_topic: bool
) -> None:
    table = whole_table()
    topic_ids, numbers = (column.copy() for column in asked_for(table, table.all_rows()))
    if number is not None:
        numbers[at] = number
    if topic is not None:
        topic_ids[at : at + (3 if is_whole_topic else 1)] = np.frombuffer(topic_id(topic), np.uint8)
    assert found_and_looked_up(table, topic_ids, numbers)[0] == one_by_one(table, topic_ids, numbers)


def test_topics_in_another_order_than_the_tables_are_found_each_where_it_lies() -> None:
    table = whole_table()
    topic_ids, numbers = (column.copy() for column in asked_for(table, table.all_rows()))
    topic_ids[30:33], topic_ids[33:36] = topic_ids[33:36].copy(), topic_ids[30:33].copy()
    assert found_and_looked_up(table, topic_ids, numbers)[0] == one_by_one(table, topic_ids, numbers)


def test_number_beyond_the_last_of_a_topic_is_not_the_first_of_the_next_topic() -> None:
    table = whole_table()
    topic_ids, numbers = (np.delete(column, 33, axis=0) for column in asked_for(table, table.all_rows()))
    numbers[32] = 3
    assert found_and_looked_up(table, topic_ids, numbers)[0] == one_by_one(table, topic_ids, numbers)


def test_number_before_the_first_of_a_topic_is_not_the_empty_row_before_it() -> None:
    records: list[r.Record] = [r.TopicRecord(f"t{topic}", topic_id(topic)) for topic in range(TOPICS)]
    records += [declared_record(topic, number) for topic in range(TOPICS) for number in range(3)]
    records += [r.RemoveTopicRecord(topic_id(29))]
    table = replay(EMPTY_IMAGE, [versioned(record) for record in records]).partitions
    topic_ids, numbers = (column.copy() for column in asked_for(table, table.all_rows()))
    numbers[29 * 3] = -1
    assert found_and_looked_up(table, topic_ids, numbers)[0] == one_by_one(table, topic_ids, numbers)


def test_topics_are_found_beside_each_other_where_they_were_declared_a_moment_ago() -> None:
    declared: list[r.Record] = [r.TopicRecord(f"t{topic}", topic_id(topic)) for topic in range(TOPICS)]
    declared += [declared_record(topic, number) for topic in range(TOPICS) for number in range(3)]
    changes: list[r.Record] = [
        r.PartitionChangeRecord(partition_id=1, topic_id=topic_id(topic), isr=()) for topic in range(TOPICS)
    ]
    image = replay(EMPTY_IMAGE, as_runs([*declared, *changes]))
    columns = image.partitions.gather(image.partitions.all_rows())
    assert [len(isr) for isr in columns.isr_ids()] == [1, 0, 1] * TOPICS
