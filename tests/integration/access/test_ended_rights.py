"""An answer that takes its time ends with the right that it was asked for by, and the log is read no further."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from quorate.controller.http.page import events
from quorate.controller.identity.bearer_tokens import token_line
from tests.integration.access.test_permissions import PRINCIPALS, Guarded, bearer, guarded
from tests.waiting import eventually

EVENTS = "/v1/events"
FEED = "/v1/metadata/batches"


@asynccontextmanager
async def stream_of_ana(g: Guarded) -> AsyncIterator[aiohttp.ClientResponse]:
    """The log, as ana reads it from controller 2 on and on, by an ACL; what there is has been read."""
    await g.allow("User:ana", "CLUSTER_ACTION", "CLUSTER", "kafka-cluster")
    url = g.stage.members[2].url + FEED
    async with g.plain.get(f"{url}?offset=0&epoch=0&stream=true", headers=bearer("User:ana")) as answer:
        assert answer.status == 200
        await answer.content.readexactly(len(b"".join(g.stage.quorum.batches)))
        yield answer


async def write(g: Guarded, name: str) -> bytes:
    """One more batch."""
    before = len(g.stage.quorum.batches)
    status, reply = await g.ask("User:root", "POST", "/v1/topics", {"topics": [{"name": name}]})
    assert status == 200, reply
    return b"".join(g.stage.quorum.batches[before:])


async def forbid(g: Guarded) -> None:
    """Remove the ACL by which ana reads the log."""
    filters = [{"resource_type_filter": "CLUSTER", "principal_filter": "User:ana"}]
    status, reply = await g.ask("User:root", "POST", "/v1/acls/delete", {"filters": filters})
    assert status == 200, reply


async def is_refused_when_the_right_ends(g: Guarded, waiting: asyncio.Task[tuple[int, Any]]) -> None:
    """What ana asked for while she might, and waits for."""
    await forbid(g)
    status, reply = await waiting
    assert (status, reply["error"]) == (403, "CLUSTER_AUTHORIZATION_FAILED")


async def take_token(g: Guarded, tmp_path: Path) -> None:
    """Ana has none any more."""
    others = [one for one in PRINCIPALS if one != "User:ana"]
    (tmp_path / "tokens").write_text(
        "".join(f"{token_line(bearer(one)['Authorization'][7:], one)}\n" for one in others)
    )

    async def is_unknown() -> bool:
        return (await g.ask("User:ana", "GET", "/v1/image/digest", asked=2))[0] == 401

    await eventually(is_unknown, "controllers have read the file of tokens again")


async def test_stream_ends_with_the_acl_and_nothing_that_is_written_after_it_is_sent(tmp_path: Path) -> None:
    async with guarded(tmp_path) as g, stream_of_ana(g) as answer:
        batch = await write(g, "before")
        assert await answer.content.readexactly(len(batch)) == batch

        await forbid(g)
        await write(g, "secret")
        assert b"secret" not in await answer.content.read()

        status, reply = await g.ask("User:ana", "GET", f"{FEED}?offset=0&epoch=0&stream=true", asked=2)
        assert (status, reply["error"]) == (403, "CLUSTER_AUTHORIZATION_FAILED")
        refused = g.stage.members[2].node.refusals.counts
        assert refused["CLUSTER_AUTHORIZATION_FAILED"] == 2  # the stream, and the question after it


async def test_stream_ends_with_the_token(tmp_path: Path) -> None:
    async with guarded(tmp_path) as g, stream_of_ana(g) as answer:
        await take_token(g, tmp_path)
        await write(g, "secret")
        assert b"secret" not in await answer.content.read()


async def test_stream_of_who_keeps_the_right_outlives_changes_for_others(tmp_path: Path) -> None:
    async with guarded(tmp_path) as g, stream_of_ana(g) as answer:
        before = len(g.stage.quorum.batches)
        await g.allow("User:ben", "ALL", "TOPIC", "b")
        await write(g, "more")
        sent = b"".join(g.stage.quorum.batches[before:])
        assert await answer.content.readexactly(len(sent)) == sent


async def test_poll_that_waited_is_refused_where_the_right_has_ended(tmp_path: Path) -> None:
    async with guarded(tmp_path) as g:
        await g.allow("User:ana", "CLUSTER_ACTION", "CLUSTER", "kafka-cluster")
        end = g.stage.quorum.committed
        feed = f"{FEED}?offset={end}&epoch=1&wait_ms=60000"
        poll = asyncio.create_task(g.ask("User:ana", "GET", feed, asked=2))

        async def waits() -> bool:
            return g.stage.members[2].node.feed.followers == 1

        await eventually(waits, "the poll waits")
        await is_refused_when_the_right_ends(g, poll)


async def test_digest_that_waited_is_refused_where_the_right_has_ended(tmp_path: Path) -> None:
    async with guarded(tmp_path) as g:
        await g.allow("User:ana", "DESCRIBE", "CLUSTER", "kafka-cluster")
        beyond = g.stage.quorum.committed + 1
        digest = f"/v1/image/digest?offset={beyond}&wait_ms=60000"
        asked = asyncio.create_task(g.ask("User:ana", "GET", digest, asked=2))

        async def waits() -> bool:
            return g.stage.members[2].digests._bell.waiting == 1

        await eventually(waits, "the question waits")
        await is_refused_when_the_right_ends(g, asked)


async def test_read_that_was_passed_on_is_refused_where_the_token_has_ended_meanwhile(tmp_path: Path) -> None:
    async with guarded(tmp_path) as g:
        g.stage.quorum.is_followed = False
        read = "/v1/topics/a?consistency=linearizable"
        asked = asyncio.create_task(g.ask("User:ana", "GET", read, asked=2))

        async def waits() -> bool:
            return bool(g.stage.quorum.barriers)

        await eventually(waits, "the active controller waits for the others")
        await take_token(g, tmp_path)
        g.stage.quorum.confirm()
        status, reply = await asked
        assert (status, reply["error"]) == (401, "CLUSTER_AUTHORIZATION_FAILED")


async def test_event_stream_ends_with_the_acl_before_it_tells_of_what_comes_after(tmp_path: Path) -> None:
    async with guarded(tmp_path) as g:
        await g.allow("User:ana", "DESCRIBE", "CLUSTER", "kafka-cluster")
        url = g.stage.members[2].url + EVENTS
        async with g.plain.get(url, headers=bearer("User:ana")) as answer:
            assert (await answer.content.readuntil(b"\n\n")).startswith(b"event: changed")
            await forbid(g)
            await write(g, "secret")
            told = await answer.content.read()
        offset = g.stage.quorum.committed
        assert f'"state_offset": {offset}'.encode() not in told
        status, reply = await g.ask("User:ana", "GET", EVENTS, asked=2)
        assert (status, reply["error"]) == (403, "CLUSTER_AUTHORIZATION_FAILED")


async def test_one_principal_has_a_bounded_share_of_event_streams(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "STREAMS_OF_ONE_MAX", 1)
    async with guarded(tmp_path) as g:
        for who in ("User:ana", "User:ben"):
            await g.allow(who, "DESCRIBE", "CLUSTER", "kafka-cluster")
        url = g.stage.members[2].url + EVENTS
        async with g.plain.get(url, headers=bearer("User:ana")) as held:
            assert held.status == 200
            async with g.plain.get(url, headers=bearer("User:ana")) as refused:
                assert refused.status == 429
                assert (await refused.json())["error"] == "THROTTLING_QUOTA_EXCEEDED"
            async with g.plain.get(url, headers=bearer("User:ben")) as other:
                assert other.status == 200
