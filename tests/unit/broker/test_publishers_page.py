"""The example of docs/publishers.md does what the page says."""

import re
from pathlib import Path
from typing import Any

import pytest

from quorate import testing
from quorate.broker.publisher import Manifest, MetadataPublisher, PublisherSet
from quorate.snapshots.image.image import MetadataImage
from tests.unit.broker.images import change, cluster_image, partition, replayed

PAGE = Path(__file__).parents[3] / "docs" / "publishers.md"


PROGRAMS = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
(TEST,) = (program for program in PROGRAMS if "def test_" in program)


def run(program: str) -> dict[str, Any]:
    """The names of a program of the page."""
    names: dict[str, Any] = {}
    exec(compile(program, str(PAGE), "exec"), names)
    return names


def example() -> type[MetadataPublisher]:
    """The class of the page's first program."""
    return run(PROGRAMS[0])["ShardOwner"]  # type: ignore[no-any-return]


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
    assert PROGRAMS[0].count("\n") <= 30


def test_test_of_the_page_passes() -> None:
    run(PROGRAMS[0] + TEST)["test_shard_owner_has_the_shards_that_its_broker_leads"]()


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("if manifest.follows_failure", "if False"),
        ("local.followed() + local.stopped()", "local.followed()"),
        ("self.shards -= lost", "pass"),
    ],
)
def test_test_of_the_page_finds_a_publisher_that_is_wrong(right: str, wrong: str) -> None:
    assert right in PROGRAMS[0]
    names = run(PROGRAMS[0].replace(right, wrong) + TEST)
    with pytest.raises(testing.PublisherDiffers):
        names["test_shard_owner_has_the_shards_that_its_broker_leads"]()


def test_message_on_the_page_is_that_of_a_publisher_that_keeps_what_is_deleted() -> None:
    names = run(PROGRAMS[0].replace("local.followed() + local.stopped()", "local.followed()") + TEST)
    with pytest.raises(testing.PublisherDiffers) as caught:
        names["test_shard_owner_has_the_shards_that_its_broker_leads"]()
    assert f"PublisherDiffers: {caught.value}\n" in PAGE.read_text(encoding="utf-8")
