"""``scripts/fuzz-peer``: a hostile voter at a cluster of real controllers, while a client writes.

Two of three controllers run, and need each other; the third voter's place is taken by one that says anything. Nothing
but its own connections may end: both processes live, writes go on, epochs stay in bounds and so does memory.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Annotated, Final

import typer

from quorate.controller.client.connection import NoAnswer, NotSent
from quorate.metadata_log.errors import ApiError
from quorate.quorum.messages.outbox import Channel
from quorate.scripts.benchmarks.large_cluster import large_image, write_checkpoint
from quorate.scripts.benchmarks.process_tree import resident_bytes
from quorate.scripts.benchmarks.processes import Watch, stop_now
from quorate.scripts.benchmarks.programs.member_process import quorum_config
from quorate.scripts.benchmarks.small_write import small_write
from quorate.scripts.benchmarks.workspace import temporary_directory
from quorate.scripts.cluster.local import LocalCluster
from quorate.scripts.cluster.making import Ports, make_twin
from quorate.scripts.cluster.ports import free_ports
from quorate.scripts.fuzzing.hostile_messages import HostileMessages
from quorate.scripts.fuzzing.hostile_peer import HostilePeer
from quorate.scripts.terminal.command_line import run

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)

_READY_S: Final = 60.0
_LOOK_S: Final = 0.5
_WRITE_TIMEOUT_MS: Final = 5_000.0
#: Seconds without an acknowledged write: several elections, on a machine that does other things too.
_GAP_S_MAX: Final = 20.0
#: Leaps of epochs that a node believes in all, and more for each second: see ``quorum.elections.admission``.
_LEAPS_MAX: Final = 1_000_000
_LEAPS_PER_SECOND: Final = 10
#: Beyond what a process had at the beginning: a frame of the largest size on each connection, and what a log keeps.
_GROWTH_BYTES_MAX: Final = 256 * 1024 * 1024
_MEBIBYTE: Final = 1024 * 1024
#: Said by a controller about a frame that nobody thought of.
_UNTHOUGHT_OF: Final = ("could not be handled", "Traceback")
_TAIL_LINES: Final = 30


@dataclass(slots=True)
class Seen:
    """The observations of the cluster during a run."""

    acknowledged: int = 0
    failed: int = 0
    last_at: float = 0.0
    longest_gap_s: float = 0.0
    first_epoch: int = -1
    last_epoch: int = -1
    first_bytes: dict[int, int] = field(default_factory=dict)
    most_bytes: dict[int, int] = field(default_factory=dict)
    findings: list[str] = field(default_factory=list)


@app.command()
def fuzz_peer(
    seconds: Annotated[float, typer.Option(min=1, help="How long it speaks.")] = 60.0,
    seed: Annotated[int, typer.Option(help="Another seed, other messages.")] = 0,
    directory: Annotated[Path, typer.Option("--dir", help="What is made there is removed again.")] = Path("var"),
) -> None:
    """Let a voter that says anything speak to a running cluster: nothing but its connections may end.

    scripts/fuzz-peer --seconds 300 --seed 7
    """
    with temporary_directory(directory) as place:
        counts, seen = asyncio.run(attack(place, seconds, seed))
    print(f"seed {seed}, {seconds:g} s: {', '.join(f'{count:,} {what}' for what, count in sorted(counts.items()))}")
    print(
        f"{seen.acknowledged:,} writes acknowledged, {seen.failed:,} not, at most {seen.longest_gap_s:.1f} s between"
        f" two; epoch {seen.first_epoch} to {seen.last_epoch}"
    )
    for node, most in sorted(seen.most_bytes.items()):
        print(f"controller {node}: {seen.first_bytes[node] // _MEBIBYTE} MiB, at most {most // _MEBIBYTE} MiB")
    for finding in seen.findings:
        print(f"WRONG: {finding}")
    sys.exit(1 if seen.findings else 0)


async def attack(directory: Path, seconds: float, seed: int) -> tuple[Counter[str], Seen]:
    """Start the cluster, let the hostile voter and a client at it, and stop. Findings are in what was seen."""
    source = write_checkpoint(directory, large_image(0))
    plan = make_twin(directory / "cluster", source, Ports.of(free_ports(7)), brokers="none")
    cluster = LocalCluster(directory / "cluster", plan)
    *honest, hostile = sorted(cluster.controllers)
    rng = Random(seed)
    said = HostileMessages(rng)
    config = quorum_config(plan, hostile)
    peers = [
        HostilePeer(config, voter, channel, said, Random(rng.getrandbits(32)))
        for voter in config.voters
        if voter.node_id in honest
        for channel in Channel
    ]
    seen = Seen()
    try:
        for node in honest:
            await cluster.controllers[node].start()
        async with Watch(cluster) as watch:
            await watch.active(tuple(honest))
            await _run(cluster, watch, honest, peers, seconds, seen)
    finally:
        await stop_now(cluster)
    _judge(seen, seconds, directory / "cluster", honest)
    return sum((peer.counts for peer in peers), Counter()), seen


async def _run(
    cluster: LocalCluster, watch: Watch, honest: list[int], peers: list[HostilePeer], seconds: float, seen: Seen
) -> None:
    seen.last_at = time.monotonic()
    async with asyncio.TaskGroup() as group:
        ends_at = time.monotonic() + seconds
        tasks = [group.create_task(peer.run(ends_at)) for peer in peers]
        tasks.append(group.create_task(_write(watch, honest, seen)))
        while time.monotonic() < ends_at and not seen.findings:
            await _look(cluster, watch, honest, seen)
            await asyncio.sleep(_LOOK_S)
        for task in tasks:
            task.cancel()


async def _write(watch: Watch, honest: list[int], seen: Seen) -> None:
    number = 0
    while True:
        number += 1
        try:
            await small_write(watch.connections[honest[number % 2]], f"write-{number}", _WRITE_TIMEOUT_MS)
        except (NotSent, NoAnswer, ApiError):
            seen.failed += 1
            await asyncio.sleep(0.05)
        else:
            seen.acknowledged += 1
            now = time.monotonic()
            seen.longest_gap_s = max(seen.longest_gap_s, now - seen.last_at)
            seen.last_at = now


async def _look(cluster: LocalCluster, watch: Watch, honest: list[int], seen: Seen) -> None:
    gap = time.monotonic() - seen.last_at
    seen.longest_gap_s = max(seen.longest_gap_s, gap)
    if gap > _GAP_S_MAX:
        seen.findings.append(f"no write was acknowledged for {gap:.1f} s")
    for node in honest:
        pid = cluster.controllers[node].pid
        if pid is None:
            seen.findings.append(f"controller {node} ended with {cluster.controllers[node].exit_code}")
            continue
        resident = resident_bytes(pid)
        seen.first_bytes.setdefault(node, resident)
        seen.most_bytes[node] = max(resident, seen.most_bytes.get(node, 0))
        view = await watch.quorum(node)
        if view is not None:
            seen.first_epoch = view.epoch if seen.first_epoch < 0 else seen.first_epoch
            seen.last_epoch = max(seen.last_epoch, view.epoch)


def _judge(seen: Seen, seconds: float, directory: Path, honest: list[int]) -> None:
    """Judge the run at its end."""
    believed = _LEAPS_MAX + _LEAPS_PER_SECOND * (seconds + _READY_S)
    if seen.last_epoch - seen.first_epoch > believed:
        seen.findings.append(f"epoch {seen.first_epoch} became {seen.last_epoch}")
    for node in honest:
        if seen.most_bytes.get(node, 0) - seen.first_bytes.get(node, 0) > _GROWTH_BYTES_MAX:
            seen.findings.append(f"controller {node} grew to {seen.most_bytes[node] // _MEBIBYTE} MiB")
        log = (directory / "logs" / f"controller-{node}.log").read_text(encoding="utf-8", errors="replace")
        unthought_of = sum(any(part in line for part in _UNTHOUGHT_OF) for line in log.splitlines())
        if unthought_of:
            seen.findings.append(f"controller {node} met {unthought_of} errors that nobody thought of")
        if seen.findings:
            tail = "\n".join(log.splitlines()[-_TAIL_LINES:])
            seen.findings.append(f"the end of controller {node}'s log:\n{tail}")


if __name__ == "__main__":
    run(app, sys.argv[1:], "scripts/fuzz-peer")
