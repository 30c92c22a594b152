"""``no-ops``: what it costs that an answer which writes nothing is confirmed by a majority."""

from __future__ import annotations

import asyncio
import statistics
import time
import uuid
from collections.abc import Iterator
from typing import Final, NamedTuple

import uvloop
from pydantic import BaseModel

from quorate.controller.api.content import unpack
from quorate.controller.operations.bootstrap import FRESH_FEATURES
from quorate.controller.protocol import (
    BrokerHeartbeatRequest,
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
    CreatableTopic,
    CreateTopicsRequest,
    SupportedFeature,
)
from quorate.controller.protocol.configs import IncrementalAlterConfigsRequest
from quorate.scripts.benchmarks.figures import BenchmarkOutcome, Figure, percentile
from quorate.scripts.benchmarks.http_load import PlainConnection
from quorate.scripts.benchmarks.processes import Watch, brokers_sentence, processor_s, running_cluster
from quorate.scripts.benchmarks.workspace import Workspace

_IN_FLIGHT: Final = 64
_REQUESTS: Final = 20_000
_ALONE: Final = 2_000
_TIMEOUT_MS: Final = 30_000
_TOPIC: Final = "no-ops"
_BROKER_ID: Final = 10_000
_LEVEL_MAX: Final = 30


class _Kind(NamedTuple):
    """One request, sent again and again."""

    name: str
    path: str
    body: BaseModel
    status: int
    as_msgpack: bool = False

    def request(self, connection: PlainConnection) -> bytes:
        return connection.request(self.path, self.body, _TIMEOUT_MS, as_msgpack=self.as_msgpack)


class _Sample(NamedTuple):
    """Of one run of one kind."""

    alone_ms: float
    rate: float
    tail_ms: float
    processor_us: float


def run(workspace: Workspace) -> BenchmarkOutcome:
    """One cluster, in which nothing changes."""
    return uvloop.run(_run(workspace))


async def _run(workspace: Workspace) -> BenchmarkOutcome:
    count, alone = workspace.scaled(_REQUESTS, _IN_FLIGHT), workspace.scaled(_ALONE, 100)
    async with running_cluster(workspace, 0) as cluster, Watch(cluster) as watch:
        active = await watch.active()
        pid = cluster.controllers[active].pid
        assert pid is not None
        url = watch.connections[active].url
        connections = [await PlainConnection.open(url) for _ in range(_IN_FLIGHT)]
        kinds = await _kinds(connections[0], cluster.plan.cluster_id)
        samples: dict[str, list[_Sample]] = {kind.name: [] for kind in kinds}
        for number in range(workspace.runs):
            for kind in kinds:
                alone_ms = await _sent(connections[:1], kind, alone)
                before, start = processor_s(pid), time.perf_counter()
                latencies = await _sent(connections, kind, count)
                took, used = time.perf_counter() - start, processor_s(pid) - before
                sample = _Sample(
                    statistics.median(alone_ms), count / took, percentile(latencies, 99), 1e6 * used / count
                )
                samples[kind.name].append(sample)
            rates = ", ".join(f"{name} {found[-1].rate:,.0f}/s" for name, found in samples.items())
            workspace.say(f"no-ops: {number + 1} of {workspace.runs}: {rates}")
        for connection in connections:
            connection.close()
    return BenchmarkOutcome(
        f"3 controllers, {brokers_sentence()}, no broker process; one request over HTTP to the active controller again "
        f"and again, from a client without comforts: {alone:,} on one connection, then {count:,} on {_IN_FLIGHT} with "
        "one in flight each. A heartbeat that changes nothing is answered at once; a change that writes nothing and a "
        "refusal are confirmed by a majority first, with no disk in it",
        tuple(figure for name, found in samples.items() for figure in _figures(name, found)),
    )


def _figures(name: str, samples: list[_Sample]) -> Iterator[Figure]:
    alone_ms, rates, tails_ms, processor_us = zip(*samples, strict=True)
    yield Figure(f"{name}, one in flight", "ms", alone_ms)
    yield Figure(f"... {_IN_FLIGHT} in flight", "/s", rates)
    yield Figure("... 99th percentile of these", "ms", tails_ms)
    yield Figure("... processor time of the active controller for one", "µs", processor_us)


async def _kinds(connection: PlainConnection, cluster_id: str) -> tuple[_Kind, ...]:
    """The requests, with what they need."""
    features = [
        SupportedFeature(name=name, min_supported_version=0, max_supported_version=_LEVEL_MAX)
        for name in (*(name for name, _ in FRESH_FEATURES), "kraft.version")
    ]
    registration = BrokerRegistrationRequest(
        broker_id=_BROKER_ID,
        cluster_id=cluster_id,
        incarnation_id=uuid.uuid4().bytes,
        log_dirs=[uuid.uuid4().bytes],
        features=features,
    )
    registering = _Kind("registration", "/v1/broker-rpc/register", registration, 200, as_msgpack=True)
    answer = await connection.send(registering.request(connection))
    epoch = BrokerRegistrationResponse.model_validate(unpack(answer.body)).broker_epoch
    # Fenced, and it wants to stay so: nothing is elected because of it.
    heartbeat = BrokerHeartbeatRequest(
        broker_id=_BROKER_ID, broker_epoch=epoch, current_metadata_offset=epoch, want_fence=True
    )
    topic = CreateTopicsRequest(topics=[CreatableTopic(name=_TOPIC, num_partitions=1, replication_factor=1)])
    creating = _Kind("refused creation", "/v1/topics", topic, 409)
    await connection.send(creating._replace(status=200).request(connection))
    change = {"name": "retention.ms", "config_operation": "SET", "value": "1000"}
    resource = {"resource_type": "TOPIC", "resource_name": _TOPIC, "configs": [change]}
    configs = IncrementalAlterConfigsRequest.model_validate({"resources": [resource]})
    configuring = _Kind("change that writes nothing", "/v1/configs", configs, 200)
    await connection.send(configuring.request(connection))
    return (
        _Kind("heartbeat", "/v1/broker-rpc/heartbeat", heartbeat, 200, as_msgpack=True),
        configuring,
        creating,
    )


async def _sent(connections: list[PlainConnection], kind: _Kind, count: int) -> list[float]:
    """Send so many requests, one in flight on each connection; how long each took, in ms."""
    latencies: list[float] = []
    numbers = iter(range(count))

    async def send(connection: PlainConnection) -> None:
        request = kind.request(connection)
        for _ in numbers:
            start = time.perf_counter()
            await connection.send(request, kind.status)
            latencies.append((time.perf_counter() - start) * 1000)

    async with asyncio.TaskGroup() as senders:
        for connection in connections:
            senders.create_task(send(connection))
    return latencies
