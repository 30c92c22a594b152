"""Topics with few partitions and high numbers: what they cost goes by the pages that they use."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from quorate.metadata_log.records.records import PartitionRecord, TopicRecord, VersionedRecord
from quorate.snapshots.image.image import EMPTY_IMAGE, MetadataImage
from quorate.snapshots.image_digest import digest_image
from quorate.snapshots.replay.replay import replay
from quorate.snapshots.table.page_access import holds_partition
from quorate.snapshots.table.pages import PAGE_ROWS, Page
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


def test_blank_pages_are_not_looked_at(image: MetadataImage) -> None:
    asked = 0

    def count(page: Page) -> NDArray[np.bool_]:
        nonlocal asked
        asked += 1
        return holds_partition(page)

    assert len(image.partitions.select(count)) == 7
    assert (asked, len(image.partitions.pages) > 2 * LAST // PAGE_ROWS) == (5, True)


def test_partitions_counts_and_digest_are_those_of_all_rows(
    image: MetadataImage, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = image.partitions
    seen = digest_image(image).text, summarize(image)
    for name, numbers in NUMBERS.items():
        assert tuple(number for number, _ in table.partitions_of(image.topics.by_name[name].id)) == numbers
    monkeypatch.setattr(Page, "is_blank", False)
    assert seen == (digest_image(image).text, summarize(image))
