"""``single-create``: topics created one by one over HTTP."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from typing import Final

import uvloop

from quorate.controller.client.client import ControllerClient
from quorate.controller.protocol import CreatableTopic, CreateTopicsRequest
from quorate.metadata_log.errors import QuorateError
from quorate.scripts.benchmarks.figures import BenchmarkOutcome, Figure, FigureTarget, percentile
from quorate.scripts.benchmarks.http_load import PlainConnection
from quorate.scripts.benchmarks.processes import Watch, brokers_sentence, processor_s, running_cluster
from quorate.scripts.benchmarks.workspace import Workspace
from quorate.scripts.cluster.local import LocalCluster

_IN_FLIGHT: Final = 64
_TOPICS: Final = 20_000
_WARM_UP: Final = 2_000
_ALONE: Final = 1_000
_ALONE_MIN: Final = 50
_REPLICATION_FACTOR: Final = 3
_TIMEOUT_MS: Final = 30_000


def run(workspace: Workspace) -> BenchmarkOutcome:
    """One cluster, which grows."""
    return uvloop.run(_run(workspace))


async def _run(workspace: Workspace) -> BenchmarkOutcome:
    count, alone = workspace.scaled(_TOPICS, _IN_FLIGHT), workspace.scaled(_ALONE, _ALONE_MIN)
    alone_ms: list[float] = []
    rates: list[float] = []
    shares: list[tuple[float, float, float]] = []
    async with running_cluster(workspace, 0) as cluster, Watch(cluster) as watch:
        active = await watch.active()
        url = watch.connections[active].url
        proof = cluster.askers.client()
        connections = [await PlainConnection.open(url, proof.tls, proof.bearer) for _ in range(_IN_FLIGHT)]
        await _create(connections, "warm", min(count, _WARM_UP))
        for number in range(workspace.runs):
            alone_ms.append(await _alone(connections[0], f"alone-{number}", alone))
            before = _processor_times(cluster, active)
            start = time.perf_counter()
            await _create(connections, f"run-{number}", count)
            rates.append(count / (time.perf_counter() - start))
            after = _processor_times(cluster, active)
            shares.append(tuple(1e6 * (b - a) / count for a, b in zip(before, after, strict=True)))  # type: ignore[arg-type]
            workspace.say(f"single-create: {number + 1} of {workspace.runs}: {rates[-1]:,.0f} topics/s")
        for connection in connections:
            connection.close()
        await _check(cluster.client, min(count, _WARM_UP) + workspace.runs * (alone + count))
    active_us, standbys_us, client_us = zip(*shares, strict=True)
    return BenchmarkOutcome(
        f"3 controllers, {brokers_sentence()}, no broker process; JSON requests of one topic of one partition over "
        f"HTTP to the active controller: {alone:,} on one connection, of which the median is taken, then {count:,} on "
        f"{_IN_FLIGHT} with one request in flight each, from a client without comforts in the benchmark's own process; "
        "every reply is for what is fsynced on a majority",
        (
            Figure("topic created, one in flight", "ms", tuple(alone_ms)),
            Figure("topics created", "/s", tuple(rates), (FigureTarget(5_000, is_most=False),)),
            Figure("processor time per topic: active controller", "µs", active_us),
            Figure("... both standbys", "µs", standbys_us),
            Figure("... client", "µs", client_us),
        ),
    )


def _processor_times(cluster: LocalCluster, active: int) -> tuple[float, float, float]:
    """Seconds so far: of the active controller, of all others together, and of this process."""
    pids = {node_id: process.pid for node_id, process in cluster.controllers.items()}
    times = {node_id: processor_s(pid) for node_id, pid in pids.items() if pid is not None}
    return times[active], sum(times.values()) - times[active], time.process_time()


async def _create(connections: list[PlainConnection], prefix: str, count: int) -> None:
    numbers = iter(range(count))
    async with asyncio.TaskGroup() as senders:
        for connection in connections:
            senders.create_task(_send(connection, prefix, numbers))


async def _send(connection: PlainConnection, prefix: str, numbers: Iterator[int]) -> None:
    for number in numbers:
        topic = CreatableTopic(name=f"{prefix}-{number:06}", num_partitions=1, replication_factor=_REPLICATION_FACTOR)
        body = CreateTopicsRequest(topics=[topic])
        await connection.send(connection.request("/v1/topics", body, _TIMEOUT_MS, as_msgpack=False))


async def _alone(connection: PlainConnection, prefix: str, count: int) -> float:
    """Create so many, one after the other; the median time of one, in ms."""
    latencies = []
    for number in range(count):
        start = time.perf_counter()
        await _send(connection, prefix, iter((number,)))
        latencies.append((time.perf_counter() - start) * 1000)
    return percentile(latencies, 50)


async def _check(client: ControllerClient, expected: int) -> None:
    found = (await client.list_topics(limit=1, consistency="linearizable")).matching
    if found != expected:
        raise QuorateError(f"{found} topics were created instead of {expected}")
