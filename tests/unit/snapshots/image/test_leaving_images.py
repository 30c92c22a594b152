"""What nobody keeps any more is freed a few parts at a time, in the histories that brokers and controllers keep."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import count, pairwise
from typing import Any

import numpy as np
import pytest

from quorate.controller.background.checkpoint_pace import Unpaced
from quorate.controller.reads import digests
from quorate.controller.reads.digests import ANCHORS_MAX, StateDigests
from quorate.snapshots.digest_memory import DigestMemory
from quorate.snapshots.image import leaving_images
from quorate.snapshots.image.image import EMPTY_IMAGE, MetadataImage
from quorate.snapshots.image.image_history import IMAGES_KEPT, ImageHistory
from quorate.snapshots.image.leaving_images import GROUPS_AT_ONCE, PAGES_AT_ONCE, PAGES_WAITING_MAX, LeavingImages
from quorate.snapshots.maps.persistent_map import PersistentMap
from quorate.snapshots.table.pages import Page
from quorate.snapshots.table.partition_table import PartitionTable

PAGES = 4 * PAGES_AT_ONCE + 3
#: So many keys are in 32 groups.
GROUPS = 32
KEYS = 10_000


class _Value:
    """Of a map: whatever a weak reference can be to."""


class Freed:
    """States of many pages each that no other has, and how many of these are freed."""

    def __init__(self) -> None:
        self.count = 0
        self._made = 0

    def image(self) -> MetadataImage:
        """One that changes everything."""
        pages = []
        for _ in range(PAGES):
            page = Page.blank(1)
            page.leader_epochs = np.full(1, self._made)
            weakref.finalize(page.leader_epochs, self._note)
            pages.append(page)
        return self.following(EMPTY_IMAGE._replace(partitions=PartitionTable(pages=tuple(pages))))

    def image_of_topics(self, which: str = "by_id") -> MetadataImage:
        """One with a map of topics that has no value that others have."""
        values = [_Value() for _ in range(KEYS)]
        for value in values:
            weakref.finalize(value, self._note)
        entries: PersistentMap[Any, Any] = PersistentMap(dict(enumerate(values)))
        assert len(entries.groups_apart(PersistentMap())) == GROUPS
        if which == "extents":
            table = PartitionTable(extents=entries)
            return self.following(EMPTY_IMAGE._replace(partitions=table))
        return self.following(EMPTY_IMAGE._replace(topics=replace(EMPTY_IMAGE.topics, **{which: entries})))

    def following(self, image: MetadataImage) -> MetadataImage:
        """One that changes nothing."""
        self._made += 1
        return image._replace(provenance=EMPTY_IMAGE.provenance._replace(last_contained_offset=self._made))

    def by_each(self, note: Callable[[MetadataImage], None], images: Iterable[MetadataImage]) -> list[int]:
        """How many pages each of some new states frees."""
        counts = []
        for image in images:
            before = self.count
            note(image)
            counts.append(self.count - before)
        return counts

    def _note(self) -> None:
        self.count += 1


#: A state leaves, and its pages with those after it.
STEPS = [0, *[PAGES_AT_ONCE] * 4, 3]


def test_history_frees_a_large_state_in_steps() -> None:
    freed, history = Freed(), ImageHistory()
    history.add(freed.image())
    newest = freed.image()
    counts = freed.by_each(history.add, (freed.following(newest) for _ in range(IMAGES_KEPT + 6)))
    assert counts == [0] * (IMAGES_KEPT - 1) + [*STEPS, 0]


def test_what_waits_is_bounded_where_every_state_changes_everything() -> None:
    freed, history = Freed(), ImageHistory()
    counts = freed.by_each(history.add, (freed.image() for _ in range(40)))
    assert PAGES * 40 - freed.count <= PAGES * IMAGES_KEPT + PAGES_WAITING_MAX
    assert counts[IMAGES_KEPT : IMAGES_KEPT + 2] == [0, PAGES_AT_ONCE]


def test_history_frees_large_maps_in_steps() -> None:
    freed, history = Freed(), ImageHistory()
    history.add(freed.image_of_topics())
    newest = freed.image_of_topics()
    counts = freed.by_each(history.add, (freed.following(newest) for _ in range(IMAGES_KEPT + 6)))
    assert counts[:IMAGES_KEPT] == [0] * IMAGES_KEPT
    assert (sum(counts), counts.count(0)) == (KEYS, len(counts) - GROUPS // GROUPS_AT_ONCE)
    assert max(counts) < 1.5 * KEYS * GROUPS_AT_ONCE / GROUPS


def test_groups_of_maps_that_wait_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    freed, leaving = Freed(), LeavingImages()
    monkeypatch.setattr(leaving_images, "GROUPS_WAITING_MAX", GROUPS)
    for _ in range(3):
        leaving.add(freed.image_of_topics(), EMPTY_IMAGE)
    assert freed.count == 2 * KEYS


def test_anchors_are_freed_in_steps_too(monkeypatch: pytest.MonkeyPatch) -> None:
    freed, clock = Freed(), count(1.0, 1.0)
    monkeypatch.setattr(digests, "ANCHOR_SECONDS", 4.0)
    monkeypatch.setattr("time.monotonic", lambda: next(clock))
    log: Any = None
    kept = StateDigests(log, DigestMemory(), Unpaced())
    kept.note(freed.image())
    newest = freed.image()
    counts = freed.by_each(kept.note, (freed.following(newest) for _ in range(4 * ANCHORS_MAX + 6)))
    assert sum(counts[: 4 * ANCHORS_MAX]) == 0
    assert [freed_now for freed_now in counts if freed_now] == STEPS[1:]


def test_state_of_the_digest_before_is_freed_with_pauses() -> None:
    freed, memory, seen = Freed(), DigestMemory(), list[int]()
    memory.digest(freed.image(), lambda: None)
    memory.digest(freed.image(), lambda: seen.append(freed.count))
    assert freed.count == PAGES
    assert max(after - before for before, after in pairwise(seen)) == PAGES_AT_ONCE


@pytest.mark.parametrize("which", ["by_id", "by_name", "extents"])
def test_maps_of_the_digest_before_are_freed_with_pauses(which: str) -> None:
    freed, seen = Freed(), [0]
    parts = LeavingImages.own_parts(freed.image_of_topics(which), EMPTY_IMAGE)
    parts.free(lambda: seen.append(freed.count))
    assert (len(seen), seen[-1]) == (1 + GROUPS // GROUPS_AT_ONCE, KEYS)
    assert max(after - before for before, after in pairwise(seen)) < 1.5 * KEYS * GROUPS_AT_ONCE / GROUPS


def test_digest_of_what_did_not_change_frees_nothing_and_makes_no_pause_for_it() -> None:
    freed, memory, pauses = Freed(), DigestMemory(), list[None]()
    image = freed.image()
    memory.digest(image, lambda: None)
    memory.digest(freed.following(image), lambda: pauses.append(None))
    again = len(pauses)
    del image
    assert (freed.count, again < PAGES // PAGES_AT_ONCE) == (0, True)
