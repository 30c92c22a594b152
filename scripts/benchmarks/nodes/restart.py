"""``restart``: all controllers of a large cluster killed and started again."""

from __future__ import annotations

import asyncio
import socket
import statistics
import time
from typing import Final, NamedTuple

from quorate.controller.client.connection import NoAnswer, NotSent
from quorate.metadata_log.errors import ApiError
from quorate.scripts.benchmarks.figures import BenchmarkOutcome, Figure, FigureTarget
from quorate.scripts.benchmarks.processes import Watch, brokers_sentence, processor_s, running_cluster
from quorate.scripts.benchmarks.small_write import small_write
from quorate.scripts.benchmarks.workspace import Workspace
from quorate.scripts.cluster.local import LocalCluster
from quorate.scripts.cluster.ports import LOOPBACK

_PARTITIONS: Final = 1_000_000
_RETRY_S: Final = 0.01
_LIMIT_S: Final = 60.0
_STOP_S: Final = 5.0


def run(workspace: Workspace) -> BenchmarkOutcome:
    """One cluster, killed and started once a run."""
    return asyncio.run(_run(workspace))


async def _run(workspace: Workspace) -> BenchmarkOutcome:
    count = workspace.scaled(_PARTITIONS, 100)
    workspace.say(f"restart: making a cluster of {count:,} partitions")
    times: list[Restarted] = []
    async with running_cluster(workspace, count) as cluster, Watch(cluster) as watch:
        for number in range(workspace.runs):
            await watch.active()
            times.append(await restart_all(cluster, watch, f"restart-{number}"))
            workspace.say(f"restart: {number + 1} of {workspace.runs}: {times[-1].seconds:.2f} s")
    elapsed, processor = zip(*times, strict=True)
    return BenchmarkOutcome(
        f"3 controllers with {count:,} partitions, {brokers_sentence()}, the metadata in a checkpoint; all three "
        "killed (kill -9) and started at once; from the first process's start to the reply to a topic created over "
        "HTTP, asked for every 10 ms",
        (
            Figure("start to first commit", "s", elapsed, (FigureTarget(3.0),)),
            Figure("processor time of a controller until then", "s", processor),
        ),
    )


class Restarted(NamedTuple):
    """The price of a start of all controllers."""

    #: Until the first commit.
    seconds: float
    #: That a controller has used by then.
    processor_s: float


async def restart_all(cluster: LocalCluster, watch: Watch, topic: str, limit_s: float = _LIMIT_S) -> Restarted:
    """Kill all controllers, start them, and create a topic, whose name begins so."""
    for process in cluster.controllers.values():
        process.kill()
    for process in cluster.controllers.values():
        await process.wait(_STOP_S)
    start = time.perf_counter()
    for process in cluster.controllers.values():
        await process.start()
    ports = {planned.id: planned.http_port for planned in cluster.plan.controllers}
    async with asyncio.timeout(limit_s):
        attempt = 0
        while True:
            for node_id, connection in watch.connections.items():
                if not _is_listening(ports[node_id]):
                    continue
                attempt += 1
                try:
                    await small_write(connection, f"{topic}-{attempt}", 1_000)
                except (NotSent, NoAnswer, ApiError):
                    continue
                elapsed_s = time.perf_counter() - start
                pids = [process.pid for process in cluster.controllers.values() if process.pid is not None]
                return Restarted(elapsed_s, statistics.mean(map(processor_s, pids)))
            cluster.check()
            await asyncio.sleep(_RETRY_S)


def _is_listening(port: int) -> bool:
    """Whether anybody does. An HTTP request that finds nobody takes a millisecond of the processor that is measured."""
    with socket.socket() as probe:
        return probe.connect_ex((LOOPBACK, port)) == 0
