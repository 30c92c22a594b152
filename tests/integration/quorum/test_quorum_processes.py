"""Real processes, real sockets, real disks: what was acknowledged survives whatever is killed or stopped."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from random import Random

import pytest

from quorate.metadata_log.batches.batch import HEADER_BYTES
from tests.integration.quorum_cluster import Client, Cluster
from tests.waiting import PATIENCE_S, eventually

#: Kills in the default run; 50 are meant for a machine of one's own.
KILLS = int(os.environ.get("QUORATE_TEST_KILLS", "5"))
WRITERS = 4


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[Cluster]:
    made = Cluster(tmp_path)
    try:
        await asyncio.gather(*(made.start(index) for index in range(made.count)))
        yield made
    finally:
        await made.kill_all()


class Load:
    """Writers that never stop, and what was acknowledged to them."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        #: Payload by end offset.
        self.acknowledged: dict[int, bytes] = {}
        self._number = 0
        self._tasks = [asyncio.create_task(self._write_for_ever()) for _ in range(WRITERS)]

    async def more(self, count: int) -> None:
        """Wait until so many more writes are acknowledged."""
        wanted = len(self.acknowledged) + count

        async def are_there() -> bool:
            return len(self.acknowledged) >= wanted

        await eventually(are_there, f"{count} more writes acknowledged")

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _write_for_ever(self) -> None:
        while True:
            try:
                client = await self._cluster.connect(await self._cluster.leader())
            except OSError:
                continue
            try:
                await self._write_while_it_leads(client)
            except (OSError, TimeoutError):
                continue
            finally:
                await client.close()

    async def _write_while_it_leads(self, client: Client) -> None:
        while True:
            self._number += 1
            payload = b"write %08d" % self._number
            async with asyncio.timeout(5):
                reply = await client.ask(op="append", payload=payload.hex())
            if "end" not in reply:
                return
            assert reply["end"] not in self.acknowledged, "one offset was acknowledged twice"
            self.acknowledged[reply["end"]] = payload


def _check_logs(cluster: Cluster, acknowledged: dict[int, bytes]) -> None:
    logs = [cluster.batches(index) for index in range(cluster.count)]
    assert logs[0] == logs[1] == logs[2], "the logs differ"
    for end, payload in acknowledged.items():
        assert logs[0][end][HEADER_BYTES:] == payload, f"the acknowledged write at {end} is not in the log"


@pytest.mark.timeout(300 + 20 * KILLS)
async def test_quorum_killed_nodes_under_load_lose_no_acknowledged_write(cluster: Cluster) -> None:
    """Any node is killed with SIGKILL at any time, again and again, while clients write."""
    rng = Random(KILLS)
    load = Load(cluster)
    for _ in range(KILLS):
        await load.more(rng.randint(5, 40))
        victim = await cluster.leader() if rng.random() < 0.6 else rng.randrange(cluster.count)
        await cluster.kill(victim)
        if rng.random() < 0.7:
            await load.more(5)
        await cluster.start(victim)
    await load.more(5)
    await load.stop()

    await cluster.level()
    await cluster.stop_all()

    assert len(load.acknowledged) >= 10 * KILLS
    _check_logs(cluster, load.acknowledged)


async def test_quorum_stopped_leader_that_wakes_up_serves_nothing_stale(cluster: Cluster) -> None:
    """A leader is stopped with SIGSTOP, deposed, and finds a read and a write in its socket when it goes on."""
    old = await cluster.leader()
    acknowledged = {await cluster.append(b"before"): b"before"}
    reading, writing = await cluster.connect(old), await cluster.connect(old)
    cluster.signal(old, signal.SIGSTOP)
    for number in range(5):
        payload = b"during %d" % number
        acknowledged[await cluster.append(payload, without=old)] = payload
    reading.send(op="read")
    writing.send(op="append", payload=b"to the old leader".hex())
    cluster.signal(old, signal.SIGCONT)
    async with asyncio.timeout(PATIENCE_S):
        read, written = await reading.reply(), await writing.reply()

    assert "error" in read or read["offset"] >= max(acknowledged), "a stale read was confirmed"
    if "end" in written:
        acknowledged[written["end"]] = b"to the old leader"
    await cluster.level()
    await cluster.stop_all()
    _check_logs(cluster, acknowledged)
    for each in (reading, writing):
        await each.close()
