"""Counts that are kept cost what changed, and stay right where rows move."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from quorate.metadata_log.records.records import (
    ConfigRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from quorate.snapshots.counts import counting
from quorate.snapshots.counts.counting import CountedRows
from quorate.snapshots.counts.tally import TableTally
from quorate.snapshots.image.image import EMPTY_IMAGE, EMPTY_UNCOUNTED_IMAGE, MetadataImage
from quorate.snapshots.image.image_parts import MIN_INSYNC_REPLICAS, TOPIC_RESOURCE
from quorate.snapshots.replay.replay import replay
from quorate.snapshots.table import kept_counts, page_access
from quorate.snapshots.table.kept_counts import NOT_KEPT, counted_anew, tally_of
from quorate.snapshots.table.pages import PAGE_ROWS, Page, PagePredicate
from tests.record_stream import as_runs, versioned

BIG, SMALL = b"b" * 16, b"s" * 16


def topic(topic_id: bytes, size: int) -> list[Any]:
    partitions = [PartitionRecord(number, topic_id, (1, 2, 3), (1, 2, 3), leader=1) for number in range(size)]
    return [TopicRecord(f"topic-{topic_id[:1].decode()}", topic_id), *partitions]


def shrunk(topic_id: bytes, numbers: Sequence[int]) -> list[Any]:
    return [PartitionChangeRecord(number, topic_id, isr=(1, 2)) for number in numbers]


def two_topics() -> MetadataImage:
    return replay(EMPTY_IMAGE, as_runs([*topic(BIG, 2 * PAGE_ROWS + 5), *topic(SMALL, 50)]))


def assert_right(image: MetadataImage) -> None:
    assert tally_of(image.partitions) == counted_anew(image.partitions.pages, image.partitions.own_min_isrs)


@pytest.fixture
def counted_rows(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of rows of each part that was counted, as it is or as it was and is."""
    noted: list[int] = []

    def count(rows: CountedRows) -> TableTally:
        noted.append(len(rows))
        return counting.counted(rows)

    def differ(before: CountedRows, after: CountedRows) -> TableTally:
        noted.append(len(before))
        return counting.difference(before, after)

    monkeypatch.setattr(kept_counts, "counted", count)
    monkeypatch.setattr(kept_counts, "difference", differ)
    return noted


def test_counting_on_looks_at_the_rows_that_were_touched_as_they_were_and_as_they_are(counted_rows: list[int]) -> None:
    image = two_topics()
    tally_of(image.partitions)
    counted_rows.clear()
    for number in range(10):
        image = replay(image, [versioned(one) for one in shrunk(BIG, [1000 * (number % 5)])])
    image = replay(image, as_runs(shrunk(SMALL, range(20))))
    assert counted_rows == []

    tally = tally_of(image.partitions)

    assert counted_rows == [25]
    assert_right(image)
    counted_rows.clear()
    assert tally_of(image.partitions) == tally
    assert counted_rows == []


def test_mass_change_is_counted_in_parts_as_it_comes(counted_rows: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_counts, "_ROWS_AT_ONCE", 3000)
    monkeypatch.setattr(kept_counts, "_WAITING_MAX", 9000)
    image = two_topics()
    tally_of(image.partitions)
    counted_rows.clear()
    image = replay(image, as_runs(shrunk(BIG, range(5000))))
    assert counted_rows == []
    image = replay(image, as_runs(shrunk(BIG, range(4000, 8001))))

    assert counted_rows == [3000, 3000, 2001]
    counted_rows.clear()
    assert_right(image)


def test_small_changes_are_counted_when_there_are_many_of_them(
    counted_rows: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_counts, "_CHANGES_MAX", 5)
    image = two_topics()
    tally_of(image.partitions)
    counted_rows.clear()
    for number in range(3):
        image = replay(image, [versioned(one) for one in shrunk(BIG, [number])])
    for number in range(2):
        image = replay(image, as_runs(shrunk(SMALL, range(20 * number, 20 * number + 20))))
    assert counted_rows == []
    image = replay(image, [versioned(one) for one in shrunk(BIG, [7])])

    assert counted_rows == [44]
    counted_rows.clear()
    assert_right(image)


def test_rows_that_move_together_keep_their_counts() -> None:
    image = replay(two_topics(), [versioned(RemoveTopicRecord(BIG))])

    assert image.partitions.row_end == 50
    assert_right(image)
    assert_right(replay(image, as_runs(shrunk(SMALL, range(3)))))


def test_image_of_which_no_counts_are_kept_counts_nothing_until_it_is_asked(counted_rows: list[int]) -> None:
    both = as_runs([*topic(BIG, 2 * PAGE_ROWS + 5), *topic(SMALL, 50)])
    image = replay(EMPTY_UNCOUNTED_IMAGE, both)
    image = replay(image, as_runs(shrunk(BIG, range(7000))))
    image = replay(image, [versioned(RemoveTopicRecord(BIG))])
    assert (counted_rows, image.partitions.row_end) == ([], 50)

    assert tally_of(image.partitions) == tally_of(replay(EMPTY_IMAGE, as_runs(topic(SMALL, 50))).partitions)
    assert image.partitions.counts is NOT_KEPT


