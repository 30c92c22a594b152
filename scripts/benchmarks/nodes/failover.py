"""``failover``: the active controller killed or frozen while clients write."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Iterator
from typing import Final

from quorate.controller.client.connection import Connection, NoAnswer, NotSent
from quorate.metadata_log.errors import ApiError
from quorate.scripts.benchmarks.figures import BenchmarkOutcome, Figure, FigureTarget
from quorate.scripts.benchmarks.processes import Watch, running_cluster
from quorate.scripts.benchmarks.small_write import small_write
from quorate.scripts.benchmarks.workspace import Workspace
from quorate.scripts.cluster.local import LocalCluster

_TRIALS_PER_RUN: Final = 4
#: A write every so often, to the surviving controllers in turn.
_WRITE_EVERY_S: Final = 0.01
_WRITE_TIMEOUT_MS: Final = 2_000.0
_WARM_WRITES: Final = 5
_LIMIT_S: Final = 20.0
_STOP_S: Final = 5.0


def run(workspace: Workspace) -> BenchmarkOutcome:
    """Killed and frozen in turn, on one cluster."""
    return asyncio.run(_run(workspace))


async def _run(workspace: Workspace) -> BenchmarkOutcome:
    trials = max(1, round(_TRIALS_PER_RUN * workspace.runs * workspace.scale))
    killed, frozen = [], []
    async with running_cluster(workspace, 0) as cluster, Watch(cluster) as watch:
        names = (f"write-{number}" for number in itertools.count())
        for number in range(trials):
            killed.append(await _trial(cluster, watch, names, is_frozen=False))
            frozen.append(await _trial(cluster, watch, names, is_frozen=True))
            workspace.say(
                f"failover: {number + 1} of {trials}: killed {killed[-1] * 1000:.0f} ms, frozen {frozen[-1]:.2f} s"
            )
    return BenchmarkOutcome(
        f"3 controllers with default settings; writes of one topic over HTTP, one begun every "
        f"{_WRITE_EVERY_S * 1000:.0f} ms at the two that survive, in turn, each answered by itself; from the signal to "
        "the reply to the first write that was begun after it and committed; the victim is back and level before the "
        "next trial",
        (
            Figure("killed (SIGKILL)", "s", tuple(killed), (FigureTarget(0.1), FigureTarget(0.25, percentile=90))),
            Figure("frozen (SIGSTOP)", "s", tuple(frozen), (FigureTarget(1.5),)),
        ),
    )


async def _trial(cluster: LocalCluster, watch: Watch, names: Iterator[str], *, is_frozen: bool) -> float:
    active = await watch.active()
    survivors = [connection for node, connection in watch.connections.items() if node != active]
    victim = cluster.controllers[active]
    for connection in itertools.islice(itertools.cycle(survivors), _WARM_WRITES):
        await small_write(connection, next(names), _WRITE_TIMEOUT_MS)
    if is_frozen:
        victim.pause()
    else:
        victim.kill()
    start = time.perf_counter()
    try:
        await _first_commit(survivors, names)
        elapsed = time.perf_counter() - start
    finally:
        if is_frozen:
            victim.resume()
    if not is_frozen:
        await victim.wait(_STOP_S)
        await victim.start()
    return elapsed


async def _first_commit(survivors: list[Connection], names: Iterator[str]) -> None:
    """Begin writes without waiting for those before; return with the first that is acknowledged."""
    is_committed = asyncio.Event()

    async def write(connection: Connection, name: str) -> None:
        try:
            await small_write(connection, name, _WRITE_TIMEOUT_MS)
        except (NotSent, NoAnswer, ApiError):
            return
        is_committed.set()

    async with asyncio.timeout(_LIMIT_S), asyncio.TaskGroup() as writers:
        tasks = []
        for connection in itertools.cycle(survivors):
            tasks.append(writers.create_task(write(connection, next(names))))
            try:
                await asyncio.wait_for(is_committed.wait(), _WRITE_EVERY_S)
                break
            except TimeoutError:
                continue
        for task in tasks:
            task.cancel()
