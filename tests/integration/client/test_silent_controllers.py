"""Controllers that fall silent behind connections that stand: clients notice, and repeat nothing that may be done."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from quorate.controller.api import sockets
from quorate.controller.client.answered_while import answered_while
from quorate.controller.client.client import ControllerClient
from quorate.controller.client.connection import Connection, NoAnswer, Request, make_session
from quorate.controller.protocol import BrokerHeartbeatRequest, CreatableTopic, CreateTopicsRequest
from quorate.metadata_log.errors import OutcomeUnknown
from tests.integration.http_stage import Stage, stage
from tests.integration.swallowing_proxy import SwallowingProxy, swallowing_proxy
from tests.waiting import PATIENCE_S, eventually, within


def topics(name: str) -> CreateTopicsRequest:
    return CreateTopicsRequest(topics=[CreatableTopic(name=name, num_partitions=1)])


def clock() -> float:
    return asyncio.get_running_loop().time()


@asynccontextmanager
async def behind_a_proxy() -> AsyncIterator[tuple[Stage, SwallowingProxy, ControllerClient]]:
    """Controller 1 is active and has a broker; a client, which begins with it, sees it through a proxy."""
    async with stage() as s, swallowing_proxy(s.urls[0]) as proxy:
        await s.register(1, 11)
        async with ControllerClient([proxy.url, *s.urls[1:]]) as client:
            await client.create_topics(topics("before"))
            yield s, proxy, client


async def swallowed(proxy: SwallowingProxy, what: bytes) -> None:
    async def is_swallowed() -> bool:
        return what in proxy.swallowed

    await eventually(is_swallowed, f"the proxy has swallowed {what!r}")


async def test_write_in_flight_to_a_silent_leader_is_unknown_soon_after_another_leads_and_the_next_is_done() -> None:
    async with behind_a_proxy() as (s, proxy, client):
        proxy.is_swallowing = True
        with within(2.0, "the silent leader was waited for"):
            write = asyncio.create_task(client.create_topics(topics("lost")))
            await swallowed(proxy, b"lost")
            await s.elect(2)
            with pytest.raises(OutcomeUnknown, match="has stopped answering, and others do answer"):
                await write
            await client.create_topics(topics("next"))
        assert {"before", "next"} == {topic.name for topic in (await client.list_topics()).topics}
        assert proxy.swallowed.count(b"POST") == 1, "what may have been done was sent again"


async def test_write_is_not_given_to_a_silent_controller_before_it_gives_a_sign_of_life() -> None:
    """Nobody is active for a while, so every controller has its turn: the silent one is only asked whether it lives."""
    async with behind_a_proxy() as (s, proxy, client):
        proxy.is_swallowing = True
        write = asyncio.create_task(client.create_topics(topics("lost")))
        await swallowed(proxy, b"lost")
        await s.elect(2)
        with pytest.raises(OutcomeUnknown):
            await write
        await s.elect(None)
        before = proxy.swallowed.count(b"/livez")
        write = asyncio.create_task(client.create_topics(topics("next")))

        async def is_asked_again() -> bool:
            return proxy.swallowed.count(b"/livez") > before + 1

        await eventually(is_asked_again, "the silent controller had its turn, twice")
        await s.elect(3)
        await write
        assert proxy.swallowed.count(b"POST") == 1
        # Once it speaks it is given writes again.
        proxy.is_swallowing = False
        await s.elect(1)
        await client.create_topics(topics("last"))


async def test_write_to_a_slow_controller_that_lives_is_waited_for() -> None:
    async with behind_a_proxy() as (s, _, client):
        s.quorum.is_held = True
        write = asyncio.create_task(client.create_topics(topics("slow")))
        assert not (await asyncio.wait({write}, timeout=2.5))[0]
        s.quorum.is_held = False
        s.quorum.commit()
        assert (await write).topics[0].name == "slow"


async def test_write_to_a_silent_leader_that_nobody_has_replaced_is_waited_for_longer() -> None:
    async with behind_a_proxy() as (_, proxy, client):
        proxy.is_swallowing = True
        write = asyncio.create_task(client.create_topics(topics("slow")))
        assert not (await asyncio.wait({write}, timeout=1.9))[0]
        with pytest.raises(OutcomeUnknown):
            await write


async def test_heartbeat_to_a_silent_leader_goes_to_another_well_within_a_session() -> None:
    async with stage() as s, swallowing_proxy(s.urls[0]) as proxy:
        epoch = await s.register(1, 11)
        async with ControllerClient([proxy.url, *s.urls[1:]]) as client:
            heartbeat = BrokerHeartbeatRequest(broker_id=11, broker_epoch=epoch, current_metadata_offset=100)
            await client.broker_heartbeat(heartbeat)
            proxy.is_swallowing = True
            with within(3.0, "a good part of a session has gone by"):
                beating = asyncio.create_task(client.broker_heartbeat(heartbeat))
                await swallowed(proxy, b"heartbeat")
                await s.elect(2)
                assert (await beating).is_fenced is False


async def test_poll_of_the_feed_notices_silence_at_once_after_its_wait() -> None:
    async with behind_a_proxy() as (s, proxy, client):
        end = s.quorum.committed
        proxy.is_swallowing = True
        with within(2.5, "silence was noticed late"), pytest.raises(NoAnswer, match="was silent for 1200 ms"):
            await client.fetch_batches(proxy.url, end, 1, 200, 1_000_000)


async def test_piece_of_the_feed_that_comes_slowly_is_not_silent() -> None:
    """All of it takes longer than silence may."""
    async with behind_a_proxy() as (s, proxy, client):
        for number in range(10):
            await client.create_topics(topics(f"{number}-{'x' * 200}"))
        proxy.drip = (500, 0.4)
        began = clock()
        batches = await client.fetch_batches(proxy.url, 0, 0, 0, 1_000_000)
        assert batches.end_offset == s.quorum.committed
        assert clock() - began > 1.5


async def test_answer_that_comes_while_it_is_looked_whether_to_wait_is_taken_at_once() -> None:
    answered, looking = asyncio.Event(), asyncio.Event()

    async def ask() -> str:
        await answered.wait()
        return "answer"

    async def look() -> bool:
        looking.set()
        await asyncio.Event().wait()
        return True

    waiting = asyncio.create_task(answered_while(ask, look, 0.01))
    await looking.wait()
    answered.set()
    async with asyncio.timeout(PATIENCE_S):
        assert await waiting == "answer"


def asks_after(connected: socket.socket) -> tuple[int, int, int, int]:
    names = (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT, socket.TCP_USER_TIMEOUT)
    assert connected.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
    idle, interval, count, user = (connected.getsockopt(socket.IPPROTO_TCP, name) for name in names)
    return idle, interval, count, user


@pytest.mark.skipif(not hasattr(socket, "TCP_USER_TIMEOUT"), reason="only Linux has all of these settings")
async def test_both_ends_let_the_kernel_look_after_a_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[sockets.Patience, list[socket.socket]] = {}
    usual: Callable[[socket.socket, sockets.Patience], None] = sockets.watch

    def watch(connected: socket.socket, patience: sockets.Patience) -> None:
        usual(connected, patience)
        seen.setdefault(patience, []).append(connected)

    monkeypatch.setattr(sockets, "watch", watch)
    async with stage(1) as s, make_session() as session:
        await Connection(lambda: session, s.urls[0]).send(Request("GET", "/livez", 5_000))
        (ours,), (theirs,) = seen[sockets.TO_A_CONTROLLER], seen[sockets.TO_A_CLIENT]
        assert asks_after(ours) == (2, 2, 3, 5_000)
        assert asks_after(theirs) == (10, 10, 3, 30_000)


async def test_look_that_fails_ends_the_wait_with_its_error() -> None:
    async def ask() -> None:
        await asyncio.Event().wait()

    async def look() -> bool:
        raise OSError("look")

    work: Awaitable[None] = answered_while(ask, look, 0.01)
    with pytest.raises(ExceptionGroup) as raised:
        await work
    assert raised.group_contains(OSError, match="look")
