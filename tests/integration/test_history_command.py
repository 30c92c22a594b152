"""`quorate history` of a cluster that ran: what its controllers wrote down about who asked."""

from __future__ import annotations

import json
from pathlib import Path

from controller.client import ControllerClient
from controller.protocol import CreatableTopic, CreateTopicsRequest
from scripts.cli import exit_codes
from scripts.cluster.making import controller_directory
from tests.integration.commands import alone
from tests.integration.running_cluster import running_cluster


async def test_history_names_event_and_principal_of_a_change(tmp_path: Path) -> None:
    async with running_cluster(tmp_path / "var", 1, 1) as cluster:
        topic = CreatableTopic(name="orders", num_partitions=1, replication_factor=1)
        async with ControllerClient(cluster.plan.controller_urls, principal="User:ana") as client:
            await client.create_topics(CreateTopicsRequest(topics=[topic]))
        directory = str(controller_directory(cluster.directory, cluster.plan.controllers[0]))
        live = await alone("history", "topic", "orders", "--from", cluster.plan.controller_urls[0], "--json")
        parts = [change["part"] for line in live.out.splitlines() for change in json.loads(line)["changes"]]
        assert (live.code, parts) == (exit_codes.DONE, ["topics", "topics", "partitions"])
        await cluster.stop()
        told = await alone("history", "topic", "orders", "--from", directory, "--json")
        steps = [json.loads(line) for line in told.out.splitlines()]
        assert told.code == exit_codes.DONE
        asked = [step for step in steps if step["event"] == "create_topics"]
        assert {(step["principal"], step["address"]) for step in asked} == {("User:ana", "127.0.0.1")}
        assert all(step["request_id"] for step in asked)
        assert [change["part"] for step in asked for change in step["changes"]] == ["topics", "topics", "partitions"]
        assert all(step["event"] is not None for step in steps)
        shown = (await alone("history", "broker", "11", "--from", directory)).out
        assert "register_broker by User:ANONYMOUS (127.0.0.1, " in shown
        wrong = await alone("history", "planet", "mars", "--from", directory)
        assert (wrong.code, "'planet mars' is none of" in wrong.said) == (exit_codes.USAGE, True)
