"""Epochs in pages: in the smallest type that holds a page's greatest, whoever writes them; nobody sees which."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np
import pytest

from quorate.metadata_log.batches.runs import BatchItem, PartitionChangeRun, PartitionRun
from quorate.metadata_log.records import records as r
from quorate.snapshots.errors import ReplayError
from quorate.snapshots.image.image import EMPTY_IMAGE, MetadataImage
from quorate.snapshots.replay.replay import replay
from quorate.snapshots.table.kept_counts import counted_anew, tally_of
from quorate.snapshots.table.page_access import gather
from quorate.snapshots.table.pages import EPOCH_COLUMNS, EPOCH_TYPE, PAGE_ROWS, Page
from quorate.snapshots.table.partition import Partition
from tests.record_stream import versioned

_TOPIC: Final = bytes(15) + b"\1"
_HIGHEST: Final = 2**31 - 1
#: On both sides of what each type holds.
_EPOCHS: Final = (-5, 0, 1, 254, 255, 256, 65_534, 65_535, 65_536, _HIGHEST - 2, _HIGHEST - 1)
#: Rows in which one differs from those around it: within a page, at its ends, and in the next one.
_ROWS: Final = (0, 17, PAGE_ROWS - 1, PAGE_ROWS, PAGE_ROWS + 1)
_COUNT: Final = 2 * PAGE_ROWS


def _declared(epoch: int, partitions: np.ndarray) -> PartitionRun:
    count = len(partitions)
    replicas = np.tile(np.array([1, 2, 3], np.int32), (count, 1))
    nobody, epochs = np.empty((count, 0), np.int32), np.full(count, epoch, np.int32)
    return PartitionRun(
        version=2,
        topic_ids=np.frombuffer(_TOPIC * count, np.uint8).reshape(count, 16),
        partition_ids=partitions.astype(np.int32),
        replicas=replicas,
        isr=replicas,
        removing_replicas=nobody,
        adding_replicas=nobody,
        leader=replicas[:, 0],
        leader_epoch=epochs,
        partition_epoch=epochs,
    )


def _with(epoch: int, rows: tuple[int, ...] = _ROWS) -> MetadataImage:
    """Two pages of partitions with low epochs, some with this one."""
    items: list[BatchItem] = [versioned(r.TopicRecord("t", _TOPIC)), _declared(1, np.arange(_COUNT))]
    return replay(EMPTY_IMAGE, [*items, _declared(epoch, np.array(rows))])


def _led_by(broker: int, partitions: np.ndarray) -> PartitionChangeRun:
    count = len(partitions)
    return PartitionChangeRun(
        version=2,
        topic_ids=np.frombuffer(_TOPIC * count, np.uint8).reshape(count, 16),
        partition_ids=partitions.astype(np.int32),
        leader=np.full(count, broker, np.int32),
    )


def _epochs(image: MetadataImage) -> list[list[int]]:
    table = image.partitions
    columns = table.gather(table.all_rows())
    assert columns.leader_epochs.dtype == columns.partition_epochs.dtype == EPOCH_TYPE
    return [columns.leader_epochs.tolist(), columns.partition_epochs.tolist()]


def _partition(image: MetadataImage, number: int) -> Partition:
    row = image.partitions.row(_TOPIC, number)
    assert row is not None
    return image.partitions.partition(row)


def _bytes_each(page: Page) -> list[int]:
    return [getattr(page, name).itemsize for name in EPOCH_COLUMNS]


@pytest.mark.parametrize("epoch", _EPOCHS)
def test_a_run_of_changes_raises_epochs_of_any_size(epoch: int) -> None:
    before = _with(epoch)
    expected = [1] * _COUNT
    for row in _ROWS:
        expected[row] = epoch
    assert _epochs(before) == [expected, expected]

    after = replay(before, [_led_by(2, np.arange(_COUNT))])

    assert _epochs(after) == [[one + 1 for one in expected]] * 2
    assert _epochs(before) == [expected, expected]  # an image is a value
    assert tally_of(after.partitions) == counted_anew(after.partitions.pages, after.partitions.own_min_isrs)


@pytest.mark.parametrize("epoch", _EPOCHS)
def test_one_record_says_the_same_as_a_run(epoch: int) -> None:
    by_run = by_record = _with(epoch)
    for row in _ROWS:
        by_run = replay(by_run, [_led_by(2, np.array([row]))])
        record = r.PartitionChangeRecord(partition_id=row, topic_id=_TOPIC, leader=2)
        by_record = replay(by_record, [versioned(record)])
        changed = _partition(by_record, row)
        assert changed == _partition(by_run, row)
        assert (changed.leader_epoch, changed.partition_epoch) == (epoch + 1, epoch + 1)
    assert by_record == by_run
    table = by_record.partitions
    assert tally_of(table) == counted_anew(table.pages, table.own_min_isrs)


@pytest.mark.parametrize("epoch", _EPOCHS)
def test_one_declared_partition_may_have_any_epoch(epoch: int) -> None:
    image = _with(1)
    low = _declared(epoch, np.array([3])).record(0)
    image = replay(image, [versioned(replace(low, leader_epoch=epoch, partition_epoch=7))])
    partition = _partition(image, 3)
    assert (partition.leader_epoch, partition.partition_epoch) == (epoch, 7)


@pytest.mark.parametrize("epoch", _EPOCHS)
def test_a_low_epoch_leaves_the_others_of_its_page(epoch: int) -> None:
    image = replay(_with(epoch), [_declared(3, np.array([5, 6]))])
    image = replay(image, [versioned(_declared(4, np.array([7])).record(0))])
    leader_epochs, partition_epochs = _epochs(image)
    assert leader_epochs == partition_epochs
    assert leader_epochs[4:9] == [1, 3, 3, 4, 1]
    assert [leader_epochs[row] for row in _ROWS] == [epoch] * len(_ROWS)


@pytest.mark.parametrize("rows", [[0, 1, 2], [0, 5], [0, PAGE_ROWS], [5]], ids=str)
def test_rows_have_one_type_wherever_they_come_from(rows: list[int]) -> None:
    for epoch in (1, 300, 70_000):
        pages = _with(epoch, (0, 5)).partitions.pages
        for column in gather(pages, np.array(rows), EPOCH_COLUMNS).values():
            assert column.dtype == EPOCH_TYPE
            assert column.tolist() == [epoch if row in (0, 5) else 1 for row in rows]


@pytest.mark.parametrize(("epoch", "size"), [(1, 1), (255, 1), (256, 2), (65_535, 2), (65_536, 4), (_HIGHEST, 4)])
def test_a_page_is_as_small_as_its_greatest_epoch_lets_it_be(epoch: int, size: int) -> None:
    first, second = _with(epoch, (0,)).partitions.pages
    assert _bytes_each(first) == [size, size]
    assert _bytes_each(second) == [1, 1]


def test_what_is_beyond_32_bits_is_refused_and_changes_nothing() -> None:
    image = _with(_HIGHEST)
    before = _epochs(image)
    with pytest.raises(ReplayError, match="beyond 32 bits"):
        replay(image, [_led_by(2, np.arange(_COUNT))])
    with pytest.raises(ReplayError, match="beyond 32 bits"):
        replay(image, [versioned(r.PartitionChangeRecord(partition_id=_ROWS[1], topic_id=_TOPIC, leader=2))])
    assert _epochs(image) == before


def test_page_whose_epochs_stay_low_stays_narrow_beside_one_whose_epochs_do_not() -> None:
    image = replay(_with(255, (PAGE_ROWS,)), [_led_by(2, np.array([5, PAGE_ROWS]))])
    assert [_bytes_each(page) for page in image.partitions.pages] == [[1, 1], [2, 2]]


@pytest.mark.parametrize("row", [0, 7, PAGE_ROWS + 3])
def test_run_in_which_any_epoch_would_be_beyond_the_highest_is_refused(row: int) -> None:
    image = _with(_HIGHEST, (row,))
    with pytest.raises(ReplayError, match="beyond 32 bits"):
        replay(image, [_led_by(2, np.arange(_COUNT))])
    assert _partition(image, row).leader_epoch == _HIGHEST
    assert _partition(image, 11).leader_epoch == 1
