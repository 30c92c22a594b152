"""The metadata feed: what followers get, what they are told, and what several hundred of them cost."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

import pytest

from quorate.controller.api.errors import FeedOutOfRange
from quorate.controller.feed import feed as feed_module
from quorate.metadata_log.errors import ApiError, ErrorCode, Overloaded
from tests.default_parts import feed_limits
from tests.unit.controller.feed.feed_log import FollowedLog

MANY = 1_000_000


async def nothing_comes(log: FollowedLog, offset: int, epoch: int | None) -> bool:
    """Whether a fetch finds nothing and is not refused."""
    chunk = await log.fetch(offset, epoch, 0, MANY)
    return chunk.data == b"" and chunk.base_offset == chunk.end_offset == offset


async def refusal(log: FollowedLog, offset: int, epoch: int | None) -> FeedOutOfRange:
    """Why a fetch is refused."""
    with pytest.raises(FeedOutOfRange) as refused:
        await log.fetch(offset, epoch, 0, MANY)
    return refused.value


async def test_feed_gives_committed_batches_only() -> None:
    log = FollowedLog()
    log.commit(3, epoch=1)
    log.append(2)
    assert await log.fetch(0, 0, 0, MANY) == log.chunk(0, 3)
    assert await log.fetch(2, 1, 0, MANY) == log.chunk(2, 3)
    assert await nothing_comes(log, 3, 1)


async def test_feed_of_an_empty_log_is_empty() -> None:
    assert await nothing_comes(FollowedLog(), 0, 0)


async def test_feed_gives_whole_batches_within_the_bytes_and_one_in_any_case() -> None:
    log = FollowedLog()
    log.commit(5, epoch=1)
    size = len(log.data(0, 1))
    assert await log.fetch(0, 0, 0, 3 * size) == log.chunk(0, 3, is_cut=True)
    assert await log.fetch(0, 0, 0, 3 * size - 1) == log.chunk(0, 2, is_cut=True)
    assert await log.fetch(4, 1, 0, 1) == log.chunk(4, 5)


async def test_whoever_reads_the_past_gets_what_the_files_hold_before_the_start_and_no_follower_does() -> None:
    log = FollowedLog()
    log.commit(2, epoch=1)
    log.commit(2, epoch=2)
    log.commit(3, epoch=3)
    log.begin_at(5)
    assert await log.fetch(0, 0, 0, MANY, is_past=True) == log.chunk(0, 5, is_cut=True)
    assert await log.fetch(4, 2, 0, MANY, is_past=True) == log.chunk(4, 5, is_cut=True)
    assert await log.fetch(5, 3, 0, MANY, is_past=True) == log.chunk(5, 7)
    assert (await log.fetch(2, None, 0, 1, is_past=True)) == log.chunk(2, 3, is_cut=True)
    assert (await refusal(log, 4, 2)).details == {
        "is_diverging": False,
        "log_start_offset": 5,
        "epoch": 3,
        "end_offset": 5,
    }
    with pytest.raises(FeedOutOfRange, match="has epoch 1, not 2"):
        await log.fetch(2, 2, 0, MANY, is_past=True)


async def test_feed_without_an_epoch_begins_with_the_batch_that_holds_the_offset() -> None:
    log = FollowedLog()
    log.log.append(10, 1)
    log.commit()
    assert (await log.fetch(4, None, 0, MANY)).base_offset == 0
    with pytest.raises(ApiError) as refused:
        await log.fetch(4, 1, 0, MANY)
    assert refused.value.code is ErrorCode.INVALID_REQUEST


async def test_feed_long_poll_is_answered_by_the_next_commit() -> None:
    log = FollowedLog()
    log.commit(1, epoch=1)
    fetch = asyncio.create_task(log.fetch(1, 1, 60_000, MANY))
    await asyncio.sleep(0)
    assert log.feed.followers == 1
    log.append()
    await asyncio.sleep(0)
    assert not fetch.done()
    log.commit()
    assert await fetch == log.chunk(1, 3)
    assert log.feed.followers == 0


async def test_feed_long_poll_is_empty_after_its_time() -> None:
    log = FollowedLog(feed_limits(wait_max_ms=5))
    chunk = await log.fetch(0, 0, 600_000, MANY)
    assert chunk.data == b""


async def test_feed_below_the_log_start_asks_for_a_checkpoint() -> None:
    log = FollowedLog()
    log.commit(5, epoch=2)
    log.begin_at(3)
    refused = await refusal(log, 2, 2)
    assert (refused.is_diverging, refused.log_start_offset) == (False, 3)
    assert await log.fetch(3, 2, 0, MANY) == log.chunk(3, 5)


async def test_feed_of_a_diverging_follower_names_where_the_logs_part() -> None:
    log = FollowedLog()
    log.commit(3, epoch=1)
    log.commit(3, epoch=4)
    refused = await refusal(log, 5, 2)
    assert (refused.is_diverging, refused.epoch, refused.end_offset) == (True, 1, 3)
    assert (await refusal(log, 3, 4)).is_diverging
    assert await log.fetch(3, 1, 0, MANY) == log.chunk(3, 6)


async def test_feed_follower_that_took_another_checkpoint_at_the_log_start_diverges() -> None:
    log = FollowedLog()
    log.commit(5, epoch=2)
    log.begin_at(5)
    assert await nothing_comes(log, 5, 2)
    assert (await refusal(log, 5, 1)).is_diverging


async def test_feed_follower_ahead_of_a_standby_waits_and_ahead_of_the_active_controller_diverges() -> None:
    """A standby may be behind; nobody can have more than the active controller."""
    log = FollowedLog()
    log.commit(3, epoch=1)
    log.append(2, epoch=2)
    log.is_authoritative = False
    # In the uncommitted tail of a standby anything may stand: it is not compared.
    assert await nothing_comes(log, 5, 1)
    assert await nothing_comes(log, 9, 7)
    log.is_authoritative = True
    assert (await refusal(log, 5, 1)).is_diverging
    assert (await refusal(log, 9, 2)).is_diverging
    assert await nothing_comes(log, 5, 2)


async def test_feed_follower_of_a_later_epoch_waits_for_a_controller_that_does_not_know_it_was_replaced() -> None:
    """It was frozen while it led, say: its uncommitted tail, and its log's end, say nothing of what came after."""
    log = FollowedLog()
    log.commit(3, epoch=1)
    log.append(2, epoch=2)
    log.is_authoritative = True
    for offset in (4, 5, 9):
        assert await nothing_comes(log, offset, 3), offset
    # What it has committed was, and the follower has something else there.
    assert (await refusal(log, 3, 3)).is_diverging


