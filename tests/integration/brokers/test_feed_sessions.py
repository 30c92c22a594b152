"""Sessions of the feed's readers over real sockets: who does not read delays nobody and holds little memory."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from quorate.controller.feed import sending as feed_sending
from quorate.controller.feed import sessions as feed_sessions
from quorate.controller.protocol import CreateTopicsRequest
from quorate.controller.protocol.topics import CreatableTopic
from tests.integration.broker_stage import playing
from tests.integration.http_stage import Stage, stage
from tests.integration.running_cluster import running_cluster
from tests.waiting import eventually

FEED = "/v1/metadata/batches"
SESSIONS = "/v1/feed-sessions"
MEBIBYTE = 1024 * 1024


@contextmanager
def reader_that_does_not_read(url: str, query: str) -> Iterator[socket.socket]:
    """A connection that has asked for batches, and takes nothing of the answer beyond what its kernel buffers."""
    address = urlsplit(url)
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.connect((address.hostname, address.port))
        connection.sendall(f"GET {FEED}?{query} HTTP/1.1\r\nHost: {address.netloc}\r\n\r\n".encode())
        yield connection


async def sessions(s: Stage, node_id: int = 1) -> dict[int, Any]:
    """Sessions of brokers by id."""
    status, reply, _ = await s.ask(node_id, "GET", SESSIONS)
    assert (status, reply["observed_by"]) == (200, node_id)
    return {session["broker_id"]: session for session in reply["sessions"]}


async def fill(s: Stage, count: int, partitions: int = 1000) -> None:
    """Commit ``count`` batches of some 100 kB."""
    for number in range(count):
        topic = {"name": f"filling-{s.quorum.committed}-{number}", "num_partitions": partitions}
        status, reply, _ = await s.ask(1, "POST", "/v1/topics", {"topics": [topic]})
        assert status == 200, reply


async def test_session_of_a_broker_process_is_shown_with_its_lag_bytes_and_time() -> None:
    async with stage() as s, playing("11-13", [s.urls[1]]) as played:
        await eventually(lambda: is_ready(played), "the brokers are ready")
        await s.ask(1, "POST", "/v1/topics", {"topics": [{"name": "foo"}]})

        async def caught_up() -> Any:
            seen = await sessions(s, 2)
            return seen if seen and seen[11]["lag_records"] == 0 and seen[11]["queue_ms_last"] is not None else None

        seen = await eventually(caught_up, "the reader has everything")
        assert list(seen) == [11], "one process, one session: named after the first of its brokers"
        session = seen[11]
        assert session["hosted_brokers"] == 3
        assert session["end_offset"] == s.quorum.committed
        assert (session["lag_bytes"], session["unsent_bytes"], session["cut_off"]) == (0, 0, 0)
        assert session["sent_bytes"] == len(b"".join(s.quorum.batches))
        assert session["remote_address"].startswith("127.0.0.1:")
        assert 0 < session["queue_ms_average"] < 5_000
        assert await sessions(s, 1) == {}, "nobody reads this controller's feed"


async def is_ready(played: Any) -> bool:
    return bool(played.host.is_ready)


async def test_readers_without_a_name_are_counted_together() -> None:
    async with stage(1) as s:
        await s.register(1, 11)
        size = 0
        for _ in range(3):
            async with s.session.get(f"{s.urls[0]}{FEED}?offset=0&epoch=0") as answer:
                size = len(await answer.read())
        _, reply, _ = await s.ask(1, "GET", SESSIONS)
        assert reply["sessions"] == []
        unnamed = reply["unnamed"]
        assert (unnamed["sent_chunks"], unnamed["sent_bytes"]) == (3, 3 * size)
        assert {unnamed[name] for name in ("broker_id", "end_offset", "lag_records", "remote_address")} == {None}


@pytest.mark.parametrize("mode", ["stream=true", "wait_ms=60000"])
async def test_reader_that_does_not_read_delays_nobody_and_is_cut_off(
    mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed_sending, "SEND_SECONDS_MAX", 1.5)
    async with stage(1) as s:
        await s.register(1, 11)
        await fill(s, 60)
        with reader_that_does_not_read(s.urls[0], f"offset=0&broker_id=66&{mode}&max_bytes=8000000") as connection:

            async def is_stuck() -> Any:
                seen = (await sessions(s)).get(66)
                return seen if seen and seen["unsent_bytes"] > MEBIBYTE else None

            stuck = await eventually(is_stuck, "the slow reader's connection takes no more")
            assert stuck["in_flight"] == 1
            assert stuck["lag_records"] == s.quorum.committed, "nothing counts as had before all of a chunk was taken"
            assert stuck["lag_bytes"] == len(b"".join(s.quorum.batches))
            # Meanwhile others get what is committed, at once.
            for name in ("foo", "bar"):
                url = f"{s.urls[0]}{FEED}?offset={s.quorum.committed}&epoch=1&wait_ms=60000&broker_id=12"
                poll = asyncio.create_task(read(s, url))
                await eventually(lambda: waits(s, 12), "the quick reader waits")
                begun = time.monotonic()
                await s.ask(1, "POST", "/v1/topics", {"topics": [{"name": name}]})
                assert await poll
                # Had it waited for the slow reader, or for the end of its own patience, it would have been a minute.
                assert time.monotonic() - begun < 20.0
            assert (await sessions(s))[12]["lag_records"] == 0

            async def is_cut_off() -> Any:
                seen = (await sessions(s))[66]
                return seen if seen["cut_off"] else None

            cut = await eventually(is_cut_off, "the slow reader is let go")
            assert (cut["unsent_bytes"], cut["in_flight"], cut["end_offset"]) == (0, 0, 0)
            assert await asyncio.to_thread(broken_off, connection)
        assert s.members[1].node.feed.under_way.bytes == 0
        assert s.members[1].node.feed.followers == 0


async def waits(s: Stage, broker_id: int) -> bool:
    seen = (await sessions(s)).get(broker_id)
    return bool(seen and seen["in_flight"])


async def read(s: Stage, url: str) -> bytes:
    async with s.session.get(url) as answer:
        return await answer.read()


def broken_off(connection: socket.socket) -> bool:
    """Whether the connection ends before the answer does."""
    connection.settimeout(10)
    try:
        while connection.recv(65536):
            pass
    except ConnectionResetError:
        pass
    return True


def resident_bytes(pid: int) -> int:
    """Memory of a process."""
    fields = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text("utf-8").splitlines())
    return int(fields["VmRSS"].split()[0]) * 1024


async def test_memory_of_a_controller_stays_bounded_however_many_do_not_read(tmp_path: Path) -> None:
    """64 readers at as many places of the log would hold half a gigabyte of chunks, if each were given a large one."""
    async with running_cluster(tmp_path, 1, 1, is_secured=False) as c:
        (url,), (process,), (broker_id,) = c.plan.controller_urls, c.controllers.values(), c.brokers
        for number in range(100):
            topic = CreatableTopic(name=f"filling-{number}", num_partitions=1000, replication_factor=1)
            await c.client.create_topics(CreateTopicsRequest(topics=[topic]))
        assert process.pid is not None
        before = resident_bytes(process.pid)
        with ExitStack() as readers:
            for number in range(64):
                query = f"offset={number}&broker_id={1000 + number}&max_bytes={8_000_000 - number}&stream=true"
                readers.enter_context(reader_that_does_not_read(url, query))

            async def all_are_stuck() -> bool:
                seen = await c.client.feed_sessions(url)
                return [one.unsent_bytes > 0 for one in seen.sessions].count(True) == 64

            await eventually(all_are_stuck, "nobody takes anything")
            grown = resident_bytes(process.pid) - before
            print(f"64 readers that do not read hold {grown / MEBIBYTE:.0f} MiB")
            assert grown < 160 * MEBIBYTE
            # The broker goes on as if they were not there.
            topic = CreatableTopic(name="after", num_partitions=1, replication_factor=1)
            await c.client.create_topics(CreateTopicsRequest(topics=[topic]))

            async def broker_has_it() -> bool:
                seen = await c.client.feed_sessions(url)
                return any(one.broker_id == broker_id and one.lag_records == 0 for one in seen.sessions)

            await eventually(broker_has_it, "the broker has everything")


async def test_session_of_a_killed_broker_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed_sessions, "SILENT_SECONDS_MAX", 0.5)
    async with stage(1) as s:
        async with playing("11", s.urls) as played:
            await eventually(lambda: is_ready(played), "the broker is ready")
            assert list(await sessions(s)) == [11]

        async def has_ended() -> bool:
            return await sessions(s) == {}

        await eventually(has_ended, "the session ends")
