"""The example of docs/publishers.md does what the page says."""

import re
from pathlib import Path
from typing import Any

from quorate.broker.publisher import Manifest, MetadataPublisher, PublisherSet
from quorate.snapshots.image.image import MetadataImage
from tests.unit.broker.images import change, cluster_image, partition, replayed

PAGE = Path(__file__).parents[3] / "docs" / "publishers.md"


def example() -> type[MetadataPublisher]:
    """The class of the page's first program."""
    program = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)[0]
    names: dict[str, Any] = {}
    exec(compile(program, str(PAGE), "exec"), names)
    return names["ShardOwner"]  # type: ignore[no-any-return]


def publish(publishers: PublisherSet, image: MetadataImage) -> None:
    publishers.publish(image, Manifest(image.provenance, 1, 100, 0.1, is_checkpoint=False))


def test_example_publisher_starts_and_stops_the_shards_it_leads() -> None:
    owner: Any = example()(2)  # type: ignore[call-arg]
    publishers = PublisherSet([owner])
    image = cluster_image([1, 2], [partition(0, 0, [1, 2]), partition(0, 1, [2, 1]), partition(1, 0, [2, 1])])
    publish(publishers, image)
    publish(publishers, replayed(image, change(0, 0, leader=2), change(1, 0, leader=1)))

    end = image.provenance.end_offset
    assert owner.story == [
        f"{end - 1}: start topic-0-1",
        f"{end - 1}: start topic-1-0",
        f"{end + 1}: stop topic-1-0",
        f"{end + 1}: start topic-0-0",
    ]
    assert owner.shards == {("topic-0", 0), ("topic-0", 1)}
    assert publishers.states()[0].error_count == 0


def test_example_publisher_is_short() -> None:
    """Longer would say that the interface is not as simple as promised."""
    program = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)[0]

    assert program.count("\n") <= 30
