"""A real process whose loop thread waits for a disk that hangs: it says so, and others lead."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from quorate.metadata_log.segments.segment_files import segment_name
from tests.integration.quorum_cluster import Cluster
from tests.waiting import eventually


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[Cluster]:
    made = Cluster(tmp_path)
    try:
        for index in range(made.count):
            made.make_quick(index)
        await asyncio.gather(*(made.start(index) for index in range(made.count)))
        yield made
    finally:
        await made.kill_all()


async def test_leader_whose_loop_waits_for_its_disk_says_so_and_is_a_follower_when_it_goes_on(cluster: Cluster) -> None:
    old = await cluster.leader()
    cluster.stick(old)

    async def stands_still() -> bool:
        client = await cluster.connect(old)
        client.send(op="append", payload=b"waits".hex())
        await client.close()
        return await cluster.status(old) is None

    async def is_told() -> bool:
        return "stands still" in cluster.said(old)

    await eventually(stands_still, "a sync on the loop thread hangs")
    await eventually(is_told, "the operator is told")
    said = cluster.said(old)
    assert f"node {3000 + old} stands still: its disk has not answered a write to" in said
    assert f"{cluster.log_directory(old)}/{segment_name(0)} for " in said
    assert "answered, the" not in said
    new = await cluster.leader(without=old)

    async def is_told_again() -> bool:
        return cluster.said(old).count("stands still") > 1

    await eventually(is_told_again, "and again, with how long it has been by now")
    cluster.unstick(old)

    async def follows() -> bool:
        status = await cluster.status(old)
        return status is not None and not status["leading"] and status["leader"] == 3000 + new

    async def is_told_of_the_end() -> bool:
        return "the disk has answered, the event loop goes on" in cluster.said(old)

    await eventually(follows, "it follows the new leader")
    await eventually(is_told_of_the_end, "the operator is told that it is over")
    assert cluster.said(old).count("stands still") < 10
    await cluster.level()
    await cluster.stop_all()
