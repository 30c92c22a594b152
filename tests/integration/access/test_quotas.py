"""The quota of mutations over HTTP: by user and by client id, whichever controller is asked, and when to come again."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from quorate.controller.client.client import ControllerClient
from quorate.controller.protocol import CreatableTopic, CreateTopicsRequest
from quorate.metadata_log.errors import ApiError, ErrorCode, Overloaded
from tests.default_parts import node_limits
from tests.integration.http.test_express import Client
from tests.integration.http_stage import Stage, stage
from tests.waiting import eventually

TOPICS = "/v1/topics"
#: A burst is worth a hundredth of a partition: the next one has to wait for a quarter of an hour.
SLOW = 0.001
ANA = {"X-Quorate-Principal": "User:ana"}


def topics(*names: str) -> dict[str, Any]:
    return {"topics": [{"name": name, "num_partitions": 1, "replication_factor": 1} for name in names]}


async def limit(s: Stage, *entity: tuple[str, str | None]) -> None:
    """Bound whoever is meant to nearly nothing."""
    parts = [{"entity_type": type_, "entity_name": name} for type_, name in entity]
    ops = [{"key": "controller_mutation_rate", "value": SLOW}]
    status, reply, _ = await s.ask(1, "POST", "/v1/client-quotas", {"entries": [{"entity": parts, "ops": ops}]})
    assert (status, reply["entries"][0]["error_code"]) == (200, 0), reply


def names(s: Stage) -> list[str]:
    return sorted(s.members[1].controller.stable.topics.by_name)


@pytest.mark.parametrize("asked", [1, 2])
async def test_user_over_his_quota_is_told_when_to_come_again(asked: int) -> None:
    async with stage(2) as s:
        await s.register(1, 11)
        await limit(s, ("user", "ana"))
        status, reply, _ = await s.ask(asked, "POST", TOPICS, topics("a"), headers=ANA)
        assert (status, reply["throttle_time_ms"]) == (200, 0)
        status, reply, answered = await s.ask(asked, "POST", TOPICS, topics("b"), headers=ANA)
        assert (status, reply["error"], reply["retriable"]) == (429, "THROTTLING_QUOTA_EXCEEDED", "yes")
        throttle_ms = reply["details"]["throttle_time_ms"]
        assert 900_000 < throttle_ms <= 1_000_000
        assert answered["Retry-After"] == str(math.ceil(throttle_ms / 1000))
        status, reply, _ = await s.ask(asked, "POST", TOPICS, topics("b", "c"), headers=ANA)
        assert (status, [one["error_code"] for one in reply["topics"]]) == (207, [89, 89])
        assert reply["throttle_time_ms"] <= throttle_ms
        status, reply, _ = await s.ask(asked, "DELETE", f"{TOPICS}/a", headers=ANA)
        assert (status, reply["error"]) == (429, "THROTTLING_QUOTA_EXCEEDED")
        assert names(s) == ["a"]
        status, _, _ = await s.ask(asked, "POST", TOPICS, topics("d"))
        assert (status, names(s)) == (200, ["a", "d"])
        assert s.members[1].node.operations.throttled_mutations() == 4


async def test_request_that_is_refused_as_a_whole_uses_no_quota() -> None:
    async with stage(1) as s:
        await s.register(1, 11)
        await limit(s, ("user", "ana"))
        large = topics("a", "b")
        large["topics"][1]["num_partitions"] = 10_000
        status, reply, _ = await s.ask(1, "POST", TOPICS, large, headers=ANA)
        assert (status, reply["error"], names(s)) == (422, "POLICY_VIOLATION", []), reply
        status, reply, _ = await s.ask(1, "POST", TOPICS, topics("a"), headers=ANA)
        assert (status, reply["throttle_time_ms"], names(s)) == (200, 0, ["a"])


@pytest.mark.parametrize("asked", [1, 2])
async def test_program_is_known_by_the_name_that_it_gives_itself(asked: int) -> None:
    async with stage(2) as s:
        await s.register(1, 11)
        await limit(s, ("client-id", "loader"))
        request = CreateTopicsRequest(topics=[CreatableTopic(name="a", num_partitions=1, replication_factor=1)])
        async with ControllerClient([s.urls[asked - 1]], client_id="loader") as client:
            await client.create_topics(request)
            with pytest.raises(ApiError) as refused:
                await client.create_topics(request.model_copy(update={"topics": [CreatableTopic(name="b")]}))
        assert refused.value.code is ErrorCode.THROTTLING_QUOTA_EXCEEDED
        assert not isinstance(refused.value, Overloaded)
        assert refused.value.details["throttle_time_ms"] > 900_000
        status, _, _ = await s.ask(asked, "POST", TOPICS, topics("b"), headers={"X-Quorate-Client-Id": "other"})
        assert (status, names(s)) == (200, ["a", "b"])


async def test_new_active_controller_begins_with_full_buckets() -> None:
    async with stage(2) as s:
        await s.register(1, 11)
        await limit(s, ("user", None))
        assert (await s.ask(1, "POST", TOPICS, topics("a"), headers=ANA))[0] == 200
        assert (await s.ask(1, "POST", TOPICS, topics("b"), headers=ANA))[0] == 429
        await s.elect(2)
        await s.elect(1)
        assert len(s.members[1].role.mutation_quotas) == 0
        assert (await s.ask(1, "POST", TOPICS, topics("b"), headers=ANA))[0] == 200


@pytest.mark.parametrize("name", ["x" * 257, "l\u00f6ader"])
async def test_client_id_that_none_can_be_is_refused(name: str) -> None:
    async with stage(1) as s:
        end = s.quorum.log_end_offset
        for method, body in (("POST", topics("t")), ("GET", None)):
            status, reply, _ = await s.ask(1, method, TOPICS, body, headers={"X-Quorate-Client-Id": name})
            assert (status, reply["error"]) == (400, "INVALID_REQUEST"), reply
            assert "X-Quorate-Client-Id" in reply["message"]
        assert s.quorum.log_end_offset == end
    with pytest.raises(ApiError):
        ControllerClient(["127.0.0.1:1"], client_id=name)


async def test_address_that_connects_too_often_is_told_so_and_keeps_what_it_has() -> None:
    async with stage(1) as s:
        kept = await Client.open(s)
        entity = [{"entity_type": "ip", "entity_name": "127.0.0.1"}]
        change = {"entries": [{"entity": entity, "ops": [{"key": "connection_creation_rate", "value": 1}]}]}
        assert (await s.ask(1, "POST", "/v1/client-quotas", change))[0] == 200
        opened = [await Client.open(s) for _ in range(20)]
        status, fields, body = await opened[-1].read()
        assert (status, fields["connection"]) == (429, "close")
        assert "connection_creation_rate is 1 connections a second from 127.0.0.1" in json.loads(body)["message"]
        assert await opened[-1].is_closed()
        await kept.write(b"GET /v1/features HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        assert (await kept.read())[0] == 200
        assert s.members[1].soft.counters().connections_refused >= 1
        for client in (kept, *opened):
            client.close()


async def test_connections_of_all_have_a_rate_by_the_settings() -> None:
    async with stage(1, limits=node_limits(connections_per_second_max=1, quota_burst_seconds=3)) as s:
        opened = [await Client.open(s) for _ in range(10)]
        status, _, body = await opened[-1].read()
        assert (status, "http.connections_per_second_max is 1" in json.loads(body)["message"]) == (429, True)

        async def is_heard() -> bool:
            client = await Client.open(s)
            opened.append(client)
            await client.write(b"GET /v1/features HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            return (await client.read())[0] == 200

        await eventually(is_heard, "a second later one more may come")
        for client in opened:
            client.close()
