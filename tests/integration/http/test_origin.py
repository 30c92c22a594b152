"""The principal of a request: from the client, over a standby, to the log line of its change."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from quorate.controller.client.client import ControllerClient
from quorate.controller.decisions.origin import ANONYMOUS, Origin
from quorate.controller.engine.interfaces import DecidedWrite
from quorate.controller.protocol import CreatableTopic, CreateTopicsRequest
from quorate.metadata_log.errors import ApiError, ErrorCode
from quorate.scripts.cluster.local import LocalCluster, LocalOptions
from quorate.scripts.cluster.making import Ports, make_fresh
from quorate.scripts.cluster.ports import free_ports
from tests.integration.http_stage import stage

TOPICS = "/v1/topics"
READY_S = 60.0


def topics(name: str) -> CreateTopicsRequest:
    return CreateTopicsRequest(topics=[CreatableTopic(name=name, num_partitions=1, replication_factor=1)])


@pytest.mark.parametrize("asked", [1, 2])
async def test_origin_is_known_whoever_is_asked(asked: int) -> None:
    told: list[DecidedWrite] = []
    async with stage(2) as s:
        await s.register(1, 11)
        s.members[1].controller.on_decided = told.append
        sent = {"X-Quorate-Principal": "User:alice", "X-Request-Id": "mine"}
        for name, headers in (("named", sent), ("unnamed", {"X-Request-Id": "mine"})):
            status, _, _ = await s.ask(asked, "POST", TOPICS, topics(name).model_dump(), headers=headers)
            assert status == 200
        async with ControllerClient([s.urls[asked - 1]], principal="User:bob") as client:
            await client.create_topics(topics("client"))
    assert [write.name for write in told] == ["create_topics"] * 3
    origins = [write.origin for write in told if write.origin is not None]
    assert [one._replace(grounds=None) for one in origins[:2]] == [
        Origin("User:alice", "127.0.0.1", "mine", proof="said"),
        Origin(ANONYMOUS, "127.0.0.1", "mine", proof="said"),
    ]
    assert origins[2].principal == "User:bob"


@pytest.mark.parametrize(
    ("headers", "says"),
    [
        ({"X-Quorate-Principal": ""}, "Type:name"),
        ({"X-Quorate-Principal": "alice"}, "Type:name"),
        ({"X-Quorate-Principal": "User:"}, "Type:name"),
        ({"X-Quorate-Principal": "User:ä"}, "Type:name"),
        ({"X-Quorate-Principal": "User:" + "x" * 1_000}, "at most 256"),
        ({"X-Quorate-Hops": "1", "X-Quorate-Client": "somewhere"}, "IP address"),
        ({"X-Quorate-Hops": "1", "X-Quorate-Client": "1" * 1_000}, "IP address"),
        ({"X-Quorate-Hops": "1", "X-Quorate-Client": ""}, "IP address"),
    ],
)
async def test_header_that_names_nobody_is_refused_and_changes_nothing(headers: dict[str, str], says: str) -> None:
    async with stage(1) as s:
        end = s.quorum.log_end_offset
        for method, body in (("POST", topics("t").model_dump()), ("GET", None)):
            status, reply, _ = await s.ask(1, method, TOPICS, body, headers=headers)
            assert (status, reply["error"]) == (400, "INVALID_REQUEST"), reply
            assert says in reply["message"]
        assert s.quorum.log_end_offset == end


async def test_client_refuses_a_name_that_none_can_be() -> None:
    with pytest.raises(ApiError) as refused:
        ControllerClient(["127.0.0.1:1"], principal="User:a\r\nX-Other: b")
    assert refused.value.code is ErrorCode.INVALID_REQUEST


def log_lines(directory: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for file in directory.glob("logs/*.log") for line in file.read_text().splitlines()]


async def test_process_logs_who_asked_at_debug_level(tmp_path: Path) -> None:
    plan = make_fresh(tmp_path, Ports.of(free_ports(2)), 1, 0)
    cluster = LocalCluster(tmp_path, plan, LocalOptions({"LOGGING__LEVEL": "debug"}))
    try:
        await cluster.start()
        await cluster.wait_for_controllers(READY_S)
        async with ControllerClient(plan.controller_urls, principal="User:alice") as client:
            with pytest.raises(ApiError):
                await client.create_topics(topics("no/name"))
            features = await client.describe_features(is_linearizable=True)
            assert features.features
    finally:
        await cluster.stop()
    (decided,) = [line for line in log_lines(tmp_path) if line.get("operation") == "create_topics"]
    assert (decided["event"], decided["principal"], decided["address"]) == ("write.decided", "User:alice", "127.0.0.1")
