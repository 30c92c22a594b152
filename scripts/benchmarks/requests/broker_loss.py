"""``broker-loss``: one broker of a large cluster is fenced, and a quarter of the partitions change."""

from __future__ import annotations

import asyncio
import time
from typing import Final

import aiohttp

from quorate.broker.http.replies import ProcessReply
from quorate.controller.protocol import BrokerHeartbeatRequest
from quorate.metadata_log.errors import QuorateError
from quorate.scripts.benchmarks.figures import BenchmarkOutcome, Figure, FigureTarget
from quorate.scripts.benchmarks.large_cluster import partitions_of
from quorate.scripts.benchmarks.processes import Watch, brokers_sentence, running_cluster
from quorate.scripts.benchmarks.workspace import Workspace
from quorate.scripts.cluster.local import LocalCluster, LocalOptions

_PARTITIONS: Final = 1_000_000
_VICTIM: Final = 12
_PLAYED: Final = ((1,),)
_POLL_S: Final = 0.005
_LIMIT_S: Final = 60.0
_TIMEOUT_MS: Final = 30_000.0
#: A busy machine gives a figure above the target, not a heartbeat whose outcome is unknown after two seconds.
_OPTIONS: Final = LocalOptions({"BROKERS__HEARTBEAT_DEADLINE_MS": "15000"})


def run(workspace: Workspace) -> BenchmarkOutcome:
    """One loss a cluster: a second one would be measured together with the checkpoint that falls due then."""
    return asyncio.run(_run(workspace))


async def _run(workspace: Workspace) -> BenchmarkOutcome:
    count = workspace.scaled(_PARTITIONS, 1_200)
    replied: list[float] = []
    applied: list[float] = []
    changed = partitions_of(_VICTIM, count)
    while len(applied) < workspace.runs:
        workspace.say(f"broker-loss: making a cluster of {count:,} partitions")
        async with running_cluster(workspace, count, _PLAYED, _OPTIONS) as cluster, Watch(cluster) as watch:
            await _all_follow(cluster, watch)
            at_reply, at_all = await _fence(cluster, watch, _VICTIM, changed)
        replied.append(at_reply)
        applied.append(at_all)
        workspace.say(f"broker-loss: {len(applied)} of {workspace.runs}: {at_all:.2f} s")
    return BenchmarkOutcome(
        f"3 controllers with {count:,} partitions, {brokers_sentence()}, and one broker process that follows; a "
        f"heartbeat over HTTP asks to fence one broker, which changes {changed:,} partitions; from the request until "
        "all three controllers and the broker process have applied the last change (asked every 5 ms); the reply comes "
        "when all changes are fsynced on a majority",
        (
            Figure("fenced to applied everywhere", "s", tuple(applied), (FigureTarget(1.0),)),
            Figure("fenced to durable (reply)", "s", tuple(replied)),
        ),
    )


async def _all_follow(cluster: LocalCluster, watch: Watch) -> None:
    """Until every process has loaded the metadata. The image says that all brokers are there, so it cannot tell."""
    await cluster.wait_for_brokers(_LIMIT_S)
    view = await watch.quorum(await watch.active())
    if view is None:
        raise QuorateError("the active controller does not answer")
    await _applied_by_broker(cluster, view.applied_offset)


async def _fence(cluster: LocalCluster, watch: Watch, victim: int, changed: int) -> tuple[float, float]:
    active = await watch.active()
    brokers = {broker.id: broker for broker in (await cluster.client.describe_brokers()).brokers}
    request = BrokerHeartbeatRequest(
        broker_id=victim, broker_epoch=brokers[victim].epoch, current_metadata_offset=0, want_fence=True
    )
    before = await watch.quorum(active)
    start = time.perf_counter()
    reply = await cluster.client.broker_heartbeat(request, _TIMEOUT_MS)
    at_reply = time.perf_counter() - start
    after = await watch.quorum(active)
    if not reply.is_fenced or before is None or after is None:
        raise QuorateError(f"broker {victim} was not fenced: {reply}")
    end_offset = after.applied_offset
    if end_offset - before.applied_offset < changed:
        raise QuorateError(f"{end_offset - before.applied_offset} records were written, {changed} partitions changed")
    async with asyncio.TaskGroup() as followers:
        for node_id in watch.connections:
            followers.create_task(watch.applied(node_id, end_offset))
        followers.create_task(_applied_by_broker(cluster, end_offset))
    return at_reply, time.perf_counter() - start


async def _applied_by_broker(cluster: LocalCluster, offset: int) -> None:
    url = f"http://127.0.0.1:{cluster.plan.brokers[0].http_port}/v1/process"
    async with asyncio.timeout(_LIMIT_S), aiohttp.ClientSession() as session:
        while True:
            async with session.get(url) as answer:
                process = ProcessReply.model_validate_json(await answer.read())
            if process.following.applied_offset >= offset:
                return
            await asyncio.sleep(_POLL_S)