def test_topic_that_moves_as_it_grows_is_counted_once() -> None:
    image = two_topics()
    more = [PartitionRecord(2 * PAGE_ROWS + 5, BIG, (1, 2), (1,), leader=1)]

    assert_right(replay(image, [versioned(one) for one in more]))


def test_min_isr_of_a_topic_is_counted_from_its_config_to_the_end_of_it(counted_rows: list[int]) -> None:
    def config(value: str | None) -> MetadataImage:
        return replay(image, [versioned(ConfigRecord(TOPIC_RESOURCE, "topic-s", MIN_INSYNC_REPLICAS, value))])

    image = two_topics()
    tally_of(image.partitions)
    counted_rows.clear()
    image = config("3")

    assert set(tally_of(image.partitions).shapes.own.tolist()) == {0, 4}
    assert counted_rows == [50]
    assert_right(image)
    assert set(tally_of(config(None).partitions).shapes.own.tolist()) == {0}
    assert set(tally_of(config("many").partitions).shapes.own.tolist()) == {0}
    image = replay(image, [versioned(one) for one in (RemoveTopicRecord(SMALL), *topic(SMALL, 4))])
    assert set(tally_of(image.partitions).shapes.own.tolist()) == {0}
    assert_right(image)


@pytest.mark.parametrize("first_page", [0, 1])
def test_columns_that_some_of_the_touched_pages_share_are_read_again(first_page: int) -> None:
    """Many rows of two pages: in one the ISRs are others, in the other the directories."""
    image = two_topics()
    tally_of(image.partitions)
    numbers = range(200)
    isrs, others = first_page * PAGE_ROWS, (1 - first_page) * PAGE_ROWS
    moved = [PartitionChangeRecord(others + one, BIG, directories=(BIG, BIG, BIG)) for one in numbers]
    changes = [*shrunk(BIG, [isrs + one for one in numbers]), *moved]
    assert_right(replay(image, as_runs(sorted(changes, key=lambda change: change.partition_id))))


def test_no_page_is_looked_at_for_what_the_counts_have_none_of(monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker's return asks for all that nobody leads, and mostly that is nothing, however large the table is."""
    looked_at = list[str]()

    def noting(name: str, usual: PagePredicate) -> PagePredicate:
        def noted(page: Page) -> NDArray[np.bool_]:
            looked_at.append(name)
            return usual(page)

        return noted

    for name in ("is_leaderless", "is_reassigning"):
        monkeypatch.setattr(page_access, name, noting(name, getattr(page_access, name)))
    table = two_topics().partitions
    assert (len(table.rows_without_leader()), len(table.rows_reassigning()), looked_at) == (0, 0, [])
    lost = PartitionChangeRecord(3, SMALL, isr=(1,), leader=-1)
    moved = PartitionChangeRecord(4, SMALL, adding_replicas=(3,))
    table = replay(two_topics(), [versioned(lost), versioned(moved)]).partitions
    row = table.rows_of(SMALL)[0]
    assert (table.rows_without_leader().tolist(), table.rows_reassigning().tolist()) == ([row + 3], [row + 4])
    assert set(looked_at) == {"is_leaderless", "is_reassigning"}


def test_pages_are_looked_at_where_counts_are_not_kept(counted_rows: list[int]) -> None:
    image = replay(EMPTY_UNCOUNTED_IMAGE, as_runs([*topic(SMALL, 50)]))
    image = replay(image, [versioned(PartitionChangeRecord(3, SMALL, isr=(1,), leader=-1))])
    assert (len(image.partitions.rows_without_leader()), counted_rows) == (1, [])


def test_rows_that_lie_apart_are_counted_when_there_are_some_hundreds(
    counted_rows: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_counts, "_APART_MAX", 20)
    image = two_topics()
    tally_of(image.partitions)
    counted_rows.clear()
    image = replay(image, as_runs(shrunk(BIG, range(100))))
    image = replay(image, as_runs(shrunk(BIG, range(0, 8000, 600))))
    assert counted_rows == [], "a hundred that lie together, and fourteen that do not"
    image = replay(image, as_runs(shrunk(BIG, range(1, 3501, 500))))

    assert counted_rows == [119]
    counted_rows.clear()
    assert_right(image)


def test_min_isr_of_a_topic_without_partitions_leaves_nothing_to_count() -> None:
    image = replay(two_topics(), [versioned(TopicRecord("empty", b"e" * 16))])
    tally_of(image.partitions)
    for number in range(50):
        config = ConfigRecord(TOPIC_RESOURCE, "empty", MIN_INSYNC_REPLICAS, str(1 + number % 2))
        image = replay(image, [versioned(config)])
    base = image.partitions.counts._base
    assert base is not None
    assert (base.touched, base.touched_ones, base.waiting) == ((), (), 0)
