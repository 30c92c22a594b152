"""`quorum describe` and `status` about the past: what the log tells, of a running quorum and of its files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from quorate.controller.client.client import ControllerClient
from quorate.controller.protocol import CreatableTopic, CreateTopicsRequest
from quorate.scripts.cluster.making import controller_directory
from quorate.scripts.terminal import exit_codes
from tests.integration.commands import alone
from tests.integration.running_cluster import running_cluster
from tests.waiting import eventually


async def shown(*arguments: str) -> Any:
    """What a command says in JSON."""
    ended = await alone(*arguments, "--json")
    assert ended.code == exit_codes.DONE, ended.err
    return json.loads(ended.out)


async def test_leader_epoch_and_voters_of_the_past_are_those_of_the_log(tmp_path: Path) -> None:
    async with running_cluster(tmp_path / "var", 3, 1, is_secured=False) as cluster:
        urls = {c.id: f"127.0.0.1:{c.http_port}" for c in cluster.plan.controllers}
        first = await cluster.client.describe_quorum()
        assert first.active_id is not None
        empty = first.high_watermark
        topic = CreatableTopic(name="orders", num_partitions=4, replication_factor=1)
        await cluster.client.create_topics(CreateTopicsRequest(topics=[topic]))
        cluster.controllers[first.active_id].kill()
        left = next(id_ for id_ in urls if id_ != first.active_id)
        client_url = f"http://{urls[left]}"
        async with ControllerClient([client_url]) as client:

            async def is_led() -> bool:
                return (await client.describe_quorum()).active_id not in (first.active_id, None)

            await eventually(is_led, "another controller leads")
            now = await client.describe_quorum()

            async def knows() -> bool:
                return (await client.quorum_of(client_url, 1_000))[1].high_watermark >= now.high_watermark

            await eventually(knows, "the one that is asked knows of its epoch")
        asked = ("--controllers", urls[left])
        then = await shown("quorum", "describe", "--at", str(empty), *asked)
        assert (then["is_past"], then["is_active"], then["applied_offset"]) == (True, False, empty)
        assert (then["active_id"], then["epoch"]) == (first.active_id, first.epoch)
        assert (then["log_start_offset"], then["log_end_offset"]) == (None, None)
        assert [(v["node_id"], v["directory_id"], v["lag_records"], v["last_contact_ms"]) for v in then["voters"]] == [
            (c.id, c.directory_id, None, None) for c in cluster.plan.controllers
        ]
        later = await shown("quorum", "describe", "--at", f"epoch:{now.epoch}", *asked)
        assert (later["active_id"], later["epoch"]) == (now.active_id, now.epoch)
        directory = str(
            controller_directory(cluster.directory, next(c for c in cluster.plan.controllers if c.id == left))
        )
        read = await shown("quorum", "describe", "--at", str(empty), "--from", directory)
        assert {**read, "observed_by": left, "voters": [], "as_of": None} == {**then, "voters": [], "as_of": None}
        assert [{**v, "http": ""} for v in then["voters"]] == read["voters"]
        await is_told(("--at", str(empty), *asked), ("--at", str(empty), "--from", directory), partitions=0)
        end = str(then["high_watermark"] + 1)
        words = (await alone("quorum", "describe", "--at", end, "--from", directory)).cells
        assert [row[:2] for row in words][:2] == [["active", "controller"], ["epoch", str(first.epoch)]]
        refused = await alone("status", "--from", directory, "--watch")
        assert (refused.code, "does not change" in refused.said) == (exit_codes.USAGE, True)


async def is_told(*places: tuple[str, ...], partitions: int) -> None:
    """The same status from all places, with every field."""
    seen = [await shown("status", *arguments) for arguments in places]
    for one in seen:
        fields = {"verdict", "reasons", "voter_count", "reachable_count", "controllers", "status"}
        assert set(one) == {"schema_version", "as_of"} | fields
        assert (one["verdict"], one["reachable_count"], one["controllers"]) == ("healthy", None, [])
        assert one["status"]["partitions"]["total"] == partitions
        assert [broker["state"] for broker in one["status"]["brokers"]] == ["active"]
    assert seen[0]["status"]["partitions"] == seen[1]["status"]["partitions"]
    screen = (await alone("status", *places[0])).out
    assert screen.startswith("HEALTHY")
    assert [part for part in ("state at offset", "led by controller", "voters: ") if part not in screen] == []
