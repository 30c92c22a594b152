"""Whoever does not take an answer is cut, and keeps the memory of it no longer."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from quorate.controller.connections import unread_answers
from tests.default_parts import node_limits
from tests.integration.http.test_express import FRAMEWORK, HOST, TOPICS, Client, request
from tests.integration.http_stage import Stage, stage
from tests.waiting import eventually

#: Of a topic whose description has half a megabyte.
PARTITIONS = 1_000
#: More than the kernel keeps of what is not taken.
REQUESTS = 40
DESCRIBE = f"GET /v1/topics/large HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode()


@asynccontextmanager
async def with_large_topic() -> AsyncIterator[Stage]:
    async with stage(1, limits=node_limits(head_timeout_ms=400)) as on:
        await on.register(1, 1)
        body = {"topics": [{"name": "large", "num_partitions": PARTITIONS, "replication_factor": 1}]}
        status, reply, _ = await on.ask(1, "POST", TOPICS, body)
        assert status == 200, reply
        yield on


async def silent(on: Stage, asked: bytes) -> Client:
    """One that asks for much and reads nothing, with small buffers of its own."""
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    made.setblocking(False)
    loop = asyncio.get_running_loop()
    await loop.sock_connect(made, (HOST, int(on.members[1].url.rpartition(":")[2])))
    client = Client(*await asyncio.open_connection(sock=made, limit=4_096))
    await client.write(asked * REQUESTS)
    return client


def unread(on: Stage) -> int:
    server = on.members[1]._server
    assert server is not None
    return len(server._lane.gate.unread._unread)


def displaced(on: Stage) -> int:
    return on.members[1].soft.counters().connections_displaced["reader"]


@pytest.mark.parametrize("asked", [DESCRIBE, request(TOPICS, b"{}", FRAMEWORK) + DESCRIBE], ids=["first", "later"])
async def test_client_that_does_not_take_its_answers_is_cut(asked: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    async with with_large_topic() as on:
        client = await silent(on, asked)

        async def lies_here() -> bool:
            return unread(on) == 1

        async def is_cut() -> bool:
            return displaced(on) == 1 and unread(on) == 0

        await eventually(lies_here, "an answer is not taken")
        assert displaced(on) == 0
        monkeypatch.setattr(unread_answers, "TAKE_S", 0.2)
        await eventually(is_cut, "the connection is cut")
        other = await Client.open(on)
        await other.write(DESCRIBE)
        assert (await other.read())[0] == 200
        other.close()
        client.close()


async def test_client_that_takes_its_answers_slowly_and_steadily_has_all_of_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(unread_answers, "TAKE_S", 0.05)
    monkeypatch.setattr(unread_answers, "TAKE_BYTES", 1)
    async with with_large_topic() as on:
        client = await silent(on, DESCRIBE)
        assert [(await client.read())[0] for _ in range(REQUESTS)] == [200] * REQUESTS
        assert displaced(on) == 0
        client.close()


async def test_principal_whose_answers_are_too_many_for_his_share_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where an authorizer decides; here every owner is made one."""
    monkeypatch.setattr(unread_answers, "BYTES_OF_ONE_MAX", 1_000)
    async with with_large_topic() as on:
        server = on.members[1]._server
        assert server is not None
        monkeypatch.setattr(server._lane.gate.places, "owner", lambda holder: "User:ana")
        client = await silent(on, DESCRIBE)

        async def is_cut() -> bool:
            return displaced(on) == 1 and unread(on) == 0

        await eventually(is_cut, "the connection is cut")
        client.close()
