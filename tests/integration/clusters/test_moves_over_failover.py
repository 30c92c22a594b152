"""Moves that are under way when the active controller is killed: its successor goes on with them, as does a drain."""

from __future__ import annotations

from pathlib import Path

from quorate.controller.client.client import ControllerClient
from quorate.controller.protocol import CreatableTopic, CreateTopicsRequest
from quorate.scripts.terminal import exit_codes
from tests.integration.commands import end_of, start
from tests.integration.running_cluster import running_cluster
from tests.waiting import eventually

PARTITIONS = 12
DRAINED = 11


async def on_drained(client: ControllerClient) -> int:
    topic = (await client.describe_topic("orders", is_linearizable=True)).topic
    return sum(DRAINED in one.replica_nodes for one in topic.partitions)


async def test_drain_goes_on_when_the_active_controller_is_killed_in_the_middle_of_its_moves(tmp_path: Path) -> None:
    async with (
        running_cluster(tmp_path / "var", 3, 3, is_secured=False) as cluster,
        ControllerClient(cluster.plan.controller_urls) as client,
    ):
        topic = CreatableTopic(name="orders", num_partitions=PARTITIONS, replication_factor=2)
        await client.create_topics(CreateTopicsRequest(topics=[topic]))
        first = await on_drained(client)
        addresses = ",".join(cluster.plan.controller_urls)
        drain = await start(addresses, "brokers", "drain", str(DRAINED), "--yes", "--at-once", "1")

        async def is_in_the_middle() -> bool:
            return 0 < await on_drained(client) < first - 1

        await eventually(is_in_the_middle, "some have moved, and others have not")
        active = (await client.describe_quorum()).active_id
        assert active is not None
        cluster.controllers[active].kill()
        assert await on_drained(client) > 0, "it was killed before the last move"

        ended = await end_of(drain)
        assert (ended.code, ended.out.splitlines()[-1]) == (exit_codes.DONE, "Broker 11 holds no replica."), ended

        async def another_leads() -> bool:
            return (await client.describe_quorum()).active_id not in (active, None)

        await eventually(another_leads, "another controller is active")
        assert await on_drained(client) == 0
        assert (await client.list_partition_reassignments(is_linearizable=True)).topics == []
        partitions = (await client.describe_topic("orders", is_linearizable=True)).topic.partitions
        assert len(partitions) == PARTITIONS
        assert all(len({*one.replica_nodes}) == 2 and {*one.isr_nodes} == {*one.replica_nodes} for one in partitions)
