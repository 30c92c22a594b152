"""The metadata feed and checkpoints over HTTP."""

from __future__ import annotations

import asyncio

import pytest
from crc32c import crc32c

from quorate.controller.api import headers
from quorate.controller.api.content import BATCHES
from quorate.metadata_log.batches.batch import parse_header
from quorate.metadata_log.checkpoints.checkpoint_files import CheckpointId, checkpoint_name
from tests.integration.http_stage import Stage, stage
from tests.log_support import DIRECTORY
from tests.waiting import eventually

FEED = "/v1/metadata/batches"
CHECKPOINT = "/v1/metadata/checkpoint"


async def batches(s: Stage, node_id: int, query: str) -> tuple[bytes, dict[str, str]]:
    """Body and headers of an answer of the feed."""
    async with s.session.get(f"{s.members[node_id].url}{FEED}?{query}") as answer:
        assert (answer.status, answer.content_type) == (200, BATCHES)
        return await answer.read(), dict(answer.headers)


async def write(s: Stage, name: str) -> None:
    """Commit one more batch."""
    status, reply, _ = await s.ask(1, "POST", "/v1/topics", {"topics": [{"name": name}]})
    assert status == 200, reply


async def test_feed_gives_the_log_as_it_lies_from_any_controller() -> None:
    async with stage() as s:
        await s.register(1, 11)
        for node_id in (1, 2, 3):
            data, head = await batches(s, node_id, "offset=0&epoch=0")
            assert data == b"".join(s.quorum.batches)
            assert head[headers.END_OFFSET] == head[headers.HIGH_WATERMARK] == str(s.quorum.committed)
            assert (head[headers.BASE_OFFSET], head[headers.LOG_START_OFFSET]) == ("0", "0")
            assert (head[headers.END_EPOCH], head[headers.EPOCH], head[headers.ACTIVE]) == ("1", "1", "1")
            assert (head[headers.NODE], head[headers.CLUSTER]) == (str(node_id), s.members[1].node.cluster_id)


async def test_feed_is_followed_by_offset_and_epoch_to_its_end() -> None:
    async with stage() as s:
        await s.register(1, 11)
        offset, epoch, seen = "0", "0", b""
        while True:
            data, head = await batches(s, 2, f"offset={offset}&epoch={epoch}&max_bytes=1")
            if not data:
                break
            assert parse_header(data).base_offset == int(offset)
            seen += data
            offset, epoch = head[headers.END_OFFSET], head[headers.END_EPOCH]
        assert seen == b"".join(s.quorum.batches)
        assert (head[headers.BASE_OFFSET], head[headers.END_OFFSET], head[headers.END_EPOCH]) == (offset, offset, "")


async def test_feed_long_poll_returns_with_the_commit() -> None:
    async with stage() as s:
        await s.register(1, 11)
        end = s.quorum.committed
        poll = asyncio.create_task(batches(s, 3, f"offset={end}&epoch=1&wait_ms=60000"))
        await eventually(lambda: followers(s, 3), "the follower waits")
        await write(s, "foo")
        data, _ = await poll
        assert parse_header(data).base_offset == end


async def followers(s: Stage, node_id: int) -> int:
    return s.members[node_id].node.feed.followers


async def test_feed_stream_carries_every_batch_until_the_server_ends_it() -> None:
    async with stage() as s:
        await s.register(1, 11)
        async with s.session.get(f"{s.members[2].url}{FEED}?offset=0&epoch=0&stream=true") as answer:
            assert answer.status == 200
            seen = await answer.content.readexactly(len(b"".join(s.quorum.batches)))
            for name in ("foo", "bar"):
                before = len(b"".join(s.quorum.batches))
                await write(s, name)
                seen += await answer.content.readexactly(len(b"".join(s.quorum.batches)) - before)
            assert seen == b"".join(s.quorum.batches)
            s.members[2].node.feed.close()
            assert await answer.content.read() == b""
        assert await followers(s, 2) == 0


async def test_feed_stream_that_nobody_reads_any_more_is_forgotten() -> None:
    async with stage() as s:
        await s.register(1, 11)
        async with s.session.get(f"{s.members[2].url}{FEED}?offset=0&stream=true") as answer:
            await answer.content.readexactly(1)
            answer.close()
        await write(s, "foo")
        await write(s, "bar")
        await eventually(lambda: nobody_follows(s, 2), "the follower is forgotten")


