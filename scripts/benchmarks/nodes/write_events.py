"""``commit`` and ``throughput``: write events of a controller, one at a time and many."""

from __future__ import annotations

import asyncio
import statistics
from typing import Any, Final

from quorate.scripts.benchmarks.figures import BenchmarkOutcome, Figure, FigureTarget
from quorate.scripts.benchmarks.machine import fdatasync_ms
from quorate.scripts.benchmarks.members import BenchmarkMember, processor_times, running_members
from quorate.scripts.benchmarks.workspace import Workspace

_MODULE: Final = "quorate.scripts.benchmarks.programs.controller_process"
_WARM_UP_S: Final = 1.0
_COMMIT_RUN_S: Final = 2.0
_THROUGHPUT_RUN_S: Final = 3.0
_RUN_S_MIN: Final = 0.1
_IN_FLIGHT: Final = 512
_QUICK_DISK_MS: Final = 0.2


def run_commit(workspace: Workspace) -> BenchmarkOutcome:
    """Latency of one write in flight."""
    return asyncio.run(_commit(workspace))


async def _commit(workspace: Workspace) -> BenchmarkOutcome:
    seconds = max(_RUN_S_MIN, _COMMIT_RUN_S * workspace.scale)
    medians, tails, disk = [], [], []
    count = 0
    async with running_members(_MODULE, workspace) as members:
        active = members[0]
        await active.ask("write", in_flight=1, seconds=min(seconds, _WARM_UP_S))
        for number in range(workspace.runs):
            disk.append(fdatasync_ms(workspace.directory))
            found = await active.ask("write", in_flight=1, seconds=seconds)
            latencies = sorted(found["latencies_ms"])
            count += len(latencies)
            medians.append(statistics.median(latencies))
            tails.append(latencies[int(len(latencies) * 0.99)])
            workspace.say(f"commit: {number + 1} of {workspace.runs}: {medians[-1]:.2f} ms")
    return BenchmarkOutcome(
        "3 controller processes, no HTTP; one write event of one record in flight through append_write_event, from the "
        f"call to its reply, fsynced on a majority; a run is {seconds:g} s ({count // workspace.runs} commits on "
        "average) and its sample the median of those",
        (
            Figure(
                "commit",
                "ms",
                tuple(medians),
                (FigureTarget(0.8, note=f"the target is for a bare fdatasync ≤ {_QUICK_DISK_MS} ms"),),
            ),
            Figure("99th percentile", "ms", tuple(tails)),
            Figure("bare fdatasync before each run", "ms", tuple(disk)),
        ),
    )


def run_throughput(workspace: Workspace) -> BenchmarkOutcome:
    """Small write events a second."""
    return asyncio.run(_throughput(workspace))


async def _throughput(workspace: Workspace) -> BenchmarkOutcome:
    seconds = max(_RUN_S_MIN, _THROUGHPUT_RUN_S * workspace.scale)
    rates, per_batch, cpu = [], [], []
    async with running_members(_MODULE, workspace) as members:
        await _written(members, min(seconds, _WARM_UP_S))
        for number in range(workspace.runs):
            before = await processor_times(members)
            found = await _written(members, seconds)
            after = await processor_times(members)
            rates.append(found["events"] / found["elapsed_s"])
            per_batch.append(found["events"] / max(1, found["batches"]))
            cpu.append(1e6 * (sum(after) - sum(before)) / max(1, found["events"]))
            workspace.say(f"throughput: {number + 1} of {workspace.runs}: {rates[-1]:,.0f} events/s")
    return BenchmarkOutcome(
        f"3 controller processes, no HTTP; {_IN_FLIGHT} write events of one config record in flight through "
        f"append_write_event for {seconds:g} s, each decided, encoded, replayed and fsynced on a majority; until "
        "all three have applied the last one",
        (
            Figure("write events", "/s", tuple(rates), (FigureTarget(10_000, is_most=False),)),
            Figure("events per batch", "", tuple(per_batch)),
            Figure("processor time per event, all three", "µs", tuple(cpu)),
        ),
    )


async def _written(members: list[BenchmarkMember], seconds: float) -> dict[str, Any]:
    active, *standbys = members
    found = await active.ask("write", in_flight=_IN_FLIGHT, seconds=seconds)
    applied = [await standby.ask("wait_applied", offset=found["end_offset"]) for standby in standbys]
    found["elapsed_s"] = max(answer["at"] for answer in applied) - found["started_at"]
    return found
