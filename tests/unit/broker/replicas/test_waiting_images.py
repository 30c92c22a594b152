"""Images that wait are taken in their order, few of them, and the last one is among them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

import pytest

from quorate.broker.replicas.waiting_images import IMAGES_HELD_MAX, WaitingImages
from quorate.metadata_log.records.records import PartitionChangeRecord, Record, RemoveTopicRecord, TopicRecord
from quorate.snapshots.image.image import EMPTY_IMAGE, MetadataImage
from tests.unit.broker.images import cluster_image, partition, replayed, uuid


def image(number: int) -> MetadataImage:
    return EMPTY_IMAGE._replace(provenance=EMPTY_IMAGE.provenance._replace(last_contained_offset=number))


def taken(waiting: WaitingImages) -> list[tuple[int, int, int]]:
    """Offset, end of the own logs, and how many it stands for, of each."""
    found = []
    while len(waiting):
        first = waiting.take_first()
        found.append((first.image.provenance.last_contained_offset, first.own_end, first.size))
    return found


def test_few_are_taken_one_by_one() -> None:
    waiting = WaitingImages()
    for number in range(IMAGES_HELD_MAX):
        waiting.add(image(number), 100 + number)
    assert taken(waiting) == [(number, 100 + number, 1) for number in range(IMAGES_HELD_MAX)]


@pytest.mark.parametrize("came", [17, 18, 31, 32, 33, 63, 64, 65, 305, 1_000])
def test_of_many_each_stands_for_as_many_before_it_and_claims_what_the_first_of_them_had(came: int) -> None:
    waiting = WaitingImages()
    for number in range(came):
        waiting.add(image(number), 100 + number)
        assert len(waiting) <= IMAGES_HELD_MAX
        assert waiting.count == number + 1
    found = taken(waiting)
    first, *sizes = [size for _, _, size in found]
    assert first == 1, "nobody knows what the one before it was"
    assert len(found) > IMAGES_HELD_MAX / 2
    assert set(sizes[:-1]) == {sizes[0]}
    assert sizes[-1] <= sizes[0]
    assert [last - size + 101 for last, _, size in found] == [own_end for _, own_end, _ in found]
    assert (found[-1][0], 1 + sum(sizes), waiting.count) == (came - 1, came, 0)


def shows(waiting: WaitingImages) -> list[MetadataImage]:
    return [waiting.take_first().image for _ in range(len(waiting))]


REPLICAS = uuid(0)
AWAY = PartitionChangeRecord(
    0, REPLICAS, replicas=(1, 3), isr=(1, 3), leader=1, directories=(uuid(501), uuid(503)), removing_replicas=()
)
BACK = PartitionChangeRecord(
    0,
    REPLICAS,
    replicas=(1, 3, 2),
    isr=(1, 3),
    adding_replicas=(2,),
    directories=(uuid(501), uuid(503), uuid(502)),
)
OTHER = PartitionChangeRecord(1, REPLICAS, leader=1)
CLUSTER = cluster_image([1, 2, 3], [partition(0, number, [1, 2, 3]) for number in range(2)])
MANY = 4 * IMAGES_HELD_MAX


def after(records: Iterable[Sequence[Record]]) -> list[MetadataImage]:
    """The states after these, one each."""
    images = [CLUSTER]
    for some in records:
        images.append(replayed(images[-1], *some))
    return images[1:]


def replicas_in(image: MetadataImage) -> tuple[int, ...]:
    """Of the first partition."""
    table = image.partitions
    (row,) = (
        row for row in table.all_rows().tolist() if (table.topic_id(row), table.partition_id(row)) == (REPLICAS, 0)
    )
    return tuple(table.partition(row).replicas)


def waits(images: Iterable[MetadataImage]) -> WaitingImages:
    waiting = WaitingImages()
    for one in images:
        waiting.add(one, 0)
    return waiting


@pytest.mark.parametrize("at", [1, 7, 20, MANY - 2])
@pytest.mark.parametrize("between", [0, 1, 5])
def test_replica_that_goes_away_and_comes_back_is_seen_to_be_away(at: int, between: int) -> None:
    changes: list[list[Record]] = [[OTHER] for _ in range(MANY + between)]
    changes[at], changes[at + between + 1] = [AWAY], [BACK]
    seen = shows(waits(after(changes)))
    replicas = [key for key, _ in groupby(map(replicas_in, seen))]
    assert replicas in ([(1, 2, 3), (1, 3), (1, 3, 2)], [(1, 3), (1, 3, 2)])
    assert len(seen) <= IMAGES_HELD_MAX


def test_where_replicas_always_move_none_stands_for_another_and_the_caller_takes_the_first() -> None:
    images = after([AWAY, BACK][number % 2 : number % 2 + 1] for number in range(IMAGES_HELD_MAX + 1))
    waiting = waits(images)
    assert len(waiting) == IMAGES_HELD_MAX + 1
    assert shows(waiting) == images


def test_topics_that_come_and_go_wait_as_anything_else() -> None:
    changes: list[list[Record]] = []
    for number in range(1, MANY):
        name, id_ = f"t-{number}", uuid(number)
        changes.append([TopicRecord(name, id_), partition(number, 0, [1, 2, 3])])
        if number % 3 == 0:
            changes.append([RemoveTopicRecord(id_)])
    images = after(changes)
    seen = shows(waits(images))
    assert len(seen) <= IMAGES_HELD_MAX
    assert seen[-1] is images[-1]


def test_replica_of_a_topic_that_grows_out_of_its_rows_is_seen_to_be_away() -> None:
    """It lies in other rows then: which replicas it had is not to be read where it was."""
    neighbours: list[list[Record]] = [[TopicRecord("n", uuid(1)), partition(1, 0, [1, 2, 3])], [OTHER]]
    grown: list[Record] = [partition(0, number, [1, 2, 3]) for number in range(2, 5_000)]
    images = after([*neighbours, [*grown, AWAY], [BACK], *[[OTHER]] * MANY])
    assert (1, 3) in map(replicas_in, shows(waits(images)))


@pytest.mark.parametrize("at", [3, 20])
def test_log_that_goes_back_is_seen_to(at: int) -> None:
    images = after([[OTHER]] * MANY)
    back = CLUSTER._replace(provenance=CLUSTER.provenance._replace(last_contained_offset=0))
    ends = [image.provenance.end_offset for image in shows(waits([*images[:at], back, *images[at:]]))]
    assert ends[ends.index(1) - 1] == images[at - 1].provenance.end_offset
    assert len(ends) <= IMAGES_HELD_MAX


def test_when_all_are_taken_the_next_stand_for_themselves_again() -> None:
    waiting = WaitingImages()
    for number in range(100):
        waiting.add(image(number), 0)
    taken(waiting)
    for number in range(3):
        waiting.add(image(number), 0)
    assert [size for _, _, size in taken(waiting)] == [1, 1, 1]
