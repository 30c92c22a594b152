"""Standbys pass on what only the active controller may answer: once, and honestly about what they do not know."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager, suppress
from typing import Any

import pytest
from aiohttp import web

from quorate.controller.api.headers import HOPS, TIMEOUT_MS
from quorate.controller.api.tls_contexts import CertificateEnded
from quorate.controller.client.attempts import Attempts
from quorate.controller.client.client import ControllerClient
from quorate.controller.client.outcomes import checked
from quorate.controller.http import forwarding
from quorate.controller.http.ports import Peer
from quorate.controller.protocol import CreatableTopic, CreateTopicsRequest
from quorate.metadata_log.errors import NotController, Overloaded
from tests.default_parts import node_limits
from tests.integration.http_servers import frozen_server, server
from tests.integration.http_stage import Stage, stage
from tests.integration.made_certificates import SpokenTls
from tests.waiting import PATIENCE_S, eventually, within

CREATE = {"topics": [{"name": "foo"}]}


async def test_write_without_an_active_controller_is_refused_at_once_and_retriable() -> None:
    async with stage(active=None) as s:
        status, reply, headers = await s.ask(2, "POST", "/v1/topics", CREATE)
        assert (status, reply["error"], reply["retriable"], reply["leader_id"]) == (503, "NOT_CONTROLLER", "yes", None)
        assert headers["X-Quorate-Active"] == ""


async def test_request_is_not_passed_on_twice() -> None:
    async with stage() as s:
        status, reply, _ = await s.ask(2, "POST", "/v1/topics", CREATE, headers={HOPS: "1"})
        assert (status, reply["error"], reply["leader_id"]) == (503, "NOT_CONTROLLER", 1)
        status, reply, _ = await s.ask(2, "POST", "/v1/topics", CREATE, headers={HOPS: "many"})
        assert (status, reply["error"]) == (400, "INVALID_REQUEST")


async def test_two_standbys_that_take_each_other_for_active_do_not_pass_requests_in_a_circle() -> None:
    async with stage(2, active=None) as s:
        # Each believes that the other leads: node 1 was told so, node 2 leads by its own claim that it lost since.
        s.quorum.leader_id = 2
        status, reply, _ = await s.ask(1, "POST", "/v1/topics", CREATE)
        assert (status, reply["error"], reply["retriable"]) == (503, "NOT_CONTROLLER", "yes")
        assert "becoming active" in reply["message"]


async def test_active_controller_that_is_gone_is_retriable_for_it_cannot_have_done_anything() -> None:
    async with stage() as s:
        await s.members[1].stop_serving()
        status, reply, _ = await s.ask(2, "POST", "/v1/topics", CREATE)
        assert (status, reply["error"], reply["retriable"], reply["leader_id"]) == (503, "NOT_CONTROLLER", "yes", 1)
        assert "cannot be reached" in reply["message"]


async def test_standby_whose_certificate_has_ended_sends_nothing_and_says_so() -> None:
    has_ended = False

    def own() -> ssl.SSLContext:
        if has_ended:
            raise CertificateEnded("the certificate of this process has ended")
        return ssl.create_default_context()

    async with stage(tls=SpokenTls(as_client=own)) as s:
        assert (await s.ask(2, "GET", "/v1/topics?consistency=linearizable"))[0] == 200
        has_ended = True
        status, reply, _ = await s.ask(2, "POST", "/v1/topics", CREATE)
        assert (status, reply["error"], reply["retriable"], reply["leader_id"]) == (503, "NOT_CONTROLLER", "yes", 1)
        assert "is not asked: the certificate of this process has ended" in reply["message"]
        assert (await s.ask(1, "GET", "/v1/topics"))[1]["topics"] == []
        async with ControllerClient([s.urls[0]], tls=own) as client:
            with pytest.raises(NotController, match="is not asked"):
                await client.create_topics(CreateTopicsRequest(topics=[CreatableTopic(name="a", num_partitions=1)]))


async def test_active_controller_that_does_not_answer_leaves_the_outcome_of_a_write_unknown() -> None:
    """It is frozen: the connection stands, nothing comes. The write may be made when it wakes up."""
    async with stage(limits=node_limits(forward_timeout_ms=200)) as s, frozen_server() as url:
        s.peers[1] = Peer(1, url)
        status, reply, _ = await s.ask(2, "POST", "/v1/topics", CREATE)
        assert (status, reply["error"], reply["retriable"]) == (504, "REQUEST_TIMED_OUT", "after-reading")
        status, reply, _ = await s.ask(2, "GET", "/v1/topics?consistency=linearizable")
        assert (status, reply["error"], reply["retriable"]) == (503, "REQUEST_TIMED_OUT", "yes")


async def test_answer_of_a_frozen_controller_is_not_waited_for_when_another_has_taken_over() -> None:
    async with stage() as s, frozen_server() as url:
        s.peers[1] = Peer(1, url)
        write = asyncio.create_task(s.ask(2, "POST", "/v1/topics", CREATE))
        read = asyncio.create_task(s.ask(2, "GET", "/v1/topics?consistency=linearizable"))
        assert not (await asyncio.wait({write, read}, timeout=0.3))[0]

        with within(5.0, "the frozen one was waited for"):
            await s.elect(3)
            await asyncio.wait({write, read})

        status, reply, _ = await write
        assert (status, reply["error"], reply["retriable"]) == (504, "REQUEST_TIMED_OUT", "after-reading")
        assert "controller 3 has taken over meanwhile" in reply["message"]
        status, reply, _ = await read
        assert (status, reply["error"], reply["retriable"]) == (503, "REQUEST_TIMED_OUT", "yes")


@pytest.mark.parametrize("said", [{}, {TIMEOUT_MS: "400"}], ids=["usual time", "short time"])
async def test_view_is_given_by_the_standby_itself_when_the_active_controller_does_not_answer(
    said: dict[str, str],
) -> None:
    async with stage() as s, frozen_server() as url:
        s.peers[1] = Peer(1, url)
        with within(1.0, "the active one was waited for"):
            status, reply, headers = await s.ask(2, "GET", "/v1/status", headers=said)
        assert (status, headers["X-Quorate-Node"], reply["quorum"]["active_id"]) == (200, "2", 1)


async def test_deletion_whose_connection_breaks_is_not_sent_again() -> None:
    """A library that repeats it would have the second one answered: not found."""
    seen = []

    async def break_off(request: web.Request) -> web.StreamResponse:
        seen.append(request.path)
        if len(seen) > 1 and request.transport is not None:
            request.transport.abort()
        return web.json_response({"responses": []})

    async with stage() as s, server(break_off) as url:
        s.peers[1] = Peer(1, url)
        assert (await s.ask(2, "DELETE", "/v1/topics/foo"))[0] == 200
        status, reply, _ = await s.ask(2, "DELETE", "/v1/topics/foo")
        assert (status, reply["retriable"]) == (504, "after-reading")
        assert len(seen) == 2


async def test_write_that_loses_its_leader_before_the_commit_is_of_unknown_outcome(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # On a slow machine the standby may look who leads before it hears the answer of who led.
    monkeypatch.setattr(forwarding, "_LOOK_S", PATIENCE_S)
    async with stage() as s:
        await s.register(1, 11)
        s.quorum.is_held = True
        write = asyncio.create_task(s.ask(3, "POST", "/v1/topics", CREATE))
        await eventually(lambda: pending(s), "the write waits for its commit")
        await s.elect(2)
        status, reply, _ = await write
        assert (status, reply["error"], reply["retriable"]) == (504, "NOT_CONTROLLER", "after-reading")


async def test_write_that_does_not_commit_in_the_clients_time_is_of_unknown_outcome() -> None:
    async with stage() as s:
        await s.register(1, 11)
        s.quorum.is_held = True
        status, reply, _ = await s.ask(3, "POST", "/v1/topics", CREATE, headers={"X-Quorate-Timeout-Ms": "100"})
        assert (status, reply["error"], reply["retriable"]) == (504, "REQUEST_TIMED_OUT", "after-reading")


def create(s: Stage, name: str, **headers: str) -> asyncio.Task[tuple[int, Any, Any]]:
    """Ask standby 2 for a topic."""
    return asyncio.create_task(s.ask(2, "POST", "/v1/topics", {"topics": [{"name": name}]}, headers=headers))


async def test_what_is_passed_on_at_once_and_what_waits_for_it_is_bounded() -> None:
    """Over the bounds nothing was sent to the active controller, and it is not called unreachable."""
    async with stage(limits=node_limits(forwarded_at_once=2, forward_waiting_max=1)) as s:
        await s.register(1, 11)
        s.quorum.is_held = True
        passed_on = [create(s, "a"), create(s, "b")]
        await eventually(lambda: _is(s.members[1].controller.pending_replies == 2), "two wait for their commit")
        hasty = create(s, "hasty", **{"X-Quorate-Timeout-Ms": "200"})
        status, reply, headers = await hasty
        assert (status, reply["error"], reply["retriable"]) == (429, "THROTTLING_QUOTA_EXCEEDED", "yes")
        assert (reply["leader_id"], headers["Retry-After"]) == (None, "1")
        assert "it was not this one's turn" in reply["message"]
        more = [create(s, "c"), create(s, "d")]

        (refused,), (waiting,) = await asyncio.wait(more, return_when=asyncio.FIRST_COMPLETED)

        status, reply, headers = refused.result()
        assert (status, reply["error"], headers["Retry-After"]) == (429, "THROTTLING_QUOTA_EXCEEDED", "1")
        said = "too many requests wait to be passed on to the active controller: 1, and no more may"
        assert reply["message"] == said
        assert s.members[1].controller.pending_replies == 2
        s.quorum.is_held = False
        s.quorum.commit()
        assert [(await answer)[0] for answer in (*passed_on, waiting)] == [200] * 3
        assert len(s.members[1].controller.stable.topics.by_id) == 3


async def test_client_that_a_standby_refuses_comes_again_by_itself_and_is_told_so_where_its_time_does_not_do() -> None:
    async with stage(limits=node_limits(forwarded_at_once=1, forward_waiting_max=1)) as s:
        await s.register(1, 11)
        s.quorum.is_held = True
        writes = [create(s, name) for name in "abc"]
        (refused,), waiting = await asyncio.wait(writes, return_when=asyncio.FIRST_COMPLETED)
        assert refused.result()[0] == 429
        late = CreateTopicsRequest(topics=[CreatableTopic(name="late", num_partitions=1)])
        async with ControllerClient([s.urls[1]]) as client, ControllerClient([s.urls[1]], timeout_ms=900) as hasty:
            with pytest.raises(Overloaded, match=r"no more may \(asked once in 0\.\d s; try again in 1\.0 s\)"):
                await hasty.create_topics(late)
            asked = asyncio.create_task(client.create_topics(late))
            sender = client.sender
            assert isinstance(sender, Attempts)
            await eventually(lambda: _is(sender.overload is not None), "it waits until it may come again")
            s.quorum.is_held = False
            s.quorum.commit()
            checked(await asked)
        assert {(await write)[0] for write in waiting} == {200}
        assert len(s.members[1].controller.stable.topics.by_id) == 3


async def test_active_controller_that_the_quorum_hears_is_tried_again_when_a_connection_takes_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A full queue of connections swallows the first attempt; a new one finds room."""
    monkeypatch.setattr(forwarding, "CONNECT_SECONDS", 0.5)
    async with stage() as s, full_port() as listening:
        s.peers[1] = Peer(1, f"http://127.0.0.1:{listening.getsockname()[1]}")
        write = create(s, "foo")
        assert not (await asyncio.wait({write}, timeout=0.6))[0], "it was given up"
        async with serving_one_answer(listening):
            assert (await write)[0] == 200


