"""``checkpoint``: commits that go on while every controller writes a checkpoint of a large state."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import uvloop

from quorate.controller.api.checkpoint_models import CheckpointsReply
from quorate.controller.client.client import ControllerClient
from quorate.controller.protocol import AllocateProducerIdsRequest
from quorate.metadata_log.errors import ApiError, ErrorCode, QuorateError
from quorate.scripts.benchmarks.figures import BenchmarkOutcome, Figure, FigureTarget, percentile
from quorate.scripts.benchmarks.http_load import PlainConnection
from quorate.scripts.benchmarks.large_cluster import FIRST_BROKER_ID
from quorate.scripts.benchmarks.processes import Watch, brokers_sentence, processor_s, running_cluster
from quorate.scripts.benchmarks.workspace import Workspace
from quorate.scripts.cluster.local import LocalCluster

_PARTITIONS: Final = 1_000_000
_WRITES_PER_S: Final = 2_000
_WRITES_PER_S_MIN: Final = 50
_CONNECTIONS: Final = 40
#: Long enough that what happens once in ten seconds, with or without checkpoints, is in both stretches.
_QUIET_S: Final = 20.0
_QUIET_S_MIN: Final = 0.5
_WARM_UP_S: Final = 2.0
_TIMEOUT_MS: Final = 30_000
_LOOK_S: Final = 0.05
_TOO_SLOW: Final = "below it the machine cannot take this load now, and the latencies say only that"
_MS: Final = 1000.0


def run(workspace: Workspace) -> BenchmarkOutcome:
    """One cluster; a run is a quiet stretch, and one in which all controllers write a checkpoint."""
    return uvloop.run(_run(workspace))


@dataclass(slots=True)
class _Stretch:
    """Latencies in ms of the writes that were due in it, however late they were begun."""

    begun_at: float
    ended_at: float = math.inf
    latencies: list[float] = field(default_factory=list)
    #: Writes that were answered in it, whenever they were due.
    answered: int = 0

    def note(self, due: float, now: float) -> None:
        """A write has been answered."""
        if self.begun_at <= due < self.ended_at:
            self.latencies.append((now - due) * _MS)
        self.answered += self.begun_at <= now < self.ended_at

    @property
    def seconds(self) -> float:
        return self.ended_at - self.begun_at

    def percentile(self, which: int) -> float:
        return percentile(self.latencies, which)


class _Load:
    """Writes at a fixed rate, each due at its time and timed from then, also where it waits for one before it."""

    def __init__(self, connections: Sequence[PlainConnection], broker_epoch: int, rate: int) -> None:
        """``rate``: writes a second."""
        self._connections = connections
        self._rate = rate
        body = AllocateProducerIdsRequest(broker_id=FIRST_BROKER_ID, broker_epoch=broker_epoch)
        path = "/v1/broker-rpc/allocate-producer-ids"
        self._requests = [each.request(path, body, _TIMEOUT_MS, as_msgpack=True) for each in connections]
        self._stretches: list[_Stretch] = []
        #: By connection: when the write was due that is under way or comes next.
        self._due = [0.0] * len(connections)
        self._answered = asyncio.Event()

    async def write(self) -> None:
        """Until it is cancelled."""
        begins_at = asyncio.get_running_loop().time()
        async with asyncio.TaskGroup() as writers:
            for number, connection in enumerate(self._connections):
                writers.create_task(self._write(connection, number, begins_at))

    async def _write(self, connection: PlainConnection, number: int, begins_at: float) -> None:
        clock = asyncio.get_running_loop().time
        interval = len(self._connections) / self._rate
        due = self._due[number] = begins_at + number / self._rate
        while True:
            await asyncio.sleep(max(0.0, due - clock()))
            await connection.send(self._requests[number])
            now = clock()
            for stretch in self._stretches:
                stretch.note(due, now)
            due += interval
            self._due[number] = due
            self._answered.set()

    async def during(self, work: asyncio.Task[None]) -> _Stretch:
        """The stretch of a piece of work, once all is answered that was due in it."""
        clock = asyncio.get_running_loop().time
        stretch = _Stretch(clock())
        self._stretches.append(stretch)
        await work
        stretch.ended_at = clock()
        while min(self._due) < stretch.ended_at:
            self._answered.clear()
            await self._answered.wait()
        return stretch


async def _run(workspace: Workspace) -> BenchmarkOutcome:
    quiet_s = max(_QUIET_S_MIN, _QUIET_S * workspace.scale)
    rate = workspace.scaled(_WRITES_PER_S, _WRITES_PER_S_MIN)
    pairs: list[tuple[_Stretch, _Stretch]] = []
    busy: list[float] = []
    async with running_cluster(workspace, workspace.scaled(_PARTITIONS, 100)) as cluster, Watch(cluster) as watch:
        url = watch.connections[await watch.active()].url
        connections = [await PlainConnection.open(url) for _ in range(_CONNECTIONS)]
        load = _Load(connections, (await cluster.client.describe_broker(FIRST_BROKER_ID)).epoch, rate)
        async with asyncio.TaskGroup() as group:
            writing = group.create_task(load.write())
            await asyncio.sleep(min(_WARM_UP_S, quiet_s))
            for number in range(workspace.runs):
                quiet = await load.during(group.create_task(asyncio.sleep(quiet_s)))
                before = _processor_s(cluster)
                written = await load.during(group.create_task(_take_everywhere(cluster)))
                busy.append(100 * (_processor_s(cluster) - before) / written.seconds)
                pairs.append((quiet, written))
                added = written.percentile(99) - quiet.percentile(99)
                workspace.say(f"checkpoint: {number + 1} of {workspace.runs}: p99 {added:+.1f} ms")
            writing.cancel()
        for connection in connections:
            connection.close()
    return _outcome(workspace, rate, quiet_s, pairs, busy)


def _outcome(
    workspace: Workspace,
    rate: int,
    quiet_s: float,
    pairs: Sequence[tuple[_Stretch, _Stretch]],
    busy: Sequence[float],
) -> BenchmarkOutcome:
    def figure(name: str, which: int, side: int) -> Figure:
        return Figure(name, "ms", tuple(pair[side].percentile(which) for pair in pairs))

    added = tuple(written.percentile(99) - quiet.percentile(99) for quiet, written in pairs)
    rates = tuple(written.answered / written.seconds for _, written in pairs)
    return BenchmarkOutcome(
        f"3 controllers, {brokers_sentence()}, {workspace.scaled(_PARTITIONS, 100):,} partitions, no broker process; "
        f"{rate:,} blocks of producer ids a second asked for over HTTP of the active controller on {_CONNECTIONS} "
        "connections, each due at its time and timed from then to its reply, which is for what is fsynced on a "
        f"majority; a run is {quiet_s:g} s of that, and then as long as all three controllers need to write a "
        "checkpoint at the same time, with the setting log.checkpoint_work_percent as it is by default; of each run "
        "the percentiles of its writes",
        (
            Figure("p99 added by the checkpoints", "ms", added, (FigureTarget(20.0),)),
            figure("p50 without", 50, 0),
            figure("p99 without", 99, 0),
            figure("p50 while checkpoints are written", 50, 1),
            figure("p99 while checkpoints are written", 99, 1),
            Figure("time to write them", "s", tuple(written.seconds for _, written in pairs)),
            Figure("commits without", "/s", tuple(quiet.answered / quiet.seconds for quiet, _ in pairs)),
            Figure("commits meanwhile", "/s", rates, (FigureTarget(0.95 * rate, is_most=False, note=_TOO_SLOW),)),
            Figure("processor time of the controllers meanwhile", "% of a core", tuple(busy)),
        ),
    )


def _processor_s(cluster: LocalCluster) -> float:
    return sum(processor_s(process.pid) for process in cluster.controllers.values() if process.pid is not None)


async def _take_everywhere(cluster: LocalCluster) -> None:
    async with ControllerClient(cluster.plan.controller_urls, timeout_ms=_TIMEOUT_MS) as client:
        await asyncio.gather(*(_take(client, url) for url in cluster.plan.controller_urls))


async def _take(client: ControllerClient, url: str) -> None:
    try:
        await client.checkpoints.take(url)
    except ApiError as error:
        if error.code is not ErrorCode.REQUEST_TIMED_OUT:
            raise
        listed: CheckpointsReply = await client.checkpoints.list(url)
        while listed.writing_offset is not None:
            await asyncio.sleep(_LOOK_S)
            listed = await client.checkpoints.list(url)
        if not listed.checkpoints:
            raise QuorateError(f"{url} wrote no checkpoint") from error
