"""``restart``: all controllers of a large cluster killed and started again."""

from __future__ import annotations

import asyncio
import time
from typing import Final

from controller.connection import NoAnswer, NotSent
from metadata_log.errors import ApiError
from scripts.benchmarks.figures import Figure, Outcome, Target
from scripts.benchmarks.processes import Watch, brokers_sentence, running_cluster
from scripts.benchmarks.small_write import small_write
from scripts.benchmarks.workspace import Workspace
from scripts.cluster.local import LocalCluster

_PARTITIONS: Final = 1_000_000
_RETRY_S: Final = 0.01
_LIMIT_S: Final = 60.0
_STOP_S: Final = 5.0


def run(workspace: Workspace) -> Outcome:
    """One cluster, killed and started once a run."""
    return asyncio.run(_run(workspace))


async def _run(workspace: Workspace) -> Outcome:
    count = workspace.scaled(_PARTITIONS, 100)
    workspace.say(f"restart: making a cluster of {count:,} partitions")
    times = []
    async with running_cluster(workspace, count) as cluster, Watch(cluster) as watch:
        for number in range(workspace.runs):
            await watch.active()
            times.append(await _restart(cluster, watch, number))
            workspace.say(f"restart: {number + 1} of {workspace.runs}: {times[-1]:.2f} s")
    return Outcome(
        f"3 controllers with {count:,} partitions, {brokers_sentence()}, the metadata in a checkpoint; all three "
        "killed (kill -9) and started at once; from the first process's start to the reply to a topic created over "
        "HTTP, asked for every 10 ms",
        (Figure("start to first commit", "s", tuple(times), (Target(4.0),)),),
    )


async def _restart(cluster: LocalCluster, watch: Watch, number: int) -> float:
    for process in cluster.controllers.values():
        process.kill()
    for process in cluster.controllers.values():
        await process.wait(_STOP_S)
    start = time.perf_counter()
    for process in cluster.controllers.values():
        await process.start()
    async with asyncio.timeout(_LIMIT_S):
        attempt = 0
        while True:
            for connection in watch.connections.values():
                attempt += 1
                try:
                    await small_write(connection, f"restart-{number}-{attempt}", 1_000)
                except (NotSent, NoAnswer, ApiError):
                    continue
                return time.perf_counter() - start
            cluster.check()
            await asyncio.sleep(_RETRY_S)
