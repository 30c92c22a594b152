"""The socket over which a running cluster's processes are handed on: it is there while somebody listens."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from quorate.scripts.cluster.lending import Lender, RemoteControl
from quorate.scripts.cluster.local import LocalCluster
from quorate.scripts.cluster.making import Ports, make_fresh
from quorate.scripts.cluster.plan import SOCKET_NAME, ClusterError


@pytest.mark.parametrize("turns", [1, 2, 20])
async def test_lender_that_is_cancelled_leaves_no_socket(tmp_path: Path, turns: int) -> None:
    """Before it listens, and while it does."""
    directory = tmp_path / "var"
    cluster = LocalCluster(directory, make_fresh(directory, Ports.from_base(20_000), 1, 0))
    was_there = []

    async def lend() -> None:
        async with Lender(cluster, lambda sentence: None).open():
            await asyncio.Event().wait()

    task = asyncio.create_task(lend())
    for _ in range(turns):
        await asyncio.sleep(0)
        was_there.append((directory / SOCKET_NAME).exists())
    task.cancel()
    await asyncio.wait({task})
    assert (was_there[-1], (directory / SOCKET_NAME).exists()) == (True, False)
    await cluster.client.close()


async def test_broker_that_no_process_plays_is_told_with_what_plays_it(tmp_path: Path) -> None:
    """Where a twin plays the brokers that were alive only, what is wrong with it names the others, too."""
    directory = tmp_path / "var"
    cluster = LocalCluster(directory, make_fresh(directory, Ports.from_base(20_000), 1, 1))
    async with Lender(cluster, lambda sentence: None).open():
        control = await RemoteControl.reach(directory)
        assert control is not None
        with pytest.raises(ClusterError, match=r"^'broker-13' is none of its processes: .*--imported --ids 13$"):
            await control.ask("start", ["broker-13"])
        with pytest.raises(ClusterError, match=r"^'controller-9' is none of its processes: controller-1, broker-11$"):
            await control.ask("start", ["controller-9"])
        await control.end()
    await cluster.client.close()
