"""``append``: durable commits a second at the quorum's interface."""

from __future__ import annotations

import asyncio
from typing import Final

from quorate.scripts.benchmarks.figures import BenchmarkOutcome, Figure, FigureTarget
from quorate.scripts.benchmarks.members import processor_times, running_members
from quorate.scripts.benchmarks.workspace import Workspace

_IN_FLIGHT: Final = 512
_PAYLOAD_BYTES: Final = 100
_RUN_S: Final = 3.0
_WARM_UP_S: Final = 1.0
_RUN_S_MIN: Final = 0.1


def run(workspace: Workspace) -> BenchmarkOutcome:
    """Three voters; the load is made inside the leader's process."""
    return asyncio.run(_run(workspace))


async def _run(workspace: Workspace) -> BenchmarkOutcome:
    seconds = max(_RUN_S_MIN, _RUN_S * workspace.scale)
    rates, commits_per_sync, cpu = [], [], []
    async with running_members("quorate.scripts.benchmarks.programs.quorum_process", workspace) as members:
        leader = members[0]
        load = {"payload_bytes": _PAYLOAD_BYTES, "in_flight": _IN_FLIGHT}
        await leader.ask("append", seconds=min(seconds, _WARM_UP_S), **load)
        for number in range(workspace.runs):
            before = await processor_times(members)
            found = await leader.ask("append", seconds=seconds, **load)
            after = await processor_times(members)
            rates.append(found["commits"] / found["elapsed_s"])
            commits_per_sync.append(found["commits"] / max(1, found["disk_groups"]))
            cpu.append(1e6 * (sum(after) - sum(before)) / max(1, found["commits"]))
            workspace.say(f"append: {number + 1} of {workspace.runs}: {rates[-1]:,.0f} commits/s")
    return BenchmarkOutcome(
        f"3 voter processes, every commit fsynced on a majority; {_IN_FLIGHT} batches of one opaque record of "
        f"{_PAYLOAD_BYTES} bytes in flight, appended in the leader's process, {seconds:g} s a run",
        (
            Figure("commits", "/s", tuple(rates), (FigureTarget(40_000, is_most=False),)),
            Figure("commits per fsync", "", tuple(commits_per_sync)),
            Figure("processor time per commit, all three", "µs", tuple(cpu)),
        ),
    )
