"""Digests by offset: of the newest state, of one a moment ago, of one that is waited for."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from quorate.controller.background.checkpoint_pace import Unpaced
from quorate.controller.feed.feed import FeedSource
from quorate.controller.reads import digests as reads_digests
from quorate.controller.reads.digests import StateDigests
from quorate.metadata_log.errors import ApiError, ErrorCode
from quorate.metadata_log.records.records import TopicRecord, VersionedRecord
from quorate.snapshots.digest_memory import DigestMemory
from quorate.snapshots.image.image import EMPTY_IMAGE, MetadataImage
from quorate.snapshots.image.image_history import IMAGES_KEPT
from quorate.snapshots.image.image_parts import Provenance
from quorate.snapshots.image_digest import digest_image
from quorate.snapshots.replay.replay import replay
from tests.unit.controller.reads.test_past_transactions import SearchedLog


def images(count: int) -> list[MetadataImage]:
    """States at 1, 2, ...: a topic more each."""
    made = [EMPTY_IMAGE]
    for n in range(1, count + 1):
        record = VersionedRecord(TopicRecord(f"topic-{n}", n.to_bytes(16, "big")), 0)
        made.append(replay(made[-1], [record], Provenance(n - 1, 1, 0)))
    return made


class _NoLog:
    """A log that nothing can be rebuilt from."""

    log_start_offset = 2**62

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(name)


def noted(states: list[MetadataImage]) -> StateDigests:
    digests = StateDigests(_NoLog(), DigestMemory(), Unpaced())
    for image in states[1:]:
        digests.note(image)
    return digests


async def refused(digests: StateDigests, offset: int, wait_ms: float = 0) -> ErrorCode:
    with pytest.raises(ApiError) as error:
        await digests.at(offset, wait_ms)
    return error.value.code


async def test_digest_of_the_newest_and_of_earlier_states() -> None:
    states = images(3)
    digests = noted(states)
    assert await digests.at(None, 0) == (3, digest_image(states[3]).text)
    assert await digests.at(1, 0) == (1, digest_image(states[1]).text)
    assert await digests.at(0, 0) == (0, digest_image(EMPTY_IMAGE).text)


async def test_digest_of_a_state_to_come_is_waited_for() -> None:
    states = images(3)
    digests = noted(states[:2])
    waiting = asyncio.create_task(digests.at(3, 60_000))
    await asyncio.sleep(0)
    digests.note(states[2])
    digests.note(states[3])
    assert await waiting == (3, digest_image(states[3]).text)
    assert await refused(digests, 4, wait_ms=1) is ErrorCode.REQUEST_TIMED_OUT
    digests.close()


async def test_digest_of_a_state_that_is_not_kept_is_refused() -> None:
    states = images(IMAGES_KEPT + 2)
    digests = noted(states)
    assert await refused(digests, 2) is ErrorCode.OFFSET_OUT_OF_RANGE
    assert (await digests.at(3, 0))[0] == 3


async def test_digest_after_another_log_was_taken_forgets_the_first() -> None:
    states = images(3)
    digests = noted(states)
    digests.note(states[1])
    assert await digests.at(None, 0) == (1, digest_image(states[1]).text)
    assert await refused(digests, 2) is ErrorCode.REQUEST_TIMED_OUT


async def test_nothing_of_the_first_log_is_left_where_another_one_has_gone_beyond_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reads_digests, "ANCHOR_SECONDS", 0.0)
    digests = noted(images(4))
    first = replay(EMPTY_IMAGE, [VersionedRecord(TopicRecord("other", bytes(15) + b"x"), 0)], Provenance(0, 2, 0))
    second = replay(first, [VersionedRecord(TopicRecord("and", bytes(15) + b"y"), 0)], Provenance(4, 2, 0))
    digests.note(first)
    digests.note(second)
    assert digests.kept_offsets() == [1, 5]
    assert await digests.at(1, 0) == (1, digest_image(first).text)
    assert await refused(digests, 3) is ErrorCode.OFFSET_OUT_OF_RANGE


@pytest.fixture
def behind_an_anchor(monkeypatch: pytest.MonkeyPatch) -> tuple[StateDigests, list[MetadataImage]]:
    """The first state is an anchor, the last ones are kept, and a state takes a byte of the log."""
    states = images(IMAGES_KEPT + 12)
    records = tuple(TopicRecord(f"topic-{n}", n.to_bytes(16, "big")) for n in range(1, len(states)))
    monkeypatch.setattr(reads_digests, "ANCHOR_SECONDS", 1e9)
    digests = StateDigests(cast(FeedSource, SearchedLog(records)), DigestMemory(), Unpaced())
    monkeypatch.setattr(digests, "_anchored_at", -2e9)
    for image in states[1:]:
        digests.note(image)
    return digests, states


async def test_state_near_one_that_is_kept_is_rebuilt(
    monkeypatch: pytest.MonkeyPatch, behind_an_anchor: tuple[StateDigests, list[MetadataImage]]
) -> None:
    digests, states = behind_an_anchor
    monkeypatch.setattr(reads_digests, "REBUILD_BYTES_MAX", 8)
    assert digests.kept_offsets()[:2] == [1, 13]
    assert await digests.at(9, 0) == (9, digest_image(states[9]).text)


async def test_state_that_much_of_the_log_lies_before_is_not_rebuilt(
    monkeypatch: pytest.MonkeyPatch, behind_an_anchor: tuple[StateDigests, list[MetadataImage]]
) -> None:
    digests, _ = behind_an_anchor
    monkeypatch.setattr(reads_digests, "REBUILD_BYTES_MAX", 8)
    with pytest.raises(
        ApiError, match=r"offset 10 is not kept, .* at 1, it is 9 bytes of the log: more than the 8"
    ) as e:
        await digests.at(10, 0)
    assert e.value.code is ErrorCode.OFFSET_OUT_OF_RANGE
    assert digests.spent_seconds == 0


def noted_by_threes() -> tuple[StateDigests, list[MetadataImage], SearchedLog]:
    """Sixty batches of a log, of which every third state is noted."""
    states = images(60)
    log = SearchedLog(tuple(TopicRecord(f"topic-{n}", n.to_bytes(16, "big")) for n in range(1, len(states))))
    digests = StateDigests(cast(FeedSource, log), DigestMemory(), Unpaced())
    for image in states[1::3]:
        digests.note(image)
    return digests, states, log


async def test_state_is_rebuilt_from_the_nearest_that_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where images of several batches are noted, those that are kept are near to each other, and the anchor is not."""
    digests, states, log = noted_by_threes()
    monkeypatch.setattr(reads_digests, "REBUILD_BYTES_MAX", 2)
    assert digests.kept_offsets()[:2] == [1, 13]
    for offset in (14, 15, 57):
        assert await digests.at(offset, 0) == (offset, digest_image(states[offset]).text)
    assert log.read == [13, 13, 14, 55, 56]
    assert await refused(digests, 12) is ErrorCode.OFFSET_OUT_OF_RANGE


async def test_state_of_a_log_that_was_cut_while_a_turn_was_waited_for_is_refused() -> None:
    digests, states, log = noted_by_threes()
    async with digests._lock:
        asked = asyncio.create_task(digests.at(57, 0))
        await asyncio.sleep(0)
        log.records = log.records[:50]
        for end in (20, 40):
            digests.note(states[end])
    with pytest.raises(ApiError, match="no state ends at offset 57: the one before it ends at 50") as e:
        await asked
    assert e.value.code is ErrorCode.OFFSET_OUT_OF_RANGE
