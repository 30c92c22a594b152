"""Differences of tables whose topics come, grow, move and go, beside a look at every partition."""

from __future__ import annotations

import random

import numpy as np
import pytest

from quorate.metadata_log.records import records as r
from quorate.snapshots.image.image import EMPTY_IMAGE, MetadataImage
from quorate.snapshots.replay.replay import replay
from quorate.snapshots.table.extents import numbered
from quorate.snapshots.table.partition import Partition
from quorate.snapshots.table.partition_table import PartitionTable
from quorate.snapshots.table.table_difference import TableDifference, table_difference
from tests.record_stream import versioned

Key = tuple[bytes, int]


def topic_id(number: int) -> bytes:
    return (1000 + number).to_bytes(16, "big")


def declared(topic: int, number: int) -> r.PartitionRecord:
    return r.PartitionRecord(
        partition_id=number, topic_id=topic_id(topic), replicas=(1, 2, 3), isr=(1, 2, 3), leader=1, leader_epoch=number
    )


def later(draw: random.Random, image: MetadataImage) -> MetadataImage:
    """The image after some records: topics that are new, grow, change and go."""
    records: list[r.Record] = []
    sizes = {t: len(image.partitions.rows_of(topic_id(t))) for t in range(30)}
    for topic in draw.sample(range(30), draw.randrange(1, 12)):
        if not sizes[topic]:
            records.append(r.TopicRecord(f"t{topic}", topic_id(topic)))
        elif draw.random() < 0.3:
            records.append(r.RemoveTopicRecord(topic_id(topic)))
            continue
        end = sizes[topic] + draw.choice([0, 0, 1, 700, 3_000] if sizes[topic] else [1, 5, 900])
        records += [declared(topic, number) for number in range(sizes[topic], end)]
        for number in draw.sample(range(sizes[topic]), min(sizes[topic], draw.randrange(4))):
            records.append(r.PartitionChangeRecord(partition_id=number, topic_id=topic_id(topic), isr=(1, 2)))
    return replay(image, [versioned(record) for record in records])


def all_of(table: PartitionTable) -> dict[Key, Partition]:
    rows = table.all_rows().tolist()
    return {(table.topic_id(row), table.partition_id(row)): table.partition(row) for row in rows}


def keys(table: PartitionTable, rows: list[int]) -> list[Key]:
    return [(table.topic_id(row), table.partition_id(row)) for row in rows]


@pytest.mark.parametrize("seed", range(12))
def test_difference_is_that_of_all_partitions_one_by_one(seed: int) -> None:
    draw = random.Random(seed)
    image = later(draw, EMPTY_IMAGE)
    for _ in range(draw.randrange(2)):
        image = later(draw, image)
    old, new = image.partitions, later(draw, later(draw, image)).partitions
    before, after = all_of(old), all_of(new)
    others = {key for key, state in after.items() if before.get(key) != state}
    whole = table_difference(old, new)
    assert set(keys(new, whole.rows.tolist())) == others
    assert set(keys(old, whole.removed_rows.tolist())) == before.keys() - after.keys()
    assert_pairs(old, new, whole)

    told = table_difference(old, new, of_new_topics=False)
    had = {topic for topic, _ in before}
    assert set(keys(new, told.rows.tolist())) == {key for key in others if key[0] in had}
    assert told.removed_rows.tolist() == whole.removed_rows.tolist()
    assert_pairs(old, new, told)


def assert_pairs(old: PartitionTable, new: PartitionTable, found: TableDifference) -> None:
    """Each row stands beside the row that its partition had, and all ascend."""
    assert (np.diff(found.rows) > 0).all()
    assert (np.diff(found.removed_rows) > 0).all()
    for row, old_row in zip(found.rows.tolist(), found.old_rows.tolist(), strict=True):
        [key] = keys(new, [row])
        assert (old.row(*key) if old.row(*key) is not None else -1) == old_row


def test_new_topics_are_not_told_where_nothing_was() -> None:
    new = later(random.Random(1), EMPTY_IMAGE).partitions
    assert len(table_difference(EMPTY_IMAGE.partitions, new).rows) == len(new) > 0
    assert not table_difference(EMPTY_IMAGE.partitions, new, of_new_topics=False)


def test_numbered_stretches_one_after_another_are_their_numbers_in_order() -> None:
    starts, sizes = np.array([10, 3, 7]), np.array([2, 0, 3])
    assert numbered(starts, sizes).tolist() == [10, 11, 7, 8, 9]
    assert numbered(starts[:0], sizes[:0]).tolist() == []
