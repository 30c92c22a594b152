"""``create``: topics through HTTP, in bulk."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from typing import Final

from quorate.controller.client.client import ControllerClient
from quorate.controller.protocol import CreatableTopic, CreateTopicsRequest
from quorate.metadata_log.errors import ErrorCode, QuorateError
from quorate.scripts.benchmarks.figures import BenchmarkOutcome, Figure, FigureTarget
from quorate.scripts.benchmarks.processes import Watch, brokers_sentence, running_cluster
from quorate.scripts.benchmarks.workspace import Workspace

_PARTITIONS: Final = 1_000_000
_TOPICS_PER_REQUEST: Final = 50
_PARTITIONS_PER_TOPIC: Final = 100
PARTITIONS_PER_REQUEST: Final = _TOPICS_PER_REQUEST * _PARTITIONS_PER_TOPIC
_IN_FLIGHT: Final = 4


def run(workspace: Workspace) -> BenchmarkOutcome:
    """An empty cluster each run, filled to the full number."""
    return asyncio.run(_run(workspace))


async def _run(workspace: Workspace) -> BenchmarkOutcome:
    per_request = PARTITIONS_PER_REQUEST
    requests = workspace.scaled(_PARTITIONS // per_request)
    rates = []
    for number in range(workspace.runs):
        async with running_cluster(workspace, 0) as cluster, Watch(cluster) as watch:
            active = watch.connections[await watch.active()].url
            async with cluster.askers.client().client(active) as client:
                start = time.perf_counter()
                await create_in_bulk(client, requests)
                rates.append(requests * per_request / (time.perf_counter() - start))
            await _check(cluster.client, requests * per_request)
        workspace.say(f"create: {number + 1} of {workspace.runs}: {rates[-1]:,.0f} partitions/s")
    return BenchmarkOutcome(
        f"3 controllers, {brokers_sentence()}, no broker process; JSON requests of {_TOPICS_PER_REQUEST} topics x "
        f"{_PARTITIONS_PER_TOPIC} partitions over HTTP to the active controller, {_IN_FLIGHT} in flight, from "
        f"nothing to {requests * per_request:,} partitions, to the last reply; every reply is for what is fsynced on a "
        "majority",
        (Figure("partitions created", "/s", tuple(rates), (FigureTarget(100_000, is_most=False),)),),
    )


async def create_in_bulk(client: ControllerClient, requests: int) -> None:
    """Make so many requests of as many topics as one may hold here."""
    numbers = iter(range(requests))
    async with asyncio.TaskGroup() as senders:
        for _ in range(_IN_FLIGHT):
            senders.create_task(_send(client, numbers))


async def _send(client: ControllerClient, numbers: Iterator[int]) -> None:
    for number in numbers:
        topics = [
            CreatableTopic(
                name=f"bulk-{number:05}-{place:02}", num_partitions=_PARTITIONS_PER_TOPIC, replication_factor=3
            )
            for place in range(_TOPICS_PER_REQUEST)
        ]
        reply = await client.create_topics(CreateTopicsRequest(topics=topics))
        failed = [topic for topic in reply.topics if topic.error_code is not ErrorCode.NONE]
        if failed:
            raise QuorateError(f"topic {failed[0].name} was not created: {failed[0].error_message}")


async def _check(client: ControllerClient, expected: int) -> None:
    found = (await client.list_partitions(limit=1, consistency="linearizable")).matching
    if found != expected:
        raise QuorateError(f"{found} partitions were created instead of {expected}")
