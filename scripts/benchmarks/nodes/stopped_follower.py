"""``stopped-follower``: a follower's process is stopped under writes and reads; what the leader keeps for it."""

from __future__ import annotations

import asyncio
import signal
import time
from dataclasses import dataclass
from typing import Any, Final

from quorate.metadata_log.errors import QuorateError
from quorate.scripts.benchmarks.figures import BenchmarkOutcome, Figure, FigureTarget
from quorate.scripts.benchmarks.members import BenchmarkMember, running_members
from quorate.scripts.benchmarks.workspace import Workspace

_SECONDS: Final = 20.0
_WRITES_PER_S: Final = 5_000
_READS_PER_S: Final = 100
_PAYLOAD_BYTES: Final = 100
#: Under load before the follower is stopped: buffers have their usual size by then.
_WARM_UP_S: Final = 5.0
_LOOK_S: Final = 0.25
_LEVEL_S: Final = 300.0
_MEBIBYTE: Final = 1024 * 1024
#: Of the rate that is asked for, what a machine must reach for the run to count.
_RATE_SHARE_MIN: Final = 0.8


@dataclass(slots=True)
class _FollowerRun:
    before: float
    most: float
    after: float
    commits_per_s: float
    reads_per_s: float
    level_s: float


def run(workspace: Workspace) -> BenchmarkOutcome:
    """One stop a run, on one cluster."""
    return asyncio.run(_run(workspace))


async def _run(workspace: Workspace) -> BenchmarkOutcome:
    seconds = workspace.seconds or max(1.0, _SECONDS * workspace.scale)
    runs: list[_FollowerRun] = []
    async with running_members("quorate.scripts.benchmarks.programs.paced_process", workspace) as members:
        bounds = await members[0].ask("bounds")
        for number in range(workspace.runs):
            runs.append(await _stop_and_go(members, seconds))
            one = runs[-1]
            workspace.say(
                f"stopped-follower: {number + 1} of {workspace.runs}: leader {one.before:.0f} MiB before, at most "
                f"{one.most:.0f} MiB, {one.after:.0f} MiB after; level after {one.level_s:.1f} s"
            )
    bound = sum(bounds.values()) / _MEBIBYTE
    grown = FigureTarget(bound, note="log kept in memory, and what waits to be sent to one peer")
    return BenchmarkOutcome(
        f"3 voter processes; {_WRITES_PER_S:,} batches a second of one opaque record of {_PAYLOAD_BYTES} bytes and "
        f"{_READS_PER_S} linearizable reads a second in the leader's process; one follower stopped (SIGSTOP) for "
        f"{seconds:g} s, {_WARM_UP_S:g} s after the load began; its log is level with the leader's some time after "
        "SIGCONT, the load having ended",
        (
            Figure("leader's memory, before", "MiB", tuple(one.before for one in runs)),
            Figure("leader's memory, most", "MiB", tuple(one.most for one in runs)),
            Figure("leader's memory, growth", "MiB", tuple(one.most - one.before for one in runs), (grown,)),
            Figure("leader's memory, level again", "MiB", tuple(one.after for one in runs)),
            Figure("commits while stopped", "/s", tuple(one.commits_per_s for one in runs), (_least(_WRITES_PER_S),)),
            Figure("reads while stopped", "/s", tuple(one.reads_per_s for one in runs)),
            Figure("level again after", "s", tuple(one.level_s for one in runs)),
        ),
    )


def _least(rate: float) -> FigureTarget:
    return FigureTarget(_RATE_SHARE_MIN * rate, is_most=False, note="else the load was another one")


async def _stop_and_go(members: list[BenchmarkMember], seconds: float) -> _FollowerRun:
    leader, *others = members
    victim = others[-1]
    await leader.ask("begin", writes_per_s=_WRITES_PER_S, payload_bytes=_PAYLOAD_BYTES, reads_per_s=_READS_PER_S)
    await asyncio.sleep(_WARM_UP_S)
    begun = await _of_leader(leader)
    victim.signal(signal.SIGSTOP)
    seen, began_at = begun, time.monotonic()
    most = float(begun["resident_bytes"])
    try:
        while time.monotonic() < began_at + seconds:
            await asyncio.sleep(_LOOK_S)
            seen = await _of_leader(leader)
            most = max(most, seen["resident_bytes"])
        elapsed = time.monotonic() - began_at
    finally:
        victim.signal(signal.SIGCONT)
    await leader.ask("end")
    continued_at = time.monotonic()
    after = await _level(leader, victim)
    return _FollowerRun(
        begun["resident_bytes"] / _MEBIBYTE,
        max(most, after["resident_bytes"]) / _MEBIBYTE,
        after["resident_bytes"] / _MEBIBYTE,
        (seen["committed"] - begun["committed"]) / elapsed,
        (seen["reads"] - begun["reads"]) / elapsed,
        time.monotonic() - continued_at,
    )


async def _of_leader(leader: BenchmarkMember) -> dict[str, Any]:
    status = await leader.ask("status")
    if not status["leads"]:
        raise QuorateError(f"member {leader.node_id} leads no more: this machine is too slow for the load")
    return status


async def _level(leader: BenchmarkMember, victim: BenchmarkMember) -> dict[str, Any]:
    """Wait until the follower has everything, durably; how the leader stands then."""
    async with asyncio.timeout(_LEVEL_S):
        while True:
            ahead, behind = await leader.ask("status"), await victim.ask("status")
            if ahead["log_end"] == ahead["applied"] == behind["applied"] == behind["durable_end"]:
                return ahead
            await asyncio.sleep(_LOOK_S)
