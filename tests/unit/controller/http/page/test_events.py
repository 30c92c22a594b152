"""What a stream takes for a change: anything that an answer shows, and no record that changes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from quorate.controller.http.page.events import Sight
from quorate.controller.process.image_node import node_of
from quorate.metadata_log.ids import Uuid
from quorate.snapshots.image.image import EMPTY_IMAGE, MetadataImage
from quorate.snapshots.image.image_parts import Provenance
from quorate.snapshots.table.cluster import ClusterImage


class NoLog:
    """``ToldByLog`` of an image alone."""

    async def at(self, end_offset: int) -> Mapping[int, int]:
        return MappingProxyType({})

    async def of(self, topic_id: Uuid, partition: int, end_offset: int) -> Mapping[int, int]:
        return MappingProxyType({})


def sight(image: MetadataImage, leader_id: int | None = 1) -> Sight:
    return Sight(node_of(image, "a", leader_id, NoLog()))


async def test_sight_of_a_state_that_only_reaches_further_shows_the_same() -> None:
    before = sight(EMPTY_IMAGE)
    after = sight(EMPTY_IMAGE._replace(provenance=Provenance(last_contained_offset=6, log_time_ms=9)))

    assert after.shows_the_same(before)
    assert (before.told["state_offset"], after.told["state_offset"]) == (0, 7)


async def test_sight_of_another_part_or_of_another_leader_shows_something_else() -> None:
    before = sight(EMPTY_IMAGE)

    assert not sight(EMPTY_IMAGE._replace(cluster=ClusterImage())).shows_the_same(before)
    assert not sight(EMPTY_IMAGE, leader_id=None).shows_the_same(before)
    assert not sight(EMPTY_IMAGE._replace(provenance=Provenance(epoch=2))).shows_the_same(before)
