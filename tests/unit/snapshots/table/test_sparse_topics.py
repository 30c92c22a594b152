"""Topics with few partitions and high numbers: what they cost goes by the pages that they use."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from quorate.metadata_log.records.records import PartitionRecord, TopicRecord, VersionedRecord
from quorate.snapshots.image.image import EMPTY_IMAGE, MetadataImage
from quorate.snapshots.image_digest import digest_image
from quorate.snapshots.replay.replay import replay
from quorate.snapshots.table.page_access import holds_partition, used_rows
from quorate.snapshots.table.pages import PAGE_ROWS, Page
from quorate.snapshots.views import summary
from quorate.snapshots.views.summary import summarize

LAST = 2**22 - 1
#: By topic.
NUMBERS = {"sparse": (0, 5_000, LAST), "usual": (0, 1, 2), "last-only": (LAST,)}


@pytest.fixture(scope="module")
def image() -> MetadataImage:
    records: list[VersionedRecord] = []
    for number, (name, partitions) in enumerate(NUMBERS.items(), 1):
        topic = bytes([number] * 16)
        records.append(VersionedRecord(TopicRecord(name, topic), 0))
        for partition in partitions:
            record = PartitionRecord(partition, topic, replicas=(1,), isr=(1,), leader=1, directories=(topic,))
            records.append(VersionedRecord(record, 1))
    return replay(EMPTY_IMAGE, records)


def test_blank_pages_are_not_looked_at(image: MetadataImage, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = 0

    def count(page: Page) -> NDArray[np.bool_]:
        nonlocal asked
        asked += 1
        return holds_partition(page)

    assert len(image.partitions.select(count)) == 7
    assert (asked, len(image.partitions.pages) > 2 * LAST // PAGE_ROWS) == (5, True)
    monkeypatch.setattr(summary, "holds_partition", count)
    summarize(image)
    assert asked - 5 == 5 + 1  # and one for the names of what is counted


def test_rows_of_blank_pages_are_left_out(image: MetadataImage) -> None:
    table = image.partitions
    rows = table.rows_of(image.topics.by_name["sparse"].id)
    stretches = list(used_rows(table.pages, rows.start, rows.stop))
    assert [any(rows[number] in range(*one) for one in stretches) for number in NUMBERS["sparse"]] == [True] * 3
    assert (len(rows), len(stretches)) == (LAST + 1, 3)


def test_partitions_counts_and_digest_are_those_of_all_rows(
    image: MetadataImage, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = image.partitions
    seen = digest_image(image).text, summarize(image)
    for name, numbers in NUMBERS.items():
        assert tuple(number for number, _ in table.partitions_of(image.topics.by_name[name].id)) == numbers
    monkeypatch.setattr(Page, "is_blank", False)
    assert seen == (digest_image(image).text, summarize(image))
