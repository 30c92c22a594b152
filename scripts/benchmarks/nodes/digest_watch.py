"""``digest-watch``: what it costs nodes to compare their states all the time, while partitions change."""

from __future__ import annotations

import asyncio
import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import cycle, islice
from typing import Final

import aiohttp
import uvloop

from quorate.controller.client.client import ControllerClient
from quorate.controller.protocol import (
    AlterPartitionData,
    AlterPartitionRequest,
    AlterPartitionTopic,
    BrokerState,
)
from quorate.metadata_log.errors import ErrorCode, QuorateError
from quorate.metadata_log.ids import Uuid
from quorate.scripts.benchmarks.figures import BenchmarkOutcome, Figure, FigureTarget
from quorate.scripts.benchmarks.processes import Watch, brokers_sentence, running_cluster
from quorate.scripts.benchmarks.workspace import Workspace
from quorate.scripts.cluster.local import LocalCluster

_PARTITIONS: Final = 1_000_000
_CHANGES_PER_S: Final = 2_000
_CHANGES_PER_REQUEST: Final = 100
_IN_FLIGHT: Final = 4
#: A broker that nobody plays: it asks for the changes, of partitions of topics from the whole table.
_LEADER: Final = 2
_SPREAD: Final = "*00"
_SPREAD_PARTITIONS_MIN: Final = 100_000
_PAGE: Final = 1_000
_PLAYED: Final = ((1,),)
#: A node compares every 10 s at most, and less often where that takes more than its share.
_RUN_S: Final = 120.0
_RUN_S_MIN: Final = 2.0
_SECONDS_PER_SCALE: Final = 600.0
_READY_S: Final = 60.0
_LOOK_S: Final = 0.1
_TIMEOUT_MS: Final = 30_000
_CORE_PERCENT: Final = FigureTarget(1.0)
_CONTROLLER_METRIC: Final = "quorate_digest_seconds_total"
_BROKER_METRIC: Final = "quorate_broker_digest_seconds_total"


def run(workspace: Workspace) -> BenchmarkOutcome:
    """One cluster; a run is a stretch of changes."""
    return uvloop.run(_run(workspace))


@dataclass(slots=True)
class _Led:
    """A partition of the broker that asks."""

    topic_id: Uuid
    index: int
    leader_epoch: int
    partition_epoch: int
    replicas: list[int]
    is_full: bool = True

    def change(self) -> AlterPartitionData:
        """The last replica leaves the ISR, or comes back."""
        isr = self.replicas[:-1] if self.is_full else self.replicas
        return AlterPartitionData(
            partition_index=self.index,
            leader_epoch=self.leader_epoch,
            partition_epoch=self.partition_epoch,
            new_isr_with_epochs=[BrokerState(broker_id=id_) for id_ in isr],
        )


class _IsrChanges:
    """ISR changes at a fixed rate: one that is late is made at once."""

    def __init__(self, client: ControllerClient, broker_epoch: int, partitions: list[_Led]) -> None:
        self._client = client
        self._broker_epoch = broker_epoch
        #: What each request in flight is about: no two are about the same partition.
        self._shares = [partitions[number::_IN_FLIGHT] for number in range(_IN_FLIGHT)]
        self.made = 0

    async def make(self) -> None:
        """Until it is cancelled."""
        async with asyncio.TaskGroup() as group:
            for number, share in enumerate(self._shares):
                group.create_task(self._make(number, share))

    async def _make(self, number: int, share: list[_Led]) -> None:
        clock = asyncio.get_running_loop().time
        size = min(_CHANGES_PER_REQUEST, len(share))
        partitions, interval = cycle(share), _IN_FLIGHT * size / _CHANGES_PER_S
        due = clock() + interval * number / _IN_FLIGHT
        while True:
            await asyncio.sleep(max(0.0, due - clock()))
            await self._ask(list(islice(partitions, size)))
            due = max(due + interval, clock() - 1.0)

    async def _ask(self, partitions: list[_Led]) -> None:
        topics: dict[Uuid, list[AlterPartitionData]] = {}
        for led in partitions:
            topics.setdefault(led.topic_id, []).append(led.change())
        request = AlterPartitionRequest(
            broker_id=_LEADER,
            broker_epoch=self._broker_epoch,
            topics=[AlterPartitionTopic(topic_id=id_, partitions=changes) for id_, changes in topics.items()],
        )
        response = await self._client.alter_partition(request, _TIMEOUT_MS)
        wrong = [one for topic in response.topics for one in topic.partitions if one.error_code is not ErrorCode.NONE]
        if wrong:
            raise QuorateError(f"an ISR change was refused: {wrong[0]}")
        for led in partitions:
            led.is_full = not led.is_full
            led.partition_epoch += 1
        self.made += len(partitions)


