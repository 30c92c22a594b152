"""``heartbeats``: what two thousand brokers cost the active controller by being there."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import uvloop

from quorate.controller.api.content import unpack
from quorate.controller.operations.bootstrap import FRESH_FEATURES
from quorate.controller.protocol import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
    SupportedFeature,
)
from quorate.scripts.benchmarks.figures import BenchmarkOutcome, Figure, FigureTarget, percentile
from quorate.scripts.benchmarks.http_load import PlainAnswer, PlainConnection
from quorate.scripts.benchmarks.processes import MeasuredCluster, Watch, processor_s, running_cluster
from quorate.scripts.benchmarks.workspace import Workspace
from quorate.scripts.cluster.local import LocalOptions

_BROKERS: Final = 2_000
_FIRST_ID: Final = 10_000
_INTERVAL_S: Final = 2.0
_RUN_S: Final = 10.0
_RUN_S_MIN: Final = 2.0
_IDLE_S: Final = 4.0
_REGISTERING: Final = 16
_TIMEOUT_MS: Final = 30_000
_LEVEL_MAX: Final = 30
#: A busy machine gives a figure above the target, not a refusal.
_OPTIONS: Final = LocalOptions({"BROKERS__HEARTBEAT_DEADLINE_MS": "15000"})
_HEARTBEAT: Final = "/v1/broker-rpc/heartbeat"
_REGISTER: Final = "/v1/broker-rpc/register"


def run(workspace: Workspace) -> BenchmarkOutcome:
    """One cluster; the brokers stay."""
    return uvloop.run(_run(workspace))


@dataclass(slots=True)
class _HeartbeatSource:
    """One broker process, as far as the controller can tell."""

    id: int
    connection: PlainConnection
    epoch: int = -1

    async def register(self, cluster_id: str) -> None:
        """Register, and beat until it is unfenced."""
        features = [
            SupportedFeature(name=name, min_supported_version=0, max_supported_version=_LEVEL_MAX)
            for name in (*(name for name, _ in FRESH_FEATURES), "kraft.version")
        ]
        body = BrokerRegistrationRequest(
            broker_id=self.id,
            cluster_id=cluster_id,
            incarnation_id=uuid.uuid4().bytes,
            log_dirs=[uuid.uuid4().bytes],
            features=features,
        )
        answer = await self.connection.send(self.connection.request(_REGISTER, body, _TIMEOUT_MS, as_msgpack=True))
        self.epoch = BrokerRegistrationResponse.model_validate(unpack(answer.body)).broker_epoch
        offset = answer.high_watermark - 1
        while True:
            answer = await self.beat(offset)
            offset = answer.high_watermark - 1
            if not BrokerHeartbeatResponse.model_validate(unpack(answer.body)).is_fenced:
                return

    def beat(self, applied_offset: int) -> asyncio.Future[PlainAnswer]:
        """Say that it lives."""
        body = BrokerHeartbeatRequest(
            broker_id=self.id, broker_epoch=self.epoch, current_metadata_offset=applied_offset
        )
        return self.connection.send(self.connection.request(_HEARTBEAT, body, _TIMEOUT_MS, as_msgpack=True))


class _Fleet:
    """All of them. Each beats at its interval, one broker after the other."""

    def __init__(self, brokers: list[_HeartbeatSource]) -> None:
        self._brokers = brokers
        self._applied_offset = 0
        #: Of the answers of one run.
        self.latencies_ms: list[float] = []

    async def beat(self, seconds: float) -> None:
        """Beat for a time, and wait for the last answers."""
        self.latencies_ms = []
        start = time.perf_counter()
        step_s = _INTERVAL_S / len(self._brokers)
        answers = []
        for number in range(int(seconds / step_s)):
            delay_s = start + number * step_s - time.perf_counter()
            if delay_s > 0:
                await asyncio.sleep(delay_s)
            answer = self._brokers[number % len(self._brokers)].beat(self._applied_offset)
            answer.add_done_callback(partial(self._answered, time.perf_counter()))
            answers.append(answer)
        await asyncio.gather(*answers)

    def _answered(self, sent_at: float, answer: asyncio.Future[PlainAnswer]) -> None:
        self.latencies_ms.append((time.perf_counter() - sent_at) * 1000)
        if answer.exception() is None:
            self._applied_offset = answer.result().high_watermark - 1


async def _run(workspace: Workspace) -> BenchmarkOutcome:
    count = workspace.scaled(_BROKERS, _REGISTERING)
    seconds = workspace.seconds or max(_RUN_S_MIN, _RUN_S * workspace.scale)
    samples: list[tuple[float, float, float, float, float]] = []
    ids = range(_FIRST_ID, _FIRST_ID + count)
    running = running_cluster(workspace, 0, options=_OPTIONS, asking_ids=ids)
    async with running as cluster, Watch(cluster) as watch:
        active = await watch.active()
        pid = cluster.controllers[active].pid
        assert pid is not None
        workspace.say(f"heartbeats: registering {count:,} brokers")
        before = processor_s(pid)
        fleet = _Fleet(await _registered(cluster, watch.connections[active].url, ids))
        joining = 1e6 * (processor_s(pid) - before) / count
        await fleet.beat(_INTERVAL_S)
        for number in range(workspace.runs):
            idle = await _share(pid, asyncio.sleep(min(seconds, _IDLE_S)))
            busy = await _share(pid, fleet.beat(seconds))
            latencies = fleet.latencies_ms
            per_beat = (busy - idle) / 100 * seconds / len(latencies) * 1e6
            samples.append((busy, idle, per_beat, percentile(latencies, 50), percentile(latencies, 99)))
            workspace.say(f"heartbeats: {number + 1} of {workspace.runs}: {busy:.1f} % of a core")
    busies, idles, beats, medians, tails = zip(*samples, strict=True)
    return BenchmarkOutcome(
        f"3 controllers, {count:,} brokers that registered over HTTP, each with a connection of its own to the active "
        f"controller and a heartbeat (msgpack) every {_INTERVAL_S:g} s, evenly spread, from a client without comforts; "
        f"processor time of the active controller's process over {seconds:g} s, all that it does included; before each "
        "run the same without heartbeats; before the first one all of them connect, register and are unfenced",
        (
            Figure("active controller", "% of a core", busies, (FigureTarget(10),)),
            Figure("... without heartbeats", "% of a core", idles),
            Figure("processor time of a heartbeat", "µs", beats),
            Figure("heartbeat to answer", "ms", medians),
            Figure("99th percentile", "ms", tails),
            Figure("processor time of a broker that connects and registers", "µs", (joining,)),
        ),
    )


async def _registered(cluster: MeasuredCluster, url: str, ids: Sequence[int]) -> list[_HeartbeatSource]:
    brokers: list[_HeartbeatSource] = []
    waiting = iter(ids)

    async def register() -> None:
        for broker_id in waiting:
            proof = cluster.askers.broker(broker_id)
            # Whoever connects and does not ask is a stranger, and has not long to do it.
            broker = _HeartbeatSource(broker_id, await PlainConnection.open(url, proof.tls, proof.bearer))
            await broker.register(cluster.plan.cluster_id)
            brokers.append(broker)

    async with asyncio.TaskGroup() as registering:
        for _ in range(_REGISTERING):
            registering.create_task(register())
    return brokers


async def _share(pid: int, work: Coroutine[Any, Any, object]) -> float:
    """Per cent of a core that a process uses while the work is done."""
    before, start = processor_s(pid), time.perf_counter()
    await work
    return 100 * (processor_s(pid) - before) / (time.perf_counter() - start)
