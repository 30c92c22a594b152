"""``ten-million``: the life of a very large cluster: filled, a broker lost, work done by itself, killed and started."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

import aiohttp
import uvloop

from quorate.broker.http.replies import ProcessReply
from quorate.controller.client.connection import NoAnswer
from quorate.controller.protocol import BrokerHeartbeatRequest
from quorate.metadata_log.errors import ApiError, QuorateError
from quorate.scripts.benchmarks.command_lines import timed_command
from quorate.scripts.benchmarks.figures import BenchmarkOutcome, Figure, FigureTarget
from quorate.scripts.benchmarks.nodes.restart import restart_all
from quorate.scripts.benchmarks.processes import (
    MeasuredCluster,
    Watch,
    brokers_sentence,
    processor_s,
    running_cluster,
)
from quorate.scripts.benchmarks.requests.create import PARTITIONS_PER_REQUEST, create_in_bulk
from quorate.scripts.benchmarks.scrapes import ProcessScrape, longest_standstill, scrape_process
from quorate.scripts.benchmarks.workspace import Workspace
from quorate.scripts.cluster.local import LocalOptions
from quorate.scripts.cluster.ports import LOOPBACK
from quorate.scripts.terminal import exit_codes

_PARTITIONS: Final = 10_000_000
_VICTIM: Final = 12
#: Brokers that are played, by process.
_PLAYED: Final = ((1,), (2,))
_TIMEOUT_MS: Final = 120_000
#: A checkpoint is asked for, and not waited for.
_BEGIN_MS: Final = 1_000
_LIMIT_S: Final = 600.0
_LOOK_S: Final = 0.05
#: Long enough for each thing that happens by itself, with intervals as below.
_BY_ITSELF_S: Final = 60.0
_BY_ITSELF_S_MIN: Final = 0.5
_SCRAPES_S: Final = 5.0
#: A process rests that uses less than this share of a processor for so long.
_REST_S: Final = 1.0
_REST_SHARE: Final = 0.1
_OPTIONS: Final = LocalOptions(
    {
        "LIMITS__PARTITIONS_MAX": "20000000",
        "BROKERS__HEARTBEAT_DEADLINE_MS": "60000",
        "LIMITS__REQUEST_TIMEOUT_MS": "120000",
        # Every five minutes by default: too seldom for a run.
        "MAINTENANCE__LEADER_BALANCE_INTERVAL_MS": "10000",
        "MAINTENANCE__UNCLEAN_ELECTION_INTERVAL_MS": "10000",
    }
)
#: In the order in which the web page asks.
_PAGE: Final = ("/", "/v1/status", "/v1/answers/explain?limit=0", "/v1/answers/timeline")
_MS: Final = 1000.0
_MB: Final = 1_000_000
_KINDS: Final = ("active controller", "standbys", "broker processes")
_Scrapes = Mapping[str, ProcessScrape]


@dataclass(slots=True)
class _Samples:
    """Figures by name and unit, in the order in which they come first, a sample a run."""

    found: dict[tuple[str, str], list[float]] = field(default_factory=dict)
    targets: dict[str, FigureTarget] = field(default_factory=dict)

    def add(self, name: str, unit: str, value: float, at_most: float | None = None) -> None:
        self.found.setdefault((name, unit), []).append(value)
        if at_most is not None:
            self.targets[name] = FigureTarget(at_most)

    def figures(self) -> tuple[Figure, ...]:
        return tuple(
            Figure(name, unit, tuple(values), (self.targets[name],) if name in self.targets else ())
            for (name, unit), values in self.found.items()
        )


def run(workspace: Workspace) -> BenchmarkOutcome:
    """A cluster a run, from its making to its end."""
    return uvloop.run(_run(workspace))


async def _run(workspace: Workspace) -> BenchmarkOutcome:
    asked = workspace.partitions or workspace.scaled(_PARTITIONS)
    requests = max(1, round(asked / PARTITIONS_PER_REQUEST))
    count, samples = requests * PARTITIONS_PER_REQUEST, _Samples()
    seconds = max(_BY_ITSELF_S_MIN, workspace.seconds or _BY_ITSELF_S * min(1.0, 10 * count / _PARTITIONS))
    for _ in range(workspace.runs):
        async with running_cluster(workspace, 0, _PLAYED, _OPTIONS) as cluster, Watch(cluster) as watch:
            await cluster.wait_for_brokers(_LIMIT_S)
            life = _Life(workspace, cluster, watch, samples)
            async with aiohttp.ClientSession() as session:
                await life.live(session, requests, seconds)
    return BenchmarkOutcome(
        f"3 controllers, {brokers_sentence()}, and {len(_PLAYED)} broker processes that play one broker each; "
        f"{count:,} partitions created over HTTP, 100 a topic; when the broker processes rest, each less than "
        f"{_REST_SHARE:.0%} of a processor for {_REST_S:g} s, a heartbeat asks to fence one broker that nobody "
        "plays, until all processes have applied the last change (asked every 50 ms); then status is asked for twice, "
        "commands ask, each a process of its own from its start to its end, and all is asked for that the web page "
        "shows; "
        f"then {seconds:g} s at least in which all controllers write a checkpoint, leaders are balanced and unclean "
        "elections looked for every 10 s, digests compared, and every process is scraped every "
        f"{min(_SCRAPES_S, seconds):g} s; then all controllers are killed (kill -9) and started, until the reply to a "
        "topic created over HTTP, and watched "
        "likewise. How long loops stood still is what the processes count, rounded up to the next end of a "
        "bucket (10 ms is none); elections are the epochs that begin after the first and before the restart, and those "
        "after the first commit behind it",
        samples.figures(),
    )


class _Life:
    """Of one cluster."""

    def __init__(self, workspace: Workspace, cluster: MeasuredCluster, watch: Watch, samples: _Samples) -> None:
        self._workspace = workspace
        self._cluster = cluster
        self._watch = watch
        self._samples = samples
        self._session: aiohttp.ClientSession
        self._active = 0

    async def live(self, session: aiohttp.ClientSession, requests: int, seconds: float) -> None:
        self._session, self._active = session, await self._watch.active()
        begun_at = await self._epoch()
        await self._create(requests)
        await self._brokers_rest()
        await self._lose_a_broker()
        await self._asked()
        async with self._standstills("by itself", at_most_ms=10.0):
            await self._by_itself(seconds)
        self._samples.add("elections until the restart", "", await self._epoch() - begun_at, 0)
        self._memory()
        await self._restart(seconds)

    @property
    def _url(self) -> str:
        """Of the active controller."""
        return self._watch.connections[self._active].url

    # --- what is done ----------------------------------------------------------------------------------

    async def _create(self, requests: int) -> None:
        async with (
            self._standstills("while they are created"),
            self._cluster.askers.client().client(self._url, _TIMEOUT_MS) as client,
        ):
            start = time.perf_counter()
            self._say(f"creating {requests * PARTITIONS_PER_REQUEST:,} partitions")
            await create_in_bulk(client, requests)
            elapsed = time.perf_counter() - start
            self._samples.add("partitions created", "/s", requests * PARTITIONS_PER_REQUEST / elapsed)
            at_all = await self._applied_everywhere()
            self._samples.add("... until applied everywhere, after the last reply", "s", at_all)
            self._say(f"created in {elapsed:.1f} s, applied everywhere {at_all:.2f} s later")

    async def _brokers_rest(self) -> None:
        """Wait until the broker processes have said to each other what they follow of all that was created."""
        pids = [process.pid for process in self._cluster.brokers.values() if process.pid is not None]
        start, used, is_resting = time.perf_counter(), list(map(processor_s, pids)), False
        while not is_resting:
            if time.perf_counter() > start + _LIMIT_S:
                raise QuorateError(f"the broker processes do not come to rest within {_LIMIT_S:g} s")
            await asyncio.sleep(_REST_S)
            before, used = used, list(map(processor_s, pids))
            is_resting = max(after - once for once, after in zip(before, used, strict=True)) < _REST_SHARE * _REST_S
        self._say(f"the broker processes rest after {time.perf_counter() - start:.0f} s")

    async def _lose_a_broker(self) -> None:
        described = await self._cluster.client.describe_broker(_VICTIM)
        request = BrokerHeartbeatRequest(
            broker_id=_VICTIM, broker_epoch=described.epoch, current_metadata_offset=0, want_fence=True
        )
        before = await self._applied(self._active)
        async with self._standstills("while a broker is lost"):
            start = time.perf_counter()
            reply = await self._cluster.client.broker_heartbeat(request, float(_TIMEOUT_MS))
            replied = time.perf_counter() - start
            if not reply.is_fenced:
                raise QuorateError(f"broker {_VICTIM} was not fenced: {reply}")
            at_all = replied + await self._applied_everywhere()
        self._samples.add("broker lost, partitions changed", "", await self._applied(self._active) - before)
        self._samples.add("... durable (reply)", "s", replied)
        self._samples.add("... applied everywhere", "s", at_all, 6.0)
        self._say(f"a broker lost: {replied:.2f} s to the reply, {at_all:.2f} s to everywhere")

    async def _asked(self) -> None:
        """Ask as operators do when a broker is lost, while the processes are busy with what follows from it."""
        async with self._standstills("while they are asked"):
            for which in ("status, the first", "status, the second"):
                start = time.perf_counter()
                await self._cluster.client.status_of(self._url, _TIMEOUT_MS)
                self._samples.add(which, "ms", (time.perf_counter() - start) * _MS, 1000)
            for words in (("status",), ("explain",), ("explain", "broker", str(_VICTIM))):
                self._samples.add(f"quorate {' '.join(words)}", "ms", await self._command(*words) * _MS, 1000)
            start = time.perf_counter()
            for path in _PAGE:
                async with self._session.get(self._url + path) as answer:
                    answer.raise_for_status()
                    await answer.read()
            self._samples.add("the page, and all that it asks for", "ms", (time.perf_counter() - start) * _MS, 2000)

    async def _command(self, *words: str) -> float:
        """Seconds from the start of the command line to its end. A broker is lost: that is what they say."""
        return (await timed_command(*words, "--controllers", self._url, codes=(exit_codes.REFUSED,))).seconds

    async def _by_itself(self, seconds: float) -> None:
        """For so long at least, and until all controllers have written a checkpoint of what is there at the start."""
        begun_at, offset = time.monotonic(), await self._applied(self._active)
        self._say(f"{seconds:g} s and more of what happens by itself")
        left = set(self._cluster.plan.controller_urls)
        while left or time.monotonic() < begun_at + seconds:
            for url in list(left):
                if await self._has_checkpoint(url, offset):
                    left.remove(url)
            await asyncio.sleep(min(_SCRAPES_S, seconds))
            await self._scrapes()
        self._say(f"all checkpoints are written, {time.monotonic() - begun_at:.0f} s")

    async def _has_checkpoint(self, url: str, offset: int) -> bool:
        """Whether a controller has one of all below an offset. Where it has none, and writes none, it begins."""
        async with self._cluster.askers.client().client(url, _BEGIN_MS) as client:
            with suppress(ApiError, NoAnswer):  # it is being written then, or a busy machine takes its time
                listed = await client.checkpoints.list(url)
                if any(one.end_offset >= offset for one in listed.checkpoints):
                    return True
                if listed.writing_offset is None:
                    await client.checkpoints.take(url)
        return False

    async def _restart(self, seconds: float) -> None:
        elapsed = await restart_all(self._cluster, self._watch, "ten-million", _LIMIT_S)
        self._samples.add("restart to first commit", "s", elapsed.seconds, 15.0)
        self._samples.add("... processor time of a controller until then", "s", elapsed.processor_s)
        self._say(f"started again: {elapsed.seconds:.2f} s to the first commit")
        self._active = await self._watch.active(deadline_s=_LIMIT_S)
        begun_at = await self._epoch()
        async with self._standstills("by itself, after the restart", at_most_ms=10.0):
            await self._by_itself(seconds)
        self._samples.add("elections after the restart", "", await self._epoch() - begun_at, 0)

    # --- what is looked at -----------------------------------------------------------------------------

    @asynccontextmanager
    async def _standstills(self, when: str, at_most_ms: float | None = None) -> AsyncIterator[None]:
        before = await self._scrapes()
        yield
        after = await self._scrapes()
        for kind, names in zip(_KINDS, self._kinds(), strict=True):
            for cause in ("work", "waiting"):
                longest = max(longest_standstill(before[name], after[name], cause) for name in names)
                target = at_most_ms if cause == "work" else None
                self._samples.add(f"{kind} {when}: longest standstill, {cause}", "ms", longest * _MS, target)
                self._say(f"{kind} {when}: longest standstill, {cause}: {longest * _MS:g} ms")

    def _kinds(self) -> tuple[list[str], list[str], list[str]]:
        standbys = [f"controller-{id_}" for id_ in self._watch.connections if id_ != self._active]
        brokers = [f"broker-{planned.ids[0]}" for planned in self._cluster.plan.brokers]
        return [f"controller-{self._active}"], standbys, brokers

    async def _scrapes(self) -> _Scrapes:
        plan = self._cluster.plan
        ports = {f"controller-{planned.id}": planned.http_port for planned in plan.controllers}
        ports |= {f"broker-{planned.ids[0]}": planned.http_port for planned in plan.brokers}
        found = await asyncio.gather(*(scrape_process(self._session, port) for port in ports.values()))
        return dict(zip(ports, found, strict=True))

    async def _epoch(self) -> int:
        view = await self._watch.quorum(self._active)
        if view is None:
            raise QuorateError(f"controller {self._active} does not answer")
        return view.epoch

    async def _applied(self, node_id: int) -> int:
        view = await self._watch.quorum(node_id)
        return -1 if view is None else view.applied_offset

    async def _applied_everywhere(self) -> float:
        """Seconds until every process has applied what the active controller has now."""
        start = time.perf_counter()
        end_offset = await self._applied(self._active)
        async with asyncio.timeout(_LIMIT_S), asyncio.TaskGroup() as followers:
            for node_id in self._watch.connections:
                followers.create_task(_until(partial(self._applied, node_id), end_offset))
            for planned in self._cluster.plan.brokers:
                followers.create_task(_until(partial(self._followed, planned.http_port), end_offset))
        return time.perf_counter() - start

    async def _followed(self, port: int) -> int:
        async with self._session.get(f"http://{LOOPBACK}:{port}/v1/process") as answer:
            return ProcessReply.model_validate_json(await answer.read()).following.applied_offset

    def _memory(self) -> None:
        for kind, processes in (("controller", self._cluster.controllers), ("broker process", self._cluster.brokers)):
            peak = max(_peak_bytes(process.pid) for process in processes.values() if process.pid is not None)
            self._samples.add(f"most memory of a {kind}", "MB", peak / _MB)

    def _say(self, what: str) -> None:
        self._workspace.say(f"ten-million: {what}")


async def _until(applied: Callable[[], Awaitable[int]], end_offset: int) -> None:
    """Look until somebody has applied everything below an offset."""
    while True:
        if await applied() >= end_offset:
            return
        await asyncio.sleep(_LOOK_S)


def _peak_bytes(pid: int) -> int:
    """The most memory that a process ever had."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    [line] = (line for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024
