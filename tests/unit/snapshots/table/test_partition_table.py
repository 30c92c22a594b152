"""The partition table where random streams seldom go: many pages, wide rows, freed rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from quorate.metadata_log.batches.runs import PartitionRun
from quorate.metadata_log.records import records as r
from quorate.snapshots.checkpoints.checkpoint import checkpoint_batches, read_checkpoint
from quorate.snapshots.difference.delta import MetadataDelta
from quorate.snapshots.image.image import EMPTY_IMAGE, MetadataImage
from quorate.snapshots.image_digest import digest_image
from quorate.snapshots.replay.replay import replay
from quorate.snapshots.table import table_editor
from quorate.snapshots.table.kept_counts import counted_anew, tally_of
from quorate.snapshots.table.pages import NO_PARTITION, PAGE_ROWS
from quorate.snapshots.table.partition import Partition
from tests.record_stream import as_runs, versioned


def topic_id(number: int) -> bytes:
    return number.to_bytes(16, "big")


def partitions(number: int, first: int, end: int) -> PartitionRun:
    """Partitions of a topic, all alike but for their epoch, which is their number."""
    count = end - first
    replicas = np.tile(np.array([1, 2, 3], np.int32), (count, 1))
    nobody, zeros = np.empty((count, 0), np.int32), np.zeros(count, np.int32)
    return PartitionRun(
        version=2,
        topic_ids=np.frombuffer(topic_id(number) * count, np.uint8).reshape(count, 16),
        partition_ids=np.arange(first, end, dtype=np.int32),
        replicas=replicas,
        isr=replicas[:, ::-1],
        removing_replicas=nobody,
        adding_replicas=nobody,
        leader=replicas[:, 1],
        leader_epoch=np.arange(first, end, dtype=np.int32),
        partition_epoch=zeros,
    )


def created(image: MetadataImage, number: int, count: int) -> MetadataImage:
    topic = versioned(r.TopicRecord(f"t{number}", topic_id(number)))
    return replay(image, [topic, partitions(number, 0, count)])


def removed(image: MetadataImage, number: int) -> MetadataImage:
    return replay(image, [versioned(r.RemoveTopicRecord(topic_id(number)))])


def assert_holds(image: MetadataImage, sizes: dict[int, int]) -> None:
    """The table holds exactly these topics with so many partitions each, at their places."""
    table = image.partitions
    assert len(table) == sum(sizes.values())
    for number, size in sizes.items():
        columns = table.gather(np.array(table.rows_of(topic_id(number))))
        assert columns.partition_ids.tolist() == list(range(size))
        assert columns.leader_epochs.tolist() == list(range(size))
        assert columns.isr_order[:, :3].tolist() == [[2, 1, 0]] * size
        assert {uuid.tobytes() for uuid in columns.topic_ids} == {topic_id(number)}
    held = table.gather(table.all_rows())
    assert len(held) == len(table)
    assert (held.partition_ids != NO_PARTITION).all()


def test_topic_over_several_pages_grows_in_place_at_the_end_and_moves_elsewhere() -> None:
    image = created(created(EMPTY_IMAGE, 1, 5000), 2, 5000)
    in_place = replay(image, [partitions(2, 5000, 9000)])
    assert in_place.partitions.rows_of(topic_id(2)).start == image.partitions.rows_of(topic_id(2)).start
    assert_holds(in_place, {1: 5000, 2: 9000})

    moved = replay(in_place, [partitions(1, 5000, 5001)])
    assert moved.partitions.rows_of(topic_id(1)).start == 14_000
    assert_holds(moved, {1: 5001, 2: 9000})
    assert_holds(in_place, {1: 5000, 2: 9000})


@pytest.mark.parametrize("together", [1, 3, 256])
def test_topics_that_grow_at_once_move_whatever_their_order(together: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_editor, "_TOPICS_MOVED_TOGETHER", together)
    sizes = {number: 1 + 700 * number % 1_900 for number in range(12)}
    image = EMPTY_IMAGE
    for number, size in sizes.items():
        image = created(image, number, size)
    order = [7, 0, 11, 3, 10, 1, 4]
    image = replay(image, [partitions(number, sizes[number], sizes[number] + 90 + number) for number in order])
    assert_holds(image, sizes | {number: sizes[number] + 90 + number for number in order})
    assert tally_of(image.partitions) == counted_anew(image.partitions.pages, image.partitions.own_min_isrs)


def test_rows_of_removed_topics_are_given_back_in_time() -> None:
    """Topics come and go: the table stays within a few pages of what it holds, and nothing is lost on the way."""
    image = created(EMPTY_IMAGE, 0, 1000)
    for number in range(1, 60):
        image = created(image, number, 1000)
        image = removed(image, number) if number % 10 else image
    kept = dict.fromkeys(range(0, 60, 10), 1000)

    assert_holds(image, kept)
    assert image.partitions.row_end <= 2 * len(image.partitions) + 2 * PAGE_ROWS
    rebuilt = EMPTY_IMAGE
    for number in reversed(kept):
        rebuilt = created(rebuilt, number, 1000)
    assert rebuilt == image
    assert digest_image(rebuilt).value == digest_image(image).value


def test_last_topic_removed_leaves_an_empty_table() -> None:
    image = removed(created(EMPTY_IMAGE, 1, 10_000), 1)

    assert_holds(image, {})
    assert image.partitions.pages == ()
    assert image == EMPTY_IMAGE


def test_partition_without_replicas_can_be_all_there_is() -> None:
    """No controller makes one, but nothing in the format forbids it."""
    bare = r.PartitionRecord(0, topic_id(1), leader_epoch=0, partition_epoch=0)
    records: list[Any] = [r.TopicRecord("t", topic_id(1)), bare]
    by_rows = replay(EMPTY_IMAGE, [versioned(record) for record in records])

    assert replay(EMPTY_IMAGE, as_runs(records)) == by_rows
    assert by_rows.partitions.partition(0) == Partition.from_record(bare)
    assert by_rows.partitions.gather([0]).leaders.tolist() == [-1]
    assert read_checkpoint(list(checkpoint_batches(by_rows, 0)), None, 0) == by_rows
    assert digest_image(by_rows).value != digest_image(EMPTY_IMAGE).value


@pytest.mark.parametrize("width", [1, 8, 9, 16, 17, 32, 33, 63, 64])
def test_row_of_any_width_says_what_was_put_into_it(width: int) -> None:
    """Rows of other widths stand beside it in its page, by the row path and in runs."""
    brokers = tuple(range(1000, 1000 + width))
    narrow = r.PartitionRecord(0, topic_id(1), (1,), (1,), leader=1, leader_epoch=0, partition_epoch=0)
    wide = replace(
        narrow,
        partition_id=1,
        replicas=brokers,
        isr=brokers[::-1],
        leader=brokers[-1],
        adding_replicas=brokers[width // 2 :],
        removing_replicas=brokers[: width // 2],
        eligible_leader_replicas=brokers[-1:],
        last_known_elr=brokers[:1],
    )
    records: list[Any] = [r.TopicRecord("t", topic_id(1)), narrow, wide, replace(narrow, partition_id=2)]
    by_rows = replay(EMPTY_IMAGE, [versioned(record) for record in records])

    assert replay(EMPTY_IMAGE, as_runs(records)) == by_rows
    row = by_rows.partitions.row(topic_id(1), 1)
    assert row is not None
    assert by_rows.partitions.partition(row) == Partition.from_record(wide)
    assert by_rows.partitions.rows_with_isr(brokers[-1]).tolist() == [row]
    assert by_rows.partitions.rows_with_elr(brokers[-1]).tolist() == [row]
    columns = by_rows.partitions.gather([row])
    assert columns.ids_in(columns.replicas) == [brokers]
    assert columns.slots_in(brokers[1::2]).tolist() == [sum(1 << slot for slot in range(1, width, 2))]


@pytest.mark.parametrize(
    "wanted", [[], [3], [1, 5], [-1, 2], [2, 4095], [2, 4098], [1, 2**31 - 1], [-1, 2**31 - 1], [7, 3, 5]]
)
def test_slots_of_brokers_are_found_whatever_lies_between_their_ids(wanted: list[int]) -> None:
    held = [1, 2, 3, 4, 5, 7, 4095, 4096, 4097, 4098, 2**31 - 1]
    one = r.PartitionRecord(0, topic_id(1), replicas=(1, 6), isr=(6,), leader=6, leader_epoch=0, partition_epoch=0)
    records: list[Any] = [
        r.TopicRecord("t", topic_id(1)),
        *(replace(one, partition_id=number, replicas=(broker, 6)) for number, broker in enumerate(held)),
        replace(one, partition_id=len(held), replicas=(9, 6, 8)),  # the others have a slot that nobody is in
    ]
    image = replay(EMPTY_IMAGE, [versioned(record) for record in records])
    columns = image.partitions.gather(np.array(image.partitions.rows_of(topic_id(1))))

    assert columns.slots_in(wanted).tolist() == [*(int(broker in wanted) for broker in held), 0]
    assert columns.slots_in([6]).tolist() == [2] * (len(held) + 1)


def test_partition_without_leader_is_led_by_nobody_whoever_is_in_its_slots() -> None:
    """A last-known ELR may hold -1, which is also how a record says that there is no leader."""
    of_both: dict[str, Any] = {
        "topic_id": topic_id(1),
        "removing_replicas": (),
        "adding_replicas": (),
        "leader_recovery_state": 0,
    }
    of_both |= {"leader_epoch": 1, "partition_epoch": 1, "replicas": (), "isr": (), "directories": ()}
    records = [
        r.TopicRecord("t1", topic_id(1)),
        r.PartitionRecord(partition_id=0, leader=-1, last_known_elr=(-1,), eligible_leader_replicas=None, **of_both),
        r.PartitionRecord(partition_id=1, leader=-10, last_known_elr=(-10,), eligible_leader_replicas=None, **of_both),
    ]
    by_rows = replay(EMPTY_IMAGE, [versioned(record) for record in records])
    assert replay(EMPTY_IMAGE, as_runs(records)) == by_rows
    assert by_rows.partitions.rows_without_leader().tolist() == [0]


def test_page_keeps_its_width_when_its_widest_row_is_narrow_again() -> None:
    image = created(EMPTY_IMAGE, 1, 10)
    wide = r.PartitionChangeRecord(partition_id=3, topic_id=topic_id(1), replicas=tuple(range(40)))
    back = r.PartitionChangeRecord(partition_id=3, topic_id=topic_id(1), replicas=(1, 2, 3))
    image = replay(image, [versioned(wide), versioned(back)])

    assert image.partitions.pages[0].width == 40
    row = image.partitions.row(topic_id(1), 3)
    assert row is not None
    assert image.partitions.partition(row).isr == (3, 2, 1)
    assert image.partitions.partition(row).replicas == (1, 2, 3)


def test_numbers_left_out_are_no_partitions() -> None:
    image = replay(created(EMPTY_IMAGE, 1, 2), [partitions(1, 5, 6)])
    table = image.partitions

    assert [number for number, _ in table.partitions_of(topic_id(1))] == [0, 1, 5]
    assert [table.row(topic_id(1), number) is None for number in range(-1, 7)] == [
        *(True, False, False, True, True, True, False, True)
    ]
    assert len(table) == len(table.all_rows()) == 3
    assert table.rows_without_leader().tolist() == []


def test_table_changed_shares_every_page_that_did_not_change() -> None:
    image = created(EMPTY_IMAGE, 1, 3 * PAGE_ROWS)
    change = r.PartitionChangeRecord(partition_id=PAGE_ROWS + 7, topic_id=topic_id(1), leader=3)
    pages, changed = image.partitions.pages, replay(image, [versioned(change)]).partitions.pages

    assert [before is after for before, after in zip(pages, changed, strict=True)] == [True, False, True]
    assert changed[1].slots is pages[1].slots
    assert changed[1].leader_slots is not pages[1].leader_slots


@pytest.mark.parametrize("number", [0, PAGE_ROWS - 1, PAGE_ROWS, 2 * PAGE_ROWS])
def test_tables_with_one_partition_that_differs_are_not_equal_and_so_again_when_it_is_the_same(number: int) -> None:
    before = created(EMPTY_IMAGE, 1, 2 * PAGE_ROWS + 1)
    told = versioned(r.PartitionChangeRecord(partition_id=number, topic_id=topic_id(1), isr=(1, 2)))
    after, beside = replay(before, [told]), replay(before, [told])
    assert after.partitions.extents is before.partitions.extents
    assert after.partitions != before.partitions
    assert MetadataDelta(before, after)
    assert after.partitions == beside.partitions
    assert not MetadataDelta(after, beside)
