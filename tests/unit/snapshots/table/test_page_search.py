"""A search that is asked again looks at pages that it does not know, and says what a look at all of them says."""

from __future__ import annotations

import random

import numpy as np
from numpy.typing import NDArray

from quorate.metadata_log.records.records import PartitionChangeRecord, VersionedRecord
from quorate.scripts.benchmarks.large_cluster import BROKERS, FIRST_BROKER_ID, large_image
from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.replay.replay import replay
from quorate.snapshots.table.page_access import has_leader
from quorate.snapshots.table.page_search import PageSearch
from quorate.snapshots.table.pages import PAGE_ROWS, Page

PAGES = 4
NOBODY = FIRST_BROKER_ID + BROKERS


class CountedLeader:
    """Looks for rows that a broker leads, and notes the pages."""

    def __init__(self, broker: int) -> None:
        self.broker = broker
        self.looked_at: list[Page] = []

    def __call__(self, page: Page) -> NDArray[np.bool_]:
        self.looked_at.append(page)
        return has_leader(page, self.broker)


def given(image: MetadataImage, row: int, broker: int) -> MetadataImage:
    """The image after a partition was given to a broker, as its only replica."""
    table = image.partitions
    change = PartitionChangeRecord(
        partition_id=table.partition_id(row), topic_id=table.topic_id(row), replicas=(broker,), isr=(broker,),
        leader=broker, directories=(bytes(16),),
    )  # fmt: skip
    return replay(image, [VersionedRecord(change, 1)])


def test_what_was_looked_at_in_vain_is_not_looked_at_again() -> None:
    counted, image = CountedLeader(NOBODY), large_image(PAGES * PAGE_ROWS)
    search = PageSearch(counted)

    assert not any(search.any(image.partitions) for _ in range(10))
    assert counted.looked_at == list(image.partitions.pages)

    changed = given(image, PAGE_ROWS, FIRST_BROKER_ID)
    assert not search.any(changed.partitions)
    assert counted.looked_at[PAGES:] == [changed.partitions.pages[1]]


def test_first_row_that_is_found_ends_the_search() -> None:
    counted, image = CountedLeader(FIRST_BROKER_ID), large_image(PAGES * PAGE_ROWS)

    assert PageSearch(counted).any(image.partitions)
    assert counted.looked_at == [image.partitions.pages[0]]


def test_a_search_says_what_a_new_one_says_of_every_image() -> None:
    chance, images = random.Random(1), [large_image(PAGES * PAGE_ROWS)]
    for _ in range(12):
        row, broker = chance.randrange(PAGES * PAGE_ROWS), chance.choice((NOBODY, FIRST_BROKER_ID))
        images.append(given(images[-1], row, broker))
    search = PageSearch(CountedLeader(NOBODY))

    said = [search.any(image.partitions) for image in (*images, *reversed(images), images[0], large_image(10))]
    expected = [
        bool(len(image.partitions.rows_led_by(NOBODY)))
        for image in (*images, *reversed(images), images[0], large_image(10))
    ]
    assert said == expected
    assert {True, False} == set(said)