async def test_active_controller_that_the_quorum_hears_is_never_called_unreachable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(forwarding, "CONNECT_SECONDS", 0.05)
    async with stage() as s, full_port() as listening:
        s.peers[1] = Peer(1, f"http://127.0.0.1:{listening.getsockname()[1]}")
        status, reply, headers = await create(s, "foo")
    assert (status, reply["error"], headers["Retry-After"]) == (429, "THROTTLING_QUOTA_EXCEEDED", "1")
    assert reply["message"] == "controller 1 is active and took no connection for 0.2 s: it is busy"


async def test_broker_and_who_asks_how_the_cluster_is_wait_for_nobody_who_changes_it() -> None:
    """However many writes wait to be passed on: a broker lives by its heartbeats."""
    async with stage(limits=node_limits(forwarded_at_once=1, forward_waiting_max=1)) as s:
        epoch = await s.register(1, 11)
        s.quorum.is_held = True
        writes = [create(s, name) for name in ("a", "b", "c")]
        (refused,), waiting = await asyncio.wait(writes, return_when=asyncio.FIRST_COMPLETED)
        assert refused.result()[0] == 429
        beat = {"broker_id": 11, "broker_epoch": epoch, "current_metadata_offset": s.quorum.committed}
        status, reply, _ = await s.ask(2, "POST", "/v1/broker-rpc/heartbeat", beat)
        assert (status, reply["is_fenced"]) == (200, False), reply
        status, reply, headers = await s.ask(2, "GET", "/v1/status")
        assert (status, headers["X-Quorate-Node"]) == (200, "1")
        assert not any(write.done() for write in waiting)
        s.quorum.is_held = False
        s.quorum.commit()
        assert {(await write)[0] for write in waiting} == {200}


