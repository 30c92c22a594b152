"""Writes that came while a process stood still are refused when it goes on."""

from __future__ import annotations

import json
import time

import pytest

from quorate.metadata_log.errors import ErrorCode
from tests.integration.http.test_express import FRAMEWORK, TOPICS, Client, request
from tests.integration.http_stage import stage


@pytest.mark.parametrize("line", [(), (FRAMEWORK,)], ids=["express", "framework"])
@pytest.mark.parametrize("node_id", [1, 2], ids=["active", "standby"])
async def test_change_that_may_have_waited_through_a_standstill_is_not_made(
    node_id: int, line: tuple[str, ...]
) -> None:
    """Whoever sent it to a frozen process may have gone, and have seen that it was not made."""
    async with stage() as s:
        await s.register(1, 11)
        client = await Client.open(s, node_id)
        body = {"topics": [{"name": "late", "num_partitions": 1, "replication_factor": 1}]}
        standstills = s.members[node_id].node.cluster.counters().standstills
        standstills.open(time.monotonic() - 600)
        standstills.note_look(time.monotonic(), 53.2)
        await client.write(request(TOPICS, body, *line))
        status, _, answer = await client.read()
        error = json.loads(answer)
        assert (status, error["code"], error["retriable"]) == (503, ErrorCode.NOT_CONTROLLER, "yes")
        assert "stood still for 53.2 s until now" in error["message"]
        assert (await s.ask(node_id, "GET", TOPICS))[0] == 200
        standstills.note_look(time.monotonic() - 60, 53.2)
        standstills.note_look(time.monotonic(), 0.0)
        await client.write(request(TOPICS, body, *line))
        assert (await client.read())[0] == 200
        client.close()