async def _led(client: ControllerClient, count: int) -> list[_Led]:
    names = _SPREAD if count >= _SPREAD_PARTITIONS_MIN else ""
    page = await client.list_partitions(limit=_PAGE, leader=_LEADER, names=names, consistency="linearizable")
    return [
        _Led(topic.topic_id, one.partition_index, one.leader_epoch, one.partition_epoch, one.replica_nodes)
        for topic in page.topics
        for one in topic.partitions
    ]


class _Meter:
    """Seconds of processor time that digests have taken, by node."""

    def __init__(self, cluster: LocalCluster, session: aiohttp.ClientSession) -> None:
        self._session = session
        self._places = dict.fromkeys(cluster.plan.controller_urls, _CONTROLLER_METRIC)
        self.broker = f"http://127.0.0.1:{cluster.plan.brokers[0].http_port}"
        self._places[self.broker] = _BROKER_METRIC

    async def read(self) -> Mapping[str, float]:
        """By URL, as of now."""
        return {url: await self._read(url, metric) for url, metric in self._places.items()}

    async def _read(self, url: str, metric: str) -> float:
        async with self._session.get(f"{url}/metrics") as answer:
            lines = (await answer.text()).splitlines()
        return next(float(line.removeprefix(f"{metric} ")) for line in lines if line.startswith(f"{metric} "))

    async def begun(self) -> Mapping[str, float]:
        """Once every node has compared: a controller's first digest is of the whole state."""
        async with asyncio.timeout(_READY_S):
            while True:
                seconds = await self.read()
                if all(seconds.values()):
                    return seconds
                await asyncio.sleep(_LOOK_S)


async def _run(workspace: Workspace) -> BenchmarkOutcome:
    count = workspace.scaled(_PARTITIONS, 1_200)
    seconds = max(_RUN_S_MIN, min(_RUN_S, _SECONDS_PER_SCALE * workspace.scale))
    workspace.say(f"digest-watch: making a cluster of {count:,} partitions")
    shares: list[tuple[float, float, float]] = []
    rates: list[float] = []
    async with (
        running_cluster(workspace, count, _PLAYED) as cluster,
        Watch(cluster) as watch,
        aiohttp.ClientSession() as session,
    ):
        await cluster.wait_for_brokers(_READY_S)
        active = watch.connections[await watch.active()].url
        broker_epoch = (await cluster.client.describe_broker(_LEADER)).epoch
        changes = _IsrChanges(cluster.client, broker_epoch, await _led(cluster.client, count))
        meter = _Meter(cluster, session)
        async with asyncio.TaskGroup() as group:
            making = group.create_task(changes.make())
            first = await meter.begun()
            for number in range(workspace.runs):
                before, made, begun = await meter.read(), changes.made, asyncio.get_running_loop().time()
                await asyncio.sleep(seconds)
                took = asyncio.get_running_loop().time() - begun
                spent = {url: 100 * (after - before[url]) / took for url, after in (await meter.read()).items()}
                broker, leader = spent.pop(meter.broker), spent.pop(active)
                shares.append((leader, max(spent.values()), broker))
                rates.append((changes.made - made) / took)
                workspace.say(f"digest-watch: {number + 1} of {workspace.runs}: {max(shares[-1]):.2f} % of a core")
            making.cancel()
    return _outcome(count, seconds, shares, rates, first[active])


def _outcome(
    count: int,
    seconds: float,
    shares: list[tuple[float, float, float]],
    rates: list[float],
    first_s: float,
) -> BenchmarkOutcome:
    leader, standby, broker = zip(*shares, strict=True)
    unit = "% of a core"

    def overall(name: str, samples: tuple[float, ...]) -> Figure:
        return Figure(name, unit, (statistics.fmean(samples),), (_CORE_PERCENT,))

    return BenchmarkOutcome(
        f"3 controllers with {count:,} partitions, {brokers_sentence()}, and one broker process that follows; "
        f"{_CHANGES_PER_S:,} ISR changes a second are asked for over HTTP, {_CHANGES_PER_REQUEST} a request, of "
        f"partitions from the whole table; a run is {seconds:g} s, and its sample the processor time of the threads "
        "that make digests, and rebuild states for others that ask, per second; the first digest of a controller, "
        "which is of the whole state, comes before",
        (
            overall("active controller, over all runs", leader),
            overall("the dearer standby, over all runs", standby),
            overall("broker process, over all runs", broker),
            Figure("active controller, each run", unit, tuple(leader)),
            Figure("the dearer standby, each run", unit, tuple(standby)),
            Figure("broker process, each run", unit, tuple(broker)),
            Figure("changes made", "/s", tuple(rates)),
            Figure("first digest of the active controller", "s", (first_s,)),
        ),
    )