async def test_feed_follower_of_records_that_a_recovery_left_out_diverges_wherever_the_new_ones_end() -> None:
    """The quorum rebuilt goes on at 3 in an epoch far above; the follower came to 9 in epoch 1 before."""
    for is_authoritative in (True, False):
        for ends in ([4], [6], [9], [4, 20], [12], [9, 20]):
            log = FollowedLog()
            log.commit(3, epoch=1)
            log.is_authoritative = is_authoritative
            for end in ends:  # one batch up to each: none ends at 9 where one goes across it
                log.log.append(end - log.log.log.end_offset, 1001)
                log.commit(0)
            for position in range(4, 13):
                assert (await refusal(log, position, 1)).is_diverging, (is_authoritative, ends, position)
            assert (await log.fetch(3, 1, 0, MANY)).base_offset == 3


async def test_feed_position_is_compared_when_the_standby_has_caught_up() -> None:
    """A follower waits at offset 5 of epoch 1; the log turns out to hold epoch 2 there."""
    log = FollowedLog()
    log.commit(3, epoch=1)
    log.is_authoritative = False
    fetch = asyncio.create_task(log.fetch(5, 1, 60_000, MANY))
    await asyncio.sleep(0)
    log.commit(3, epoch=2)
    with pytest.raises(FeedOutOfRange):
        await fetch


