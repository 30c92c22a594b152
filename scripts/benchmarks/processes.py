"""Whole clusters for benchmarks: controllers and brokers as they are run, started from metadata made here."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final, Self

from quorate.controller.api.resources import QuorumReply
from quorate.controller.client.connection import Connection, NoAnswer, NotSent, Request, make_session
from quorate.metadata_log.errors import ApiError
from quorate.scripts.benchmarks.askers import Askers, protect
from quorate.scripts.benchmarks.large_cluster import BROKERS, large_image, write_checkpoint
from quorate.scripts.benchmarks.protection import Safeguard
from quorate.scripts.benchmarks.workspace import Workspace, temporary_directory
from quorate.scripts.cluster.local import LocalCluster, LocalOptions
from quorate.scripts.cluster.making import Ports, make_twin
from quorate.scripts.cluster.plan import ClusterPlan, PlannedBrokers
from quorate.scripts.cluster.ports import free_ports

_READY_S: Final = 60.0
_STOP_S: Final = 5.0
_POLL_S: Final = 0.01
_LOOK_MS: Final = 2_000.0
_CONTROLLERS: Final = 3
#: The kernel's CPUCLOCK_SCHED.
_SCHEDULER_CLOCK: Final = 2
#: Brokers that nobody plays say nothing, and are to stay in the ISRs.
_PATIENT: Final = {"REPLICAS__LAG_TIME_MAX_MS": "86400000"}


class MeasuredCluster(LocalCluster):
    """One that knows who may ask it."""

    def __init__(self, directory: Path, plan: ClusterPlan, options: LocalOptions, askers: Askers) -> None:
        super().__init__(directory, plan, askers.options(options), shared_secret=askers.admin_bearer)
        self.askers = askers


@asynccontextmanager
async def running_cluster(
    workspace: Workspace,
    partition_count: int,
    played: Sequence[tuple[int, ...]] = (),
    options: LocalOptions | None = None,
    asking_ids: Sequence[int] = (),
) -> AsyncIterator[MeasuredCluster]:
    """Three controllers over the metadata of twelve live brokers, and processes that play some of the brokers.

    ``played``: by process the brokers that it plays. The others never speak, and their sessions never begin: they stay
    as they are. All processes are killed and the directory is removed afterwards. It is protected as the workspace
    says; ``asking_ids``: of brokers that ask it besides.
    """
    protection = workspace.protection
    with temporary_directory(workspace.directory) as directory:
        plan = _make(directory, partition_count, played, is_secured=Safeguard.TLS in protection)
        options = options or LocalOptions()
        options = replace(options, broker={**_PATIENT, **options.broker})
        askers = Askers(directory / "cluster", plan, protection, asking_ids)
        cluster = MeasuredCluster(directory / "cluster", plan, options, askers)
        try:
            await cluster.start()
            await cluster.wait_for_controllers(_READY_S)
            await protect(cluster.client, protection)
            yield cluster
        finally:
            await stop_now(cluster)


def _make(directory: Path, partition_count: int, played: Sequence[tuple[int, ...]], *, is_secured: bool) -> ClusterPlan:
    source = write_checkpoint(directory, large_image(partition_count))
    ports = Ports.of(free_ports(2 * _CONTROLLERS + len(played)))
    plan = make_twin(directory / "cluster", source, ports, brokers="none", is_secured=is_secured)
    processes = tuple(PlannedBrokers(ids=ids, http_port=ports.take(), is_twin=True) for ids in played)
    return plan.model_copy(update={"brokers": processes})


async def stop_now(cluster: LocalCluster) -> None:
    """End all processes without ceremony: their state is thrown away."""
    await cluster.client.close()
    for process in cluster.processes:
        process.kill()
    await asyncio.gather(*(process.wait(_STOP_S) for process in cluster.processes))


def processor_s(pid: int) -> float:
    """Seconds of processor time that a process has used so far.

    To the nanosecond: the ticks of ``/proc`` are as long as a hundred heartbeats.
    """
    # What clock_getcpuclockid(3) makes of a process on Linux: its number, inverted, before the kind of clock.
    return time.clock_gettime(~pid << 3 | _SCHEDULER_CLOCK)


class Watch:
    """Cheap looks at single controllers, each with a connection of its own kept open."""

    def __init__(self, cluster: LocalCluster) -> None:
        self._session = make_session(cluster.shared_secret)
        self.connections = {
            planned.id: Connection(lambda: self._session, url, cluster.tls)
            for planned, url in zip(cluster.plan.controllers, cluster.plan.controller_urls, strict=True)
        }

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._session.close()

    async def quorum(self, node_id: int) -> QuorumReply | None:
        """The quorum as one controller itself sees it; None while it says nothing."""
        request = Request("GET", "/v1/quorum", _LOOK_MS, {"local": "true"})
        try:
            return (await self.connections[node_id].send(request)).model(QuorumReply)
        except (NotSent, NoAnswer, ApiError):
            return None

    async def active(self, among: tuple[int, ...] | None = None, deadline_s: float = _READY_S) -> int:
        """The active controller, once all of ``among`` (default: all) agree on it and are level with it."""
        ids = among or tuple(self.connections)
        async with asyncio.timeout(deadline_s):
            while True:
                views = [await self.quorum(node_id) for node_id in ids]
                leaders = {None if view is None else view.active_id for view in views}
                ends = {None if view is None else view.applied_offset for view in views}
                if len(leaders) == 1 and len(ends) == 1 and None not in leaders:
                    leader = leaders.pop()
                    assert leader is not None
                    return leader
                await asyncio.sleep(_POLL_S)

    async def applied(self, node_id: int, offset: int) -> None:
        """Return once a controller has applied everything below an offset."""
        async with asyncio.timeout(_READY_S):
            while True:
                view = await self.quorum(node_id)
                if view is not None and view.applied_offset >= offset:
                    return
                await asyncio.sleep(_POLL_S)


def brokers_sentence() -> str:
    """For methods."""
    return f"{BROKERS} brokers, factor 3"