async def test_active_controller_that_the_quorum_does_not_hear_cannot_be_reached(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(forwarding, "CONNECT_SECONDS", 0.1)
    async with stage() as s, full_port() as listening:
        s.peers[1] = Peer(1, f"http://127.0.0.1:{listening.getsockname()[1]}")
        s.members[2].soft.lost.add(1)
        async with asyncio.timeout(PATIENCE_S):
            status, reply, _ = await create(s, "foo")
    assert (status, reply["error"], reply["retriable"]) == (503, "NOT_CONTROLLER", "yes")
    assert "controller 1 is active and cannot be reached: Connection timeout" in reply["message"]


@asynccontextmanager
async def full_port() -> AsyncIterator[socket.socket]:
    """Listens, and its queue of connections is full: what comes is swallowed, as by a host that has vanished."""
    with socket.socket() as full, ExitStack() as fillers:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        full.setblocking(False)
        for _ in range(2):
            filler = fillers.enter_context(socket.socket())
            filler.setblocking(False)
            filler.connect_ex(full.getsockname())
        yield full


@asynccontextmanager
async def serving_one_answer(listening: socket.socket) -> AsyncIterator[None]:
    """Whoever asks is answered with a success."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError):  # a filler, which asks for nothing
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}")
        writer.close()

    server = await asyncio.start_server(answer, sock=listening)
    try:
        yield
    finally:
        server.close()


async def _is(holds: bool) -> bool:
    return holds


async def pending(s: Stage) -> bool:
    return s.members[1].controller.pending_replies > 0
