"""Of a page in which leaders moved only those rows are looked at: what comes of it is as if all had been."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from quorate.broker.directories.places import changed_leaders
from quorate.broker.replicas import followed_pages, led_pages
from quorate.broker.replicas.followed_pages import FollowedPages, Leaders, LinkColumns
from quorate.broker.replicas.followed_rows import LEVEL, UNFOLLOWED
from quorate.broker.replicas.isr_book import IsrBook
from quorate.broker.replicas.led_rows import ALWAYS, NEVER, UNKNOWN
from quorate.broker.replicas.stand_in import Pace
from quorate.metadata_log.records.records import PartitionChangeRecord, PartitionRecord, RemoveTopicRecord
from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.table.pages import PAGE_ROWS, Page
from tests.unit.broker.images import change, cluster_image, partition, replayed, uuid

BROKERS = (1, 2, 3, 4)
#: Broker 1 is played here.
LEADERS = Leaders(np.array([2, 3, 4], np.int32), np.array([0, 1, 0], np.int32))
NUMBERS = [first + number for first in (0, PAGE_ROWS, 2 * PAGE_ROWS) for number in range(8)]
STEPS = 12

Look = Callable[[Page | None, Page], object]


def look_at_all(old: Page | None, new: Page) -> None:
    """What ``changed_leaders`` says of pages of which all may differ."""


def moved(draw: random.Random, image: MetadataImage) -> MetadataImage:
    """Some partitions have another leader, or none, and others another ISR."""
    changes: list[PartitionChangeRecord | PartitionRecord] = []
    for number in draw.sample(NUMBERS, draw.randrange(1, 9)):
        row = image.partitions.row(uuid(0), number)
        assert row is not None
        replicas = image.partitions.partition(row).replicas
        isr = draw.sample(replicas, draw.randrange(1, len(replicas) + 1))
        if draw.random() < 0.5:
            leader = image.partitions.partition(row).leader
            changes.append(change(0, number, isr=sorted({leader, *isr} - {-1}) or isr))
        else:
            changes.append(change(0, number, leader=draw.choice([*isr, -1]), isr=isr))
    if draw.random() < 0.2:  # a partition with other replicas: its page is looked at as a whole
        number = draw.choice(NUMBERS)
        changes.append(partition(0, number, draw.sample(BROKERS, replicas_of(number))))
    return replayed(image, *changes)


def image_of(draw: random.Random) -> MetadataImage:
    return cluster_image(
        list(BROKERS), [partition(0, number, draw.sample(BROKERS, replicas_of(number))) for number in NUMBERS]
    )


def replicas_of(number: int) -> int:
    """Of the partition: pages are of several widths."""
    return 3 if number < PAGE_ROWS else 4


def columns_of(draw: random.Random) -> LinkColumns:
    ends = np.array([draw.uniform(10, 1_000) for _ in range(2)])
    return LinkColumns(ends / 2, np.array([draw.random() < 0.8 for _ in range(2)]), np.zeros(2), ends)


def known_of_followed(pages: FollowedPages) -> dict[int, list[object]]:
    """What those hold that are level says their link, and of those that do not follow from here nobody asks."""
    known: dict[int, list[object]] = {}
    for number, one in pages._pages.items():
        held = np.where(np.isin(one.states, [LEVEL, UNFOLLOWED]), -1.0, one.held)
        known[number] = [one.rows.tolist(), one.links.tolist(), one.states.tolist(), held.tolist(), one.lacking]
    return known


@pytest.mark.parametrize("seed", range(25))
def test_followed_rows_are_those_of_a_look_at_whole_pages(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    draw = random.Random(seed)
    image = image_of(draw)
    pages, whole, columns = FollowedPages(), FollowedPages(), columns_of(draw)
    for step in range(STEPS):
        columns, end = columns_of(draw), draw.randrange(1, 1_000)
        found = pages.update(image, [1], LEADERS, columns, end, is_recast=False)
        with monkeypatch.context() as patched:
            patched.setattr(followed_pages, "changed_leaders", look_at_all)
            expected = whole.update(image, [1], LEADERS, columns, end, is_recast=False)
        assert found.dropped_links == expected.dropped_links, (seed, step)
        assert known_of_followed(pages) == known_of_followed(whole), (seed, step)
        assert pages.row_counts(2) == whole.row_counts(2)
        assert pages.copying_count == whole.copying_count == sum(one.lacking for one in pages._pages.values())
        elapsed, rows_max = draw.uniform(0, 100), draw.randrange(1, 20)
        for one in (pages, whole):
            one.take_unsaid(step % 2, [1], rows_max)
            one.copy(Pace(100), elapsed, columns)
            busy = {number for number, known in one._pages.items() if known.is_copying or known.has_unsaid}
            assert set(one._busy) == busy, "what every turn looks at has all that there is to do"
        image = moved(draw, image)
    pages.update(replayed(image, RemoveTopicRecord(topic_id=uuid(0))), [1], LEADERS, columns, 0, is_recast=False)
    assert not pages._busy


def known_of_led(book: IsrBook) -> dict[int, list[object]]:
    return {
        number: [
            one.rows.tolist(),
            one.caught_up_ms.tolist(),
            one.is_member.tolist(),
            one.hold_ms.tolist(),
            one.outside,
            one.oldest_ms,
        ]
        for number, one in book._led.pages.items()
    }


def noted(draw: random.Random, image: MetadataImage) -> Sequence[object]:
    """A report of followers, as arguments of ``IsrBook.note``."""
    numbers = draw.sample(NUMBERS, 6)
    states = [image.partitions.partition(image.partitions.rows_of(uuid(0))[number]) for number in numbers]
    return (
        np.frombuffer(uuid(0) * len(numbers), np.uint8).reshape(-1, 16),
        np.array(numbers, np.int32),
        np.array([state.leader_epoch for state in states], np.int32),
        np.array([draw.choice(state.replicas) for state in states], np.int32),
        np.array([draw.choice([ALWAYS, UNKNOWN, draw.uniform(0, 1_000)]) for _ in numbers]),
        np.array([draw.random() < 0.3 for _ in numbers]),
    )


@pytest.mark.parametrize("seed", range(25))
@pytest.mark.parametrize("trusts_isr", [True, False])
def test_led_rows_are_those_of_a_look_at_whole_pages(
    seed: int, trusts_isr: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw = random.Random(seed)
    image = image_of(draw)
    book, whole = (IsrBook(500.0, trusts_isr=trusts_isr) for _ in range(2))
    now_ms = 0.0
    for step in range(STEPS):
        book.update(image, frozenset({1, 2}), now_ms)
        with monkeypatch.context() as patched:
            patched.setattr(led_pages, "changed_leaders", look_at_all)
            whole.update(image, frozenset({1, 2}), now_ms)
        assert known_of_led(book) == known_of_led(whole), (seed, step)
        report, later = noted(draw, image), draw.uniform(0, 300)
        asked = []
        for one in (book, whole):
            one.note(*report)  # type: ignore[arg-type]
            one.expire(now_ms)
            proposals = list(one.due(now_ms, [], 4))
            asked.append([(p.leader, p.partition_ids.tolist(), p.isr.tolist()) for p in proposals])
            if step % 3 == 0:
                while list(one.due(now_ms, [], 4)):
                    pass  # until nothing is left to be looked at
                for sent in proposals:
                    one.postponed(sent, now_ms + 50)
            if step % 5 == 0:
                one.look_again()
            left_out = [known for number, known in one._led.pages.items() if number not in one._led.open]
            assert all(known.next_due_ms == NEVER and not known.awaited for known in left_out)
            assert set(one._led.open) <= set(one._led.pages)
        assert asked[0] == asked[1], (seed, step)
        assert book.next_due_after(now_ms) == whole.next_due_after(now_ms)
        now_ms += later
        image = moved(draw, image)


def test_changed_leaders_are_those_led_by_another_or_under_another_epoch() -> None:
    image = cluster_image(list(BROKERS), [partition(0, number, [1, 2, 3]) for number in range(5)])
    [old] = image.partitions.pages
    [new] = replayed(image, change(0, 1, leader=2), change(0, 3, leader=1), change(0, 4, isr=[1, 2])).partitions.pages
    found = changed_leaders(old, new)
    assert found is not None
    assert found.tolist() == [1, 3]
    unmoved = changed_leaders(old, replayed(image, change(0, 4, isr=[1, 2])).partitions.pages[0])
    assert unmoved is not None
    assert not len(unmoved)
    assert changed_leaders(None, old) is None
    grown = replayed(image, partition(0, 5, [1, 2, 3])).partitions.pages[0]
    assert changed_leaders(old, grown) is None
