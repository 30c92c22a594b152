"""`quorate node`: directories that fail and are cordoned, replicas that are slowed down, at a broker's process."""

from __future__ import annotations

import asyncio
from pathlib import Path

from quorate.metadata_log.ids import uuid_text
from quorate.scripts.cluster.plan import ClusterPlan, PlannedBrokers, PlannedController
from tests.integration.broker_stage import playing
from tests.integration.commands import alone
from tests.integration.http_stage import CLUSTER_ID, stage


def plan(directory: Path, http_port: int) -> None:
    """A cluster of which nothing is run but brokers 1 and 2, in one process at this port."""
    ClusterPlan(
        cluster_id=CLUSTER_ID,
        controllers=(PlannedController(id=1, quorum_port=1, http_port=2, directory_id=uuid_text(b"\1" * 16)),),
        brokers=(PlannedBrokers(ids=(1, 2), http_port=http_port),),
    ).save(directory)


async def test_node_directories_fail_and_are_cordoned(tmp_path: Path) -> None:
    async with stage(1) as built, playing([1, 2], built.urls, log_directories=3) as played:
        await played.ready()
        plan(tmp_path, played.endpoint.port)
        at, broker = ("--dir", str(tmp_path)), built.members[1].controller.stable.cluster.brokers[2]
        first, second, third = map(uuid_text, broker.directories)
        all_of_them = f"{first}, {second}, {third}"

        failed = await alone("node", "fail-directory", "broker-2", second, *at)
        assert (failed.code, failed.out) == (0, f"broker-2: failed are {second} of {all_of_them}\n")
        next_one = await alone("node", "fail-directory", "broker-2", *at)
        assert next_one.out == f"broker-2: failed are {first}, {second} of {all_of_them}\n"
        cordoned = await alone("node", "cordon-directory", "broker-2", third, *at)
        assert cordoned.out == f"broker-2: cordoned are {third} of {all_of_them}\n"
        opened = await alone("node", "cordon-directory", "broker-2", *at)
        assert opened.out == f"broker-2: cordoned are none of {all_of_them}\n"

        again = await alone("node", "fail-directory", "broker-2", second, *at)
        assert (again.code, f"whole are: {third}" in again.err) == (1, True)
        unknown = await alone("node", "fail-directory", "broker-7", *at)
        assert unknown.code == 1
        assert "'broker-7' is no broker of this cluster; brokers are: broker-1, broker-2" in unknown.err
        assert (await played.get("/v1/brokers/1/directories"))[1]["failed"] == []
    gone = await alone("node", "fail-directory", "broker-2", *at)
    assert (gone.code, "does not answer" in gone.err) == (3, True)


async def test_node_replicas_are_slowed_down_and_stalled(tmp_path: Path) -> None:
    async with stage(1) as built, playing([1, 2], built.urls) as played:
        await played.ready()
        plan(tmp_path, played.endpoint.port)
        at = ("--dir", str(tmp_path))

        slow = await alone("node", "slow-down", "broker-2", "--copy-bytes-per-s", "1000", *at)
        assert slow.out.endswith("broker-2: its replicas copy 1,000 bytes a second\n"), slow
        assert (await played.get("/v1/rehearsal"))[1] == {"copy_bytes_per_s": 1000, "is_stalled": False}
        stalled = await alone("node", "slow-down", "broker-2", "--stall", *at)
        assert stalled.out.endswith("broker-2: its replicas copy nothing\n"), stalled
        assert (await played.get("/v1/rehearsal"))[1] == {"copy_bytes_per_s": 0, "is_stalled": True}
        senseless = await alone("node", "slow-down", "broker-2", "--stall", "--copy-bytes-per-s", "5", *at)
        assert senseless.code == 2
        assert (await played.get("/v1/rehearsal"))[1]["is_stalled"]
        quick = await alone("node", "slow-down", "broker-2", *at)
        assert quick.out.endswith("broker-2: its replicas copy as fast as they can\n"), quick
        assert (await played.get("/v1/rehearsal"))[1] == {"copy_bytes_per_s": 0, "is_stalled": False}


async def test_order_that_was_taken_and_not_answered_has_an_unknown_outcome(tmp_path: Path) -> None:
    """As one to a frozen process, which does it when it goes on."""

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"}")
        writer.close()

    async with await asyncio.start_server(take, "127.0.0.1", 0) as mute:
        plan(tmp_path, mute.sockets[0].getsockname()[1])
        taken = await alone("node", "slow-down", "broker-2", "--stall", "--dir", str(tmp_path))
        assert (taken.code, taken.out, "may do it yet: " in taken.err) == (4, "", True)