async def test_feed_many_followers_share_one_reading_of_each_chunk() -> None:
    log = FollowedLog()
    log.commit(1, epoch=1)
    fetches = [asyncio.create_task(log.fetch(1, 1, 60_000, MANY)) for _ in range(300)]
    await asyncio.sleep(0)
    log.commit()
    chunks = await asyncio.gather(*fetches)
    assert {id(chunk.data) for chunk in chunks} == {id(chunks[0].data)}
    assert log.feed.chunks_read == 1


async def test_feed_news_in_quick_succession_are_gathered(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first commit wakes the followers at once; those right after it wake them once more, all together."""
    monkeypatch.setattr(feed_module, "HOLD_SECONDS_PER_FOLLOWER", 3600.0)
    log = FollowedLog()
    log.commit(1, epoch=1)
    fetches = [asyncio.create_task(log.fetch(1, 1, 60_000, MANY)) for _ in range(20)]
    await asyncio.sleep(0)
    log.commit()
    await asyncio.gather(*fetches)
    again = [asyncio.create_task(log.fetch(2, 1, 60_000, MANY)) for _ in range(20)]
    await asyncio.sleep(0)
    for _ in range(50):
        log.commit()
        await asyncio.sleep(0)
    assert not any(fetch.done() for fetch in again)
    log.feed._bell._end_hold()
    assert {chunk.end_offset for chunk in await asyncio.gather(*again)} == {52}
    assert log.feed.chunks_read == 2
    log.feed.close()


async def test_feed_kept_chunk_is_read_again_when_the_log_has_grown_behind_it() -> None:
    log = FollowedLog()
    log.commit(1, epoch=1)
    assert await log.fetch(0, 0, 0, MANY) == log.chunk(0, 1)
    log.commit(1)
    assert await log.fetch(0, 0, 0, MANY) == log.chunk(0, 2)
    assert await log.fetch(0, 0, 0, MANY) == log.chunk(0, 2)
    assert log.feed.chunks_read == 2


async def test_feed_kept_chunks_stay_within_their_bytes() -> None:
    log = FollowedLog()
    log.commit(10, epoch=1)
    size = len(log.data(0, 1))
    log.feed._limits = feed_limits(cache_bytes=3 * size)
    for offset in (*range(10), *range(10)):
        await log.fetch(offset, None, 0, 1)
    assert log.feed._cached_bytes <= 3 * size
    assert log.feed._cached_bytes == sum(len(chunk.data) for chunk in log.feed._chunks.values())


async def test_feed_over_its_followers_refuses_more_and_forgets_those_that_left() -> None:
    log = FollowedLog(feed_limits(followers_max=2))
    waiting = [asyncio.create_task(log.fetch(0, 0, 60_000, MANY)) for _ in range(2)]
    await asyncio.sleep(0)
    with pytest.raises(Overloaded):
        await log.fetch(0, 0, 0, MANY)
    for fetch in waiting:
        fetch.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    assert await nothing_comes(log, 0, 0)


async def test_feed_stream_goes_on_with_every_commit_and_ends_with_the_feed() -> None:
    log = FollowedLog()
    log.commit(2, epoch=1)
    async with aclosing(log.feed.stream(0, 0, MANY)) as chunks:
        assert await anext(chunks) == log.chunk(0, 2)
        following = asyncio.create_task(anext(chunks))
        await asyncio.sleep(0)
        log.commit(1, epoch=2)
        assert await following == log.chunk(2, 3)
        log.feed.close()
        assert [chunk async for chunk in chunks] == []
    assert log.feed.followers == 0


async def test_feed_stream_ends_where_the_log_start_overtakes_it() -> None:
    log = FollowedLog()
    log.commit(2, epoch=1)
    async with aclosing(log.feed.stream(0, 0, 1)) as chunks:
        assert await anext(chunks) == log.chunk(0, 1, is_cut=True)
        log.begin_at(2)
        assert [chunk async for chunk in chunks] == []


async def test_feed_stream_is_refused_as_a_fetch_is() -> None:
    log = FollowedLog()
    log.commit(2, epoch=1)
    async with aclosing(log.feed.stream(1, 9, MANY)) as chunks:
        with pytest.raises(FeedOutOfRange):
            await anext(chunks)
    assert log.feed.followers == 0
