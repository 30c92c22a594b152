"""Images that wait are taken in their order, few of them, and the last one is among them."""

from __future__ import annotations

import pytest

from quorate.broker.replicas.waiting_images import IMAGES_HELD_MAX, WaitingImages
from quorate.snapshots.image.image import EMPTY_IMAGE, MetadataImage


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
    sizes = [size for _, _, size in found]
    assert len(found) > IMAGES_HELD_MAX / 2
    assert set(sizes[:-1]) == {sizes[0]}
    assert sizes[-1] <= sizes[0]
    assert [last - size + 101 for last, _, size in found] == [own_end for _, own_end, _ in found]
    assert (found[-1][0], sum(sizes), waiting.count) == (came - 1, came, 0)


def test_when_all_are_taken_the_next_stand_for_themselves_again() -> None:
    waiting = WaitingImages()
    for number in range(100):
        waiting.add(image(number), 0)
    taken(waiting)
    for number in range(3):
        waiting.add(image(number), 0)
    assert [size for _, _, size in taken(waiting)] == [1, 1, 1]
