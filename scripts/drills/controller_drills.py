"""Drills on controllers: killed, frozen, stopped, wiped, left behind."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import Final

from quorate.controller.client.client import ControllerClient
from quorate.controller.client.connection import NoAnswer, NotSent
from quorate.metadata_log.errors import ApiError
from quorate.scripts.cluster.formatting import wipe
from quorate.scripts.cluster.members import LocalNode
from quorate.scripts.drills.drill import KILL, PAUSE, STOP, VOTES_AGAIN, Drill, healthy_again, outage
from quorate.scripts.drills.environment import DEADLINE_S, Ground
from quorate.scripts.drills.outcome import Expectation

_PAUSE_S: Final = 2.0
_STEADY_WRITES: Final = 100


async def steady(ground: Ground) -> None:
    """Nothing but writes: what the other drills' figures are to be compared with."""
    await ground.load.more(_STEADY_WRITES)
    await ground.settle(time.monotonic())


async def leader_kill(ground: Ground) -> None:
    active = ground.controllers[await ground.active()]
    await ground.kill(active)
    await ground.load.more()
    await ground.settle(await ground.restart(active))


async def leader_pause(ground: Ground) -> None:
    """Frozen with open sockets; then thawed, and asked at once for a linearizable read."""
    node = ground.controllers[await ground.active()]
    ground.event("fault", f"SIGSTOP {node.name}, for {_PAUSE_S:.0f} s at least")
    await ground.control.pause(node)
    await asyncio.sleep(_PAUSE_S)  # the fault itself
    await ground.load.more()
    written = ground.load.acknowledged[-1]
    thawed = ground.event("repair", f"SIGCONT {node.name}")
    await ground.control.resume(node)
    ground.measure("stale_reads", int(await _reads_stale(node, written)))
    await ground.load.more()
    await ground.settle(thawed)


async def _reads_stale(node: LocalNode, topic: str) -> bool:
    """Whether a controller that was frozen denies, in a linearizable read, what others have acknowledged."""
    async with _client(node) as client:
        try:
            reply = await client.describe_topic(topic, is_linearizable=True)
        except ApiError as error:
            return error.code.name == "UNKNOWN_TOPIC_OR_PARTITION"
    return reply.topic.name != topic


def _client(node: LocalNode) -> ControllerClient:
    """One controller is asked, and nobody else."""
    assert node.url is not None
    return ControllerClient([node.url])


async def cold_boot(ground: Ground) -> None:
    everybody = list(ground.controllers.values())
    await ground.kill(*everybody)
    started = await ground.restart(*everybody)
    await ground.load.more(1)
    first = min(at for at in ground.load.times if at > started)
    ground.measure("first_commit_ms", (first - started) * 1000)
    await ground.load.more()
    await ground.settle(started)


async def rolling_restart(ground: Ground) -> None:
    last = time.monotonic()
    for _, node in sorted(ground.controllers.items()):
        await ground.stop(node)
        last = await ground.restart(node)
        await ground.until_voting()
        await ground.load.more()
    await ground.settle(last)


async def follower_wipe(ground: Ground) -> None:
    node = await ground.standby()
    await ground.kill(ground.controllers[node])
    _wipe(ground, node)
    started = await ground.restart(ground.controllers[node])
    await ground.load.more()
    await ground.votes_again(node, started)
    await ground.settle(started)


async def wiped_voter(ground: Ground) -> None:
    """A voter loses its memory and is back at once, while the active controller dies: it must not help an election."""
    node = await ground.standby()
    active = ground.controllers[await ground.active()]
    await ground.kill(ground.controllers[node])
    _wipe(ground, node)
    await ground.kill(active)
    await ground.restart(ground.controllers[node])
    await _require_no_quorum(ground, node)
    started = await ground.restart(active)
    await ground.load.more()
    await ground.settle(started)


async def _require_no_quorum(ground: Ground, wiped: int) -> None:
    """One voter and one without a memory are no majority of three: for twice the election timeout nobody may lead."""
    node = ground.controllers[wiped]
    assert node.url is not None
    end = time.monotonic() + 2.0
    elected = 0
    async with _client(node) as client:
        while time.monotonic() < end:
            with suppress(ApiError, NotSent, NoAnswer):
                elected += (await client.status_of(node.url, 500)).quorum.active_id is not None
            await asyncio.sleep(0.05)
    ground.event("seen", "nobody was elected with the help of the wiped voter" if not elected else "elected!")
    ground.measure("elections_with_wiped_voter", int(elected > 0))


async def follower_far_behind(ground: Ground) -> None:
    """So far that the log no longer reaches back: it must take a checkpoint."""
    node = await ground.standby()
    await ground.kill(ground.controllers[node])
    ground_end = (await ground.status()).quorum.log_end_offset or 0

    async def is_cut() -> bool | None:
        return ((await ground.status()).quorum.log_start_offset or 0) > ground_end or None

    await ground.cluster.until(is_cut, "the log begins behind what the stopped controller has", DEADLINE_S)
    started = await ground.restart(ground.controllers[node])
    await ground.votes_again(node, started)
    await ground.settle(started)


def _wipe(ground: Ground, node: int) -> None:
    wipe(ground.directory(node))
    ground.event("fault", f"controller {node}'s directory is wiped, and made again without a vote")


DRILLS: Final = (
    Drill(
        "steady",
        "nothing is done but writes: nobody waits, and everybody agrees",
        (outage(1_000), healthy_again(20_000)),
        steady,
        "observes",
    ),
    Drill(
        "leader-kill",
        "kill -9 of the active controller: another takes over within a second, nothing acknowledged is lost",
        (outage(1_000), healthy_again(20_000)),
        leader_kill,
        "kills",
        KILL,
    ),
    Drill(
        "leader-pause",
        "SIGSTOP of the active controller: another takes over, clients notice; thawed, the old one reads nothing stale",
        (
            outage(6_000),
            healthy_again(20_000),
            Expectation(name="stale_reads", meaning="linearizable reads that lacked an acknowledged write", at_most=0),
        ),
        leader_pause,
        "kills",
        PAUSE,
    ),
    Drill(
        "cold-boot",
        "kill -9 of all controllers: started again they commit within three seconds",
        (
            Expectation(name="first_commit_ms", meaning="from process start to the first commit, ms", at_most=3_000),
            healthy_again(20_000),
        ),
        cold_boot,
        "kills",
        KILL,
    ),
    Drill(
        "rolling-restart",
        "each controller is stopped and started in turn: writes wait for no longer than an election",
        (outage(1_500), healthy_again(20_000)),
        rolling_restart,
        "kills",
        STOP,
    ),
    Drill(
        "follower-wipe",
        "a standby loses its directory: it comes back without a vote, is caught up, and votes again",
        (outage(1_000), VOTES_AGAIN, healthy_again(20_000)),
        follower_wipe,
        "destroys",
    ),
    Drill(
        "follower-far-behind",
        "a standby is away until the log was cut behind it: it takes a checkpoint and votes again",
        (outage(1_000), VOTES_AGAIN, healthy_again(20_000)),
        follower_far_behind,
        "rigs",
        controller_settings={"LOG__CHECKPOINT_BYTES": "16384", "LOG__RETENTION_BYTES": "32768"},
    ),
    Drill(
        "wiped-voter",
        "a voter is wiped and restarts at once while the active controller dies: it helps nobody to be elected",
        (
            Expectation(
                name="elections_with_wiped_voter", meaning="leaders elected with the wiped voter's help", at_most=0
            ),
            healthy_again(20_000),
        ),
        wiped_voter,
        "destroys",
    ),
)
