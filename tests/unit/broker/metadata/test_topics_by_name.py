"""Pages of topics by name, whatever part of them is shown, and what is asked for each."""

from __future__ import annotations

from random import Random

import pytest

from quorate.broker.metadata.topics_by_name import TopicsByName
from quorate.metadata_log.records.records import NoOpRecord, TopicRecord
from quorate.snapshots.image.image import EMPTY_IMAGE, MetadataImage
from tests.unit.broker.images import cluster_image, partition, replayed, uuid

#: More than are sorted at once.
TOPICS = 10_000


def image_of(*names: str) -> MetadataImage:
    return replayed(EMPTY_IMAGE, *(TopicRecord(name, uuid(number)) for number, name in enumerate(names)))


@pytest.fixture(scope="module")
def many() -> MetadataImage:
    names = [f"t-{number}" for number in range(TOPICS)]
    Random(7).shuffle(names)
    return image_of(*names)


def test_pages_are_in_the_order_of_names() -> None:
    image = cluster_image([1], [partition(number, 0, [1]) for number in range(12)])
    names = TopicsByName()
    assert [topic.name for topic in names.page(image, limit=3)] == ["topic-0", "topic-1", "topic-10"]
    assert [topic.name for topic in names.page(image, "topic-1", "topic-1")] == ["topic-10", "topic-11"]
    assert names.page(image, "topic-1", "topic-2") == names.page(image, "x") == []
    assert [topic.name for topic in names.page(image, "topic-2", "a")] == ["topic-2"]


def test_many_names_are_one_order_and_a_later_image_has_its_own(many: MetadataImage) -> None:
    names = TopicsByName()
    assert [topic.name for topic in names.page(many)] == sorted(f"t-{number}" for number in range(TOPICS))
    assert names.page(replayed(many, NoOpRecord()), limit=1)[0].name == "t-0"
    later = replayed(many, TopicRecord("a", uuid(TOPICS)))
    assert names.page(later, limit=1)[0].name == "a"
    assert names.page(many, limit=1)[0].name == "t-0"


def test_no_more_names_are_asked_about_than_fill_the_page(many: MetadataImage) -> None:
    asked = []

    def is_shown(name: str) -> bool:
        asked.append(name)
        return len(asked) % 2 == 0

    assert len(TopicsByName().page(many, "t-5", "t-55", 20, is_shown)) == 20
    assert len(asked) == 40
    assert asked == sorted(asked)
    assert min(asked) > "t-55"