async def nobody_follows(s: Stage, node_id: int) -> bool:
    """A broken connection is noticed when something is sent on it."""
    await write(s, f"topic-{s.quorum.committed}")
    return await followers(s, node_id) == 0


async def test_feed_of_a_diverging_follower_is_told_so() -> None:
    async with stage() as s:
        await s.register(1, 11)
        status, reply, _ = await s.ask(2, "GET", f"{FEED}?offset={s.quorum.committed}&epoch=0")
        assert (status, reply["error"], reply["code"], reply["retriable"]) == (409, "OFFSET_OUT_OF_RANGE", 1, "no")
        assert reply["details"] == {"is_diverging": True, "log_start_offset": 0, "epoch": 0, "end_offset": 0}


async def test_feed_of_many_followers_is_read_once_a_commit() -> None:
    async with stage(1) as s:
        await s.register(1, 11)
        member = s.members[1]
        read_before = member.node.feed.chunks_read
        end = s.quorum.committed
        polls = [asyncio.create_task(batches(s, 1, f"offset={end}&epoch=1&wait_ms=60000")) for _ in range(90)]
        await eventually(lambda: all_follow(s, 90), "all followers wait")
        await write(s, "foo")
        answers = await asyncio.gather(*polls)
        assert len({data for data, _ in answers}) == 1
        assert member.node.feed.chunks_read == read_before + 1


async def all_follow(s: Stage, count: int) -> bool:
    return await followers(s, 1) == count


async def test_checkpoint_is_fetched_in_pieces_with_their_crc() -> None:
    async with stage() as s:
        data = s.members[2].add_checkpoint(7, 1)
        s.members[2].add_checkpoint(3, 1, b"older")
        seen, query = b"", ""
        while True:
            async with s.session.get(
                f"{s.members[2].url}{CHECKPOINT}?position={len(seen)}&max_bytes=100{query}"
            ) as answer:
                assert answer.status == 200
                piece = await answer.read()
            head = answer.headers
            assert (head[headers.CHECKPOINT], head[headers.CHECKPOINT_SIZE]) == ("7-1", str(len(data)))
            assert head[headers.CHECKPOINT_POSITION] == str(len(seen))
            assert int(head[headers.CRC], 16) == crc32c(piece)
            seen += piece
            query = "&end_offset=7&epoch=1"
            if len(seen) == len(data):
                break
        assert seen == data


@pytest.mark.parametrize(
    ("query", "status", "error"),
    [
        ("?end_offset=9&epoch=1", 404, "SNAPSHOT_NOT_FOUND"),
        ("?end_offset=0&epoch=0", 404, "SNAPSHOT_NOT_FOUND"),
        ("?position=1000000", 416, "POSITION_OUT_OF_RANGE"),
    ],
)
async def test_checkpoint_that_is_not_there_is_refused(query: str, status: int, error: str) -> None:
    async with stage(1) as s:
        s.members[1].add_checkpoint(7, 1)
        found, reply, _ = await s.ask(1, "GET", CHECKPOINT + query)
        assert (found, reply["error"]) == (status, error)


async def test_checkpoint_that_lost_its_end_is_said_to_be_damaged_and_no_short_piece_is_sent() -> None:
    async with stage(1) as s:
        data = s.members[1].add_checkpoint(7, 1)
        s.members[1].disk.put(f"{DIRECTORY}/{checkpoint_name(CheckpointId(7, 1))}", data[:-10])
        for query in ("", f"?position={len(data) - 20}&max_bytes=20", f"?position={len(data) - 5}"):
            status, reply, _ = await s.ask(1, "GET", CHECKPOINT + query)
            assert (status, reply["error"], reply["retriable"]) == (500, "UNKNOWN_SERVER_ERROR", "no")
            assert (
                reply["message"] == "checkpoint 7-1 is damaged on the disk of node 1: take one from another controller"
            )
        # What lies before the cut is as it was.
        async with s.session.get(f"{s.members[1].url}{CHECKPOINT}?max_bytes=20") as answer:
            assert (answer.status, await answer.read()) == (200, data[:20])


async def test_checkpoint_of_a_node_without_one_is_not_found() -> None:
    async with stage(1) as s:
        status, reply, _ = await s.ask(1, "GET", CHECKPOINT)
        assert (status, reply["error"]) == (404, "SNAPSHOT_NOT_FOUND")
