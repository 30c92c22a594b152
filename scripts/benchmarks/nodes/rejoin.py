"""``rejoin``: a controller of a large cluster that lost its directory, and a broker that has nothing yet."""

from __future__ import annotations

import asyncio
import time
from typing import Final

from quorate.broker.http.replies import ImageReply, ProcessReply
from quorate.controller.client.connection import Connection, NoAnswer, NotSent, Request, make_session
from quorate.metadata_log.errors import ApiError, QuorateError
from quorate.scripts.benchmarks.figures import BenchmarkOutcome, Figure, FigureTarget
from quorate.scripts.benchmarks.processes import Watch, brokers_sentence, running_cluster
from quorate.scripts.benchmarks.workspace import Workspace
from quorate.scripts.cluster.formatting import wipe
from quorate.scripts.cluster.local import LocalCluster
from quorate.scripts.cluster.making import controller_directory
from quorate.scripts.cluster.plan import PlannedBrokers
from quorate.scripts.cluster.ports import LOOPBACK, free_ports

_PARTITIONS: Final = 1_000_000
_BROKER_ID: Final = 900
_POLL_S: Final = 0.01
_LIMIT_S: Final = 120.0
_LOOK_MS: Final = 5_000.0
_STOP_S: Final = 5.0


def run(workspace: Workspace) -> BenchmarkOutcome:
    """One cluster; a controller wiped, and a broker started, once a run."""
    return asyncio.run(_run(workspace))


async def _run(workspace: Workspace) -> BenchmarkOutcome:
    count = workspace.scaled(_PARTITIONS, 100)
    workspace.say(f"rejoin: making a cluster of {count:,} partitions")
    votes, images = [], []
    async with running_cluster(workspace, count) as cluster, Watch(cluster) as watch:
        for number in range(workspace.runs):
            votes.append(await _rejoin(cluster, watch))
            images.append(await _broker(cluster, count))
            workspace.say(f"rejoin: {number + 1} of {workspace.runs}: {votes[-1]:.2f} s, broker {images[-1]:.2f} s")
    return BenchmarkOutcome(
        f"3 controllers with {count:,} partitions, {brokers_sentence()}, the metadata in a checkpoint; a standby killed"
        " (kill -9), its directory removed and formatted without a vote; from its process's start until the active"
        " controller counts it as a voter again. Then a broker process with nothing: from its start until its image"
        " with all partitions is published. Both asked every 10 ms",
        (
            Figure("wiped controller votes again", "s", tuple(votes), (FigureTarget(10.0),)),
            Figure("broker has published its image", "s", tuple(images), (FigureTarget(3.0),)),
        ),
    )


async def _rejoin(cluster: LocalCluster, watch: Watch) -> float:
    """Seconds until a wiped standby votes again."""
    active = await watch.active()
    node = max(other for other in cluster.controllers if other != active)
    process = cluster.controllers[node]
    process.kill()
    await process.wait(_STOP_S)
    planned = next(one for one in cluster.plan.controllers if one.id == node)
    wipe(controller_directory(cluster.directory, planned))
    begun = time.perf_counter()
    await process.start()
    async with asyncio.timeout(_LIMIT_S):
        while True:
            view = await watch.quorum(active)
            if view is not None and any(one.node_id == node and one.role == "standby" for one in view.voters):
                return time.perf_counter() - begun
            cluster.check()
            await asyncio.sleep(_POLL_S)


async def _broker(cluster: LocalCluster, partitions: int) -> float:
    """Seconds until a new broker process has published an image of all partitions."""
    (port,) = free_ports(1)
    process = cluster.broker_process(PlannedBrokers(ids=(_BROKER_ID,), http_port=port))
    session = make_session()
    connection = Connection(lambda: session, f"http://{LOOPBACK}:{port}")
    begun = time.perf_counter()
    try:
        await process.start()
        async with asyncio.timeout(_LIMIT_S):
            while not await _is_published(connection):
                process.check()
                await asyncio.sleep(_POLL_S)
        elapsed = time.perf_counter() - begun
        image = (await connection.send(Request("GET", "/v1/image", _LOOK_MS, is_for_brokers=True))).model(ImageReply)
        if image.partitions.total < partitions:
            raise QuorateError(f"the broker published {image.partitions.total} partitions, not {partitions}")
        return elapsed
    finally:
        process.kill()
        await process.wait(_STOP_S)
        await session.close()


async def _is_published(connection: Connection) -> bool:
    try:
        reply = (await connection.send(Request("GET", "/v1/process", _LOOK_MS, is_for_brokers=True))).model(
            ProcessReply
        )
    except (NotSent, NoAnswer, ApiError):
        return False
    return reply.following.is_caught_up and reply.following.applied_offset > 0
