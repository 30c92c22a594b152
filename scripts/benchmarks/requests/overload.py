"""``overload``: far more writes at once than can be carried out at once, and what becomes of all else meanwhile."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Final

import uvloop

from quorate.controller.api import headers
from quorate.controller.api.answers.status_models import StatusReply
from quorate.controller.client.connection import NoAnswer, NotSent, Request
from quorate.controller.protocol import CreatableTopic, CreateTopicsRequest
from quorate.metadata_log.errors import ApiError, ErrorCode, QuorateError
from quorate.scripts.benchmarks.burst import BurstAnswer, burst
from quorate.scripts.benchmarks.figures import BenchmarkOutcome, Figure, FigureTarget, percentile
from quorate.scripts.benchmarks.processes import MeasuredCluster, Watch, brokers_sentence, running_cluster
from quorate.scripts.benchmarks.workspace import Workspace

_AT_ONCE: Final = 3_000
#: More than wait on a standby to be passed on, and more than one address may have connections.
_BEYOND: Final = 6_000
_AT_ONCE_MIN: Final = 100
_TIMEOUT_MS: Final = 30_000
_PATIENCE_S: Final = 90.0
_REPLICATION_FACTOR: Final = 3
_PLAYED: Final = (1, 2, 3)
_PROBE_PAUSE_S: Final = 0.05
_STATUS_PAUSE_S: Final = 0.2
_LOOK_MS: Final = 5_000
#: Of reasons for which a cluster is not healthy: those that say of a controller that it is not there.
_NOT_THERE: Final = frozenset({"NO_ACTIVE_CONTROLLER", "CONTROLLERS_UNREACHABLE"})


def run(workspace: Workspace) -> BenchmarkOutcome:
    """One cluster, which grows."""
    return uvloop.run(_run(workspace))


@dataclass(slots=True)
class _Seen:
    """The rest of the cluster during one burst."""

    #: Of `/livez` on the controller that the burst went to.
    probes_ms: list[float] = field(default_factory=list)
    #: Answers to `/v1/status` that said of a controller that it is not there, and questions that got none.
    called_absent: int = 0


@dataclass(frozen=True, slots=True)
class _Burst:
    """One burst, and what became of it."""

    answers: list[BurstAnswer]
    seen: _Seen
    elections: int
    fenced: int

    def count(self, is_one: Callable[[BurstAnswer], bool]) -> int:
        return sum(map(is_one, self.answers))

    def last_s(self, status: HTTPStatus) -> float:
        """99th percentile of when they came; 0: none did."""
        after = [answer.after_s for answer in self.answers if answer.status == status]
        return percentile(after, 99) if after else 0.0

    @property
    def called_absent(self) -> int:
        """Times that a controller that is there was said not to be."""
        said = self.count(lambda answer: ErrorCode.NOT_CONTROLLER.name in answer.said)
        return said + self.seen.called_absent

    def figures(self, name: str) -> list[tuple[str, str, float, FigureTarget | None]]:
        """Name, unit, sample and target of each."""
        none = FigureTarget(0)
        others = [answer for answer in self.answers if not answer.is_done_or_may_come_again]
        return [
            (f"{name}: carried out (200)", "", self.count(lambda answer: answer.status == HTTPStatus.OK), None),
            ("... 99th percentile", "s", self.last_s(HTTPStatus.OK), None),
            (
                "... to come again (429)",
                "",
                self.count(lambda answer: answer.status == HTTPStatus.TOO_MANY_REQUESTS),
                None,
            ),
            ("... 99th percentile", "s", self.last_s(HTTPStatus.TOO_MANY_REQUESTS), FigureTarget(1.0)),
            ("... answered otherwise, or not", "", len(others), none),
            ("... a controller called absent", "", self.called_absent, none),
            ("... elections", "", self.elections, none),
            ("... brokers fenced", "", self.fenced, none),
            ("... /livez, 99th percentile", "ms", percentile(self.seen.probes_ms, 99), None),
        ]


async def _run(workspace: Workspace) -> BenchmarkOutcome:
    at_once = workspace.scaled(_AT_ONCE, _AT_ONCE_MIN)
    beyond = workspace.scaled(_BEYOND, 2 * _AT_ONCE_MIN)
    rows: list[list[tuple[str, str, float, FigureTarget | None]]] = []
    async with running_cluster(workspace, 0, (_PLAYED,)) as cluster, Watch(cluster) as watch:
        await cluster.wait_for_brokers(_PATIENCE_S)
        for number in range(workspace.runs):
            active = await watch.active()
            standby = next(node_id for node_id in watch.connections if node_id != active)
            row = []
            for name, node_id, count in (
                (f"{at_once:,} on the active controller", active, at_once),
                (f"{at_once:,} on a standby", standby, at_once),
                (f"{beyond:,} on a standby", standby, beyond),
            ):
                done = await _burst(cluster, watch, node_id, count, f"run-{number}-{node_id}-{count}")
                row += done.figures(name)
                workspace.say(f"overload: {number + 1} of {workspace.runs}: {name}: {_told(done)}")
            rows.append(row)
    figures = [
        Figure(name, unit, tuple(row[at][2] for row in rows), () if target is None else (target,))
        for at, (name, unit, _, target) in enumerate(rows[0])
    ]
    return BenchmarkOutcome(
        f"3 controllers, {brokers_sentence()}, one process that plays {len(_PLAYED)} of them; a burst is so many "
        "connections at once, each with one request for one topic of one partition and "
        f"{_TIMEOUT_MS // 1000} s for it, to the active controller or to a standby, from the benchmark's own process, "
        "which shares the processor; meanwhile the controller that has the burst is asked for /livez every "
        f"{_PROBE_PAUSE_S * 1000:.0f} ms, and for /v1/status every {_STATUS_PAUSE_S * 1000:.0f} ms; percentiles are "
        "from when the burst began; every 200 is for what is fsynced on a majority",
        tuple(figures),
    )


def _told(done: _Burst) -> str:
    counts: dict[str, int] = {}
    for answer in done.answers:
        name = str(answer.status) if answer.is_done_or_may_come_again else f"{answer.status}: {answer.said[:200]}"
        counts[name] = counts.get(name, 0) + 1
    return ", ".join(f"{count:,} x {name}" for name, count in sorted(counts.items()))


async def _burst(cluster: MeasuredCluster, watch: Watch, node_id: int, count: int, prefix: str) -> _Burst:
    before = await _epoch(watch)
    url = watch.connections[node_id].url
    requests = [_request(url, f"{prefix}-{number:05}") for number in range(count)]
    async with _watching(watch, node_id) as seen:
        answers = await burst(url, requests, _PATIENCE_S)
    await watch.active()
    brokers = (await cluster.client.describe_brokers()).brokers
    fenced = sum(broker.state == "fenced" for broker in brokers if broker.id in _PLAYED)
    await _check(cluster, prefix, answers)
    return _Burst(answers, seen, await _epoch(watch) - before, fenced)


def _request(url: str, name: str) -> bytes:
    topic = CreatableTopic(name=name, num_partitions=1, replication_factor=_REPLICATION_FACTOR)
    body = CreateTopicsRequest(topics=[topic]).model_dump_json().encode()
    head = (
        f"POST /v1/topics HTTP/1.1\r\nHost: {url.partition('//')[2]}\r\nContent-Type: application/json\r\n"
        f"{headers.TIMEOUT_MS}: {_TIMEOUT_MS}\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


@asynccontextmanager
async def _watching(watch: Watch, node_id: int) -> AsyncIterator[_Seen]:
    seen = _Seen()
    async with asyncio.TaskGroup() as watching:
        tasks = [watching.create_task(watcher(watch, node_id, seen)) for watcher in (_probe, _ask_status)]
        try:
            yield seen
        finally:
            for task in tasks:
                task.cancel()


async def _probe(watch: Watch, node_id: int, seen: _Seen) -> None:
    while True:
        begun = time.perf_counter()
        # One that is not answered took as long as it was waited for.
        with suppress(ApiError, NotSent, NoAnswer):
            await watch.connections[node_id].send(Request("GET", "/livez", _LOOK_MS))
        seen.probes_ms.append((time.perf_counter() - begun) * 1000)
        await asyncio.sleep(_PROBE_PAUSE_S)


async def _ask_status(watch: Watch, node_id: int, seen: _Seen) -> None:
    while True:
        try:
            status = (await watch.connections[node_id].send(Request("GET", "/v1/status", _LOOK_MS))).model(StatusReply)
            seen.called_absent += any(reason.code in _NOT_THERE for reason in status.reasons)
        except (ApiError, NotSent, NoAnswer):
            seen.called_absent += 1
        await asyncio.sleep(_STATUS_PAUSE_S)


async def _epoch(watch: Watch) -> int:
    """The newest that any controller knows."""
    views = [await watch.quorum(node_id) for node_id in watch.connections]
    return max(view.epoch for view in views if view is not None)


async def _check(cluster: MeasuredCluster, prefix: str, answers: list[BurstAnswer]) -> None:
    """Look whether all that was carried out is there, and nothing that was refused."""
    done = sum(answer.status == HTTPStatus.OK for answer in answers)
    unknown = sum(answer.status in (None, HTTPStatus.GATEWAY_TIMEOUT) for answer in answers)
    wanted = await cluster.client.list_topics(limit=1, names=f"{prefix}*", consistency="linearizable")
    found = wanted.matching
    if not done <= found <= done + unknown:
        raise QuorateError(f"{done} topics were created by their answers, and {found} are there")
