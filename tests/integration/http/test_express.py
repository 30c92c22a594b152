"""The express lane answers as the framework does, and what is not its own it leaves to the framework."""

from __future__ import annotations

import asyncio
import json
import ssl
from typing import Any

import pytest

from quorate.broker.controllers.controllers import connect_controllers
from quorate.broker.controllers.feed import LOG_BEGIN
from quorate.controller.api import headers
from quorate.controller.api.content import MSGPACK, pack, unpack
from quorate.controller.http.serving import HttpServer
from quorate.controller.protocol import BrokerHeartbeatRequest
from quorate.controller.protocol.deletions import UndeletedReplicas
from tests.default_parts import node_limits
from tests.integration.http_stage import Stage, stage
from tests.waiting import PATIENCE_S, eventually

HOST = "127.0.0.1"
TOPICS = "/v1/topics"
HEARTBEAT = "/v1/broker-rpc/heartbeat"
#: Says nothing that is not so anyway, and is not in the lane's list.
FRAMEWORK = "Connection: keep-alive"


class Client:
    """One connection, on which bytes are sent as they are given."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def open(cls, on: Stage, node_id: int = 1) -> Client:
        return await cls.open_port(int(on.members[node_id].url.rpartition(":")[2]))

    @classmethod
    async def open_port(cls, port: int, tls: ssl.SSLContext | None = None) -> Client:
        return cls(*await asyncio.open_connection(HOST, port, ssl=tls))

    async def write(self, *pieces: bytes) -> None:
        for piece in pieces:
            self._writer.write(piece)
            await self._writer.drain()
            for _ in range(20):
                await asyncio.sleep(0)  # the server is in this loop, and reads it by itself

    async def read(self) -> tuple[int, dict[str, str], bytes]:
        """Status, headers and body of the next answer."""
        async with asyncio.timeout(PATIENCE_S):
            head = (await self._reader.readuntil(b"\r\n\r\n")).decode().rstrip().split("\r\n")
            fields = {name.lower(): value for name, value in (line.split(": ", 1) for line in head[1:])}
            return int(head[0].split()[1]), fields, await self._reader.readexactly(int(fields["content-length"]))

    async def is_closed(self) -> bool:
        async with asyncio.timeout(PATIENCE_S):
            return await self._reader.read(1) == b""

    def close(self) -> None:
        self._writer.close()


def request(path: str, body: Any, *lines: str, media: str = "application/json", host: str = HOST) -> bytes:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    head = [f"POST {path} HTTP/1.1", f"Host: {host}", f"Content-Type: {media}", f"Content-Length: {len(data)}", *lines]
    return "\r\n".join(head).encode() + b"\r\n\r\n" + data


def new_topics(*names: str, validate_only: bool = True) -> dict[str, Any]:
    topics = [{"name": name, "num_partitions": 1, "replication_factor": 1} for name in names]
    return {"topics": topics, "validate_only": validate_only}


def in_lane(on: Stage, node_id: int = 1) -> int:
    """Connections that are still in the lane."""
    server = on.members[node_id]._server
    assert server is not None
    return len(server._lane.connections)


NAMED = "X-Request-Id: a-name"
PROGRAM = "X-Quorate-Client-Id: loader"


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        (TOPICS, new_topics("a"), 200),
        (TOPICS, new_topics("taken"), 409),
        (TOPICS, new_topics("taken", "b"), 207),
        (HEARTBEAT, {"broker_id": 1, "broker_epoch": 77, "current_metadata_offset": 0}, 409),
    ],
)
async def test_lane_answers_as_the_framework_does(path: str, body: Any, status: int) -> None:
    async with stage() as on:
        await on.register(1, 1)
        await on.ask(1, "POST", TOPICS, new_topics("taken", validate_only=False))
        lane, framework = await Client.open(on), await Client.open(on)
        before = in_lane(on)
        counted = on.members[1].soft.counters().http_answers
        count = counted.get((f"POST {path}", status), 0)

        await lane.write(request(path, body, NAMED, PROGRAM))
        found = await lane.read()
        assert in_lane(on) == before
        await framework.write(request(path, body, NAMED, PROGRAM, FRAMEWORK))
        expected = await framework.read()
        assert in_lane(on) == before - 1

        assert found[0] == expected[0] == status
        assert found[1].keys() == expected[1].keys()
        same = found[1].keys() - {"date"}
        assert {name: found[1][name] for name in same} == {name: expected[1][name] for name in same}
        if status != 200:  # a topic that is only validated gets another id each time
            assert found[2] == expected[2]
        assert counted[f"POST {path}", status] == count + 2
        lane.close()
        framework.close()


async def test_heartbeat_that_changes_nothing_is_answered_without_the_queue() -> None:
    async with stage() as on:
        epoch = await on.register(1, 1)
        beat = {"broker_id": 1, "broker_epoch": epoch, "current_metadata_offset": 5}
        client = await Client.open(on)
        times = on.members[1].controller.events
        ran: list[str] = []
        times.observe = lambda name, _, __: ran.append(name)

        await client.write(request(HEARTBEAT, beat))
        status, _, body = await client.read()
        assert (status, json.loads(body)["is_fenced"], ran) == (200, False, [])
        assert on.members[1].node.broker_reports.sessions(on.quorum.leader_epoch)[1].applied_offset == 6

        await client.write(request(HEARTBEAT, beat | {"want_fence": True}))
        status, _, body = await client.read()
        assert (status, json.loads(body)["is_fenced"], ran) == (200, True, ["broker_heartbeat"])
        client.close()


def packed(body: BrokerHeartbeatRequest, *lines: str) -> bytes:
    return request(HEARTBEAT, pack(body), *lines, media=MSGPACK)


async def test_repeated_heartbeat_is_answered_and_counted_and_noted_as_the_first_one() -> None:
    async with stage() as on:
        epoch = await on.register(1, 1)
        member = on.members[1]
        counted = member.soft.counters().http_answers
        client = await Client.open(on)
        count = counted.get((f"POST {HEARTBEAT}", 200), 0)
        names = set()
        for number in range(5):
            undeleted = UndeletedReplicas(metadata_offset=500 + number, topics=[])
            beat = BrokerHeartbeatRequest(
                broker_id=1, broker_epoch=epoch, current_metadata_offset=1_000 + number, undeleted=undeleted
            )
            await client.write(packed(beat))
            status, fields, body = await client.read()
            assert (status, unpack(body)["is_fenced"], unpack(body)["is_caught_up"]) == (200, False, True)
            names.add(fields["x-request-id"])
            assert fields["x-quorate-high-watermark"] == str(on.quorum.committed)
            assert member.node.broker_reports.sessions(on.quorum.leader_epoch)[1].applied_offset == 1_001 + number
            if number == 2:  # what is said of the node is as of now
                assert (await on.ask(1, "POST", TOPICS, new_topics("a", validate_only=False)))[0] == 200
        assert len(names) == 5
        assert counted[f"POST {HEARTBEAT}", 200] == count + 5
        client.close()


async def test_repeated_heartbeat_of_a_broker_that_is_not_what_it_was_is_decided_anew() -> None:
    async with stage() as on:
        epoch = await on.register(1, 1)
        member = on.members[1]
        ran: list[str] = []
        member.controller.events.observe = lambda name, _, __: ran.append(name)
        client, other = await Client.open(on), await Client.open(on)
        beat = BrokerHeartbeatRequest(broker_id=1, broker_epoch=epoch, current_metadata_offset=1_000)
        for _ in range(2):
            await client.write(packed(beat))
            assert (await client.read())[0] == 200
        assert ran == []

        # Fenced by what it says elsewhere: the same bytes now ask for its return, which is a change.
        await other.write(packed(beat.model_copy(update={"want_fence": True})))
        assert unpack((await other.read())[2])["is_fenced"] is True
        await client.write(packed(beat))
        assert unpack((await client.read())[2])["is_fenced"] is False
        assert ran == ["broker_heartbeat", "broker_heartbeat"]

        # Registered again as another: the epoch that it says is an old one.
        await on.ask(1, "DELETE", "/v1/brokers/1")
        await client.write(packed(beat))
        status, _, body = await client.read()
        assert (status, json.loads(body)["error"]) == (409, "STALE_BROKER_EPOCH")

        # Nobody decides here any more.
        await on.elect(2)
        await client.write(packed(beat))
        assert (await client.read())[1]["x-quorate-node"] == "2"
        client.close()
        other.close()


async def test_heartbeat_waits_while_what_is_said_of_its_broker_may_still_be_lost() -> None:
    async with stage() as on:
        fence = {"broker_id": 1, "broker_epoch": await on.register(1, 1), "want_fence": True}
        on.quorum.is_held = True
        controller = on.members[1].controller

        async def waiting() -> int:
            return controller.pending_replies

        change = asyncio.create_task(on.ask(1, "POST", HEARTBEAT, {**fence, "current_metadata_offset": 5}))
        await eventually(waiting, "the change waits for its commit")
        client = await Client.open(on)

        await client.write(request(HEARTBEAT, {**fence, "current_metadata_offset": 5}))
        answer = asyncio.create_task(client.read())

        async def both_wait() -> bool:
            return controller.pending_replies == 2

        await eventually(both_wait, "the heartbeat waits for it too")
        assert not answer.done()
        on.quorum.is_held = False
        on.quorum.commit()

        assert (await answer)[0] == 200
        assert (await change)[0] == 200
        client.close()


CHUNKED = b"\r\n".join(
    [
        b"POST /v1/topics HTTP/1.1",
        b"Host: localhost",
        b"Content-Type: application/json",
        b"Transfer-Encoding: chunked",
        b"",
        b"2\r\n{}\r\n0\r\n\r\n",
    ]
)
WRONG = [
    (request(TOPICS, b"{"), 400),
    (request(TOPICS, {"topics": [], "unknown": 1}), 400),
    (request(TOPICS, new_topics("a"), media="text/plain"), 415),
    (request(TOPICS, new_topics("a"), "X-Quorate-Timeout-Ms: soon"), 400),
    (request(TOPICS, new_topics("a"), host="evil.example"), 403),
    (request(TOPICS, new_topics("a"), "Content-Length: 3"), 400),
    (request(TOPICS, new_topics("a"), "Content-Type : application/json"), 400),
    (request("/v1/nothing", new_topics("a")), 404),
    (b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n", 200),
    (CHUNKED, 400),
]


@pytest.mark.parametrize(("data", "status"), WRONG)
async def test_lane_leaves_what_is_not_its_own_to_the_framework(data: bytes, status: int) -> None:
    async with stage(1) as on:
        client = await Client.open(on)

        await client.write(data)

        assert (await client.read())[0] == status
        assert in_lane(on) == 0
        client.close()


async def test_lane_with_a_secret_lets_only_those_in_who_know_it() -> None:
    async with stage(1, shared_secret=b"s" * 32) as on:
        knows, guesses = await Client.open(on), await Client.open(on)

        await knows.write(request(TOPICS, new_topics("a"), f"Authorization: Bearer {'s' * 32}", host="any.example"))
        await guesses.write(request(TOPICS, new_topics("a"), f"Authorization: Bearer {'x' * 32}"))

        (known, told, _), (guessed, kept, _) = await knows.read(), await guesses.read()
        of_the_cluster = {
            name.lower() for name in (headers.CLUSTER, headers.ACTIVE, headers.EPOCH, headers.HIGH_WATERMARK)
        }
        assert (known != 401, guessed) == (True, 401)
        assert (of_the_cluster <= told.keys(), of_the_cluster & kept.keys()) == (True, set())
        assert in_lane(on) == 1
        knows.close()
        guesses.close()


async def test_request_in_pieces_or_too_large_is_answered_all_the_same() -> None:
    async with stage(1, limits=node_limits(body_bytes_max=100_000)) as on:
        whole = request(TOPICS, new_topics("a"))
        large = request(TOPICS, new_topics(*(f"a-topic-with-a-longer-name-{number}" for number in range(800))))
        too_large = request(TOPICS, b" " * 100_001)
        for pieces, status in (((whole[:30], whole[30:]), 422), ((large,), 207), ((too_large,), 413)):
            client = await Client.open(on)
            await client.write(*pieces)
            assert (await client.read())[0] == status
            client.close()


async def test_requests_that_do_not_wait_are_answered_in_their_order() -> None:
    async with stage() as on:
        await on.register(1, 1)
        client = await Client.open(on)

        # The second and third come while the first is under way; the last is the framework's.
        await client.write(
            request(TOPICS, new_topics("a"), "X-Request-Id: 1"),
        )
        on.quorum.is_held = True
        first = request(TOPICS, new_topics("b", validate_only=False), "X-Request-Id: 2")
        await client.write(first)
        await client.write(request(TOPICS, new_topics("c"), "X-Request-Id: 3"))
        await client.write(request(TOPICS, new_topics("d"), "X-Request-Id: 4", FRAMEWORK))
        on.quorum.is_held = False
        on.quorum.commit()

        named = [(await client.read())[1]["x-request-id"] for _ in range(4)]
        assert named == ["1", "2", "3", "4"]
        client.close()


async def test_standby_passes_on_what_comes_by_the_lane() -> None:
    async with stage() as on:
        await on.register(1, 1)
        client = await Client.open(on, 2)

        await client.write(request(TOPICS, new_topics("a")))
        status, fields, _ = await client.read()

        assert (status, fields["x-quorate-node"]) == (200, "1")
        client.close()


async def test_server_that_closes_gives_up_what_never_ends() -> None:
    async with stage(1) as on:
        on.quorum.is_held = True
        client, idle = await Client.open(on), await Client.open(on)
        await client.write(request("/v1/broker-rpc/allocate-producer-ids", {"broker_id": 1, "broker_epoch": 1}))
        await client.read()  # refused: there is no such broker

        await on.members[1].stop_serving()

        assert await client.is_closed()
        assert await idle.is_closed()
        client.close()
        idle.close()


async def test_connection_that_is_idle_for_too_long_is_closed_in_the_lane_as_in_the_framework() -> None:
    async with stage() as on:
        epoch = await on.register(1, 1)
        server = await HttpServer.start(on.members[1].node, HOST, 0, 1.0, idle_s=0.5)
        clients = [await Client.open_port(server.port) for _ in range(4)]
        silent, idle, framework, busy = clients
        beat = request(HEARTBEAT, {"broker_id": 1, "broker_epoch": epoch, "current_metadata_offset": 5})
        for client, line in ((idle, NAMED), (framework, FRAMEWORK)):
            await client.write(request(TOPICS, new_topics("a"), line))
            assert (await client.read())[0] == 200

        closed = asyncio.gather(silent.is_closed(), idle.is_closed(), framework.is_closed())

        async def are_closed() -> bool:
            await busy.write(beat)
            assert (await busy.read())[0] == 200
            return closed.done()

        await eventually(are_closed, "idle connections are closed")
        assert all(await closed)

        # A request that takes longer than a connection may be idle.
        on.quorum.is_held = True
        await busy.write(request(TOPICS, new_topics("b", validate_only=False)))
        answer = asyncio.create_task(busy.read())
        silent = await Client.open_port(server.port)
        assert await silent.is_closed()
        assert not answer.done()
        on.quorum.is_held = False
        on.quorum.commit()
        assert (await answer)[0] == 200

        await server.close()
        assert await busy.is_closed()
        for client in (*clients, silent):
            client.close()


async def test_rpcs_of_a_broker_stay_in_the_lane_whatever_it_reads() -> None:
    async with stage(1) as on:
        epoch = await on.register(1, 1)
        beat = BrokerHeartbeatRequest(broker_id=1, broker_epoch=epoch, current_metadata_offset=5)
        others = in_lane(on)
        async with connect_controllers([on.members[1].url], None, 10_000, [1]) as controllers:
            for _ in range(3):
                await controllers.feeds[0].fetch_batches(LOG_BEGIN, 0, 1_000_000)
                await controllers.rpc.broker_heartbeat(beat)
                assert in_lane(on) == others + 1
