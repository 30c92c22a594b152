"""Which rows are followed from here over which link, as images come."""

from __future__ import annotations

import numpy as np

from quorate.broker.replicas.followed_pages import FollowedPages, Leaders, LinkColumns
from quorate.metadata_log.records.records import RemoveTopicRecord
from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.table.pages import PAGE_ROWS
from tests.unit.broker.images import change, cluster_image, partition, replayed, uuid

LEADERS = Leaders(np.array([2, 3], np.int32), np.array([0, 1], np.int32))
COLUMNS = LinkColumns(np.zeros(2), np.ones(2, np.bool_), np.zeros(2), np.zeros(2))


def row_counts(pages: FollowedPages, image: MetadataImage) -> list[int]:
    """Of the links to brokers 2 and 3, after another image; broker 1 is played here."""
    pages.update(image, [1], LEADERS, COLUMNS, 0, is_recast=False)
    return pages.row_counts(2)


def test_rows_of_links_are_counted_on_as_leaders_move_and_topics_go() -> None:
    numbers = [0, 1, PAGE_ROWS, 2 * PAGE_ROWS]
    pages = FollowedPages()
    image = cluster_image([1, 2, 3], [partition(0, n, [2, 3, 1]) for n in numbers])
    assert row_counts(pages, image) == [4, 0]

    image = replayed(image, change(0, 0, leader=3), change(0, PAGE_ROWS, leader=3))
    assert row_counts(pages, image) == [2, 2]
    image = replayed(image, change(0, 0, leader=1))
    assert row_counts(pages, image) == [2, 1], "what is led here follows nobody"
    image = replayed(image, change(0, 1, isr=[2, 1]))
    assert row_counts(pages, image) == [2, 1]
    assert row_counts(pages, replayed(image, RemoveTopicRecord(topic_id=uuid(0)))) == [0, 0]
