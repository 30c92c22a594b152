"""Drills on controllers: killed, frozen, stopped, wiped, left behind."""

from __future__ import annotations

import asyncio
import math
import os
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from quorate.controller.client.connection import NoAnswer, NotSent
from quorate.metadata_log.errors import ApiError, ErrorCode
from quorate.quorum.versions import OLDEST_VERSION
from quorate.scripts.cluster.formatting import wipe
from quorate.scripts.cluster.members import LocalNode
from quorate.scripts.drills.drill import KILL, PAUSE, STOP, VOTES_AGAIN, Drill, healthy_again, outage
from quorate.scripts.drills.environment import DEADLINE_S, DrillBroken, DrillEnvironment
from quorate.scripts.drills.outcome import Expectation

#: Names the interpreter of an environment in which the release before is installed.
OLDER_VARIABLE: Final = "QUORATE_OLDER_PYTHON"
VERSION_SETTING: Final = "QUORATE_CONTROLLER_QUORUM__MESSAGE_VERSION_MAX"
_PAUSE_S: Final = 2.0
#: Twice the election timeout.
_NOBODY_S: Final = 2.0
_STEADY_WRITES: Final = 100


async def steady(environment: DrillEnvironment) -> None:
    """Nothing but writes: what the other drills' figures are to be compared with."""
    await environment.load.more(_STEADY_WRITES)
    await environment.settle(time.monotonic())


async def leader_kill(environment: DrillEnvironment) -> None:
    active = environment.controllers[await environment.active()]
    await environment.kill(active)
    await environment.load.more()
    await environment.settle(await environment.restart(active))


async def leader_pause(environment: DrillEnvironment) -> None:
    """Frozen with open sockets; then thawed, and asked at once for a linearizable read."""
    node = environment.controllers[await environment.active()]
    environment.event("fault", f"SIGSTOP {node.name}, for {_PAUSE_S:.0f} s at least")
    await environment.control.pause(node)
    await asyncio.sleep(_PAUSE_S)  # the fault itself
    await environment.load.more()
    written = environment.load.acknowledged[-1]
    thawed = environment.event("repair", f"SIGCONT {node.name}")
    await environment.control.resume(node)
    environment.measure("stale_reads", int(await _reads_stale(environment, node, written)))
    await environment.load.more()
    await environment.settle(thawed)


async def _reads_stale(environment: DrillEnvironment, node: LocalNode, topic: str) -> bool:
    """Whether a controller that was frozen denies, in a linearizable read, what others have acknowledged."""
    async with environment.client_of([node]) as client:
        try:
            reply = await client.describe_topic(topic, is_linearizable=True)
        except ApiError as error:
            if error.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise DrillBroken(f"{node.name} answers no read: {error}") from error
            return True
    return reply.topic.name != topic


async def cold_boot(environment: DrillEnvironment) -> None:
    everybody = list(environment.controllers.values())
    await environment.kill(*everybody)
    started = await environment.restart(*everybody)
    await environment.load.more(1)
    first = min(at for at in environment.load.times if at > started)
    environment.measure("first_commit_ms", (first - started) * 1000)
    await environment.load.more()
    await environment.settle(started)


async def rolling_restart(environment: DrillEnvironment) -> None:
    last = time.monotonic()
    for _, node in sorted(environment.controllers.items()):
        await environment.stop(node)
        last = await environment.restart(node)
        await environment.until_voting()
        await environment.load.more()
    await environment.settle(last)


async def rolling_upgrade(environment: DrillEnvironment) -> None:
    """Controllers of the release before, replaced one by one; then one of them goes back, and comes again.

    Without a release before they are of this one, and say to each other no more than it could.
    """
    named = os.environ.get(OLDER_VARIABLE)
    older = None if named is None else Path(named)
    nodes = [node for _, node in sorted(environment.controllers.items())]
    last = time.monotonic()
    for node in nodes if older is not None else ():
        last = await _replace(environment, node, {VERSION_SETTING: None}, older)
    for node in (*nodes, nodes[0]):
        last = await _replace(environment, node, {VERSION_SETTING: None}, None)
        if node is nodes[-1]:
            kept = {} if older is not None else {VERSION_SETTING: str(OLDEST_VERSION)}
            last = await _replace(environment, nodes[0], kept, older)
    await environment.settle(last)


async def _replace(
    environment: DrillEnvironment, node: LocalNode, settings: Mapping[str, str | None], python: Path | None
) -> float:
    """Stop a controller, and start it by another release; the moment of its start."""
    await environment.stop(node)
    environment.process(node.id).change(settings, python)
    at = await environment.restart(node)
    await environment.until_voting()
    await environment.load.more()
    return at


async def follower_wipe(environment: DrillEnvironment) -> None:
    node = await environment.standby()
    await environment.kill(environment.controllers[node])
    _wipe(environment, node)
    started = await environment.restart(environment.controllers[node])
    await environment.load.more()
    await environment.votes_again(node, started)
    await environment.settle(started)


async def wiped_voter(environment: DrillEnvironment) -> None:
    """A voter loses its memory and is back at once, while the active controller dies: it must not help an election."""
    node = await environment.standby()
    active = environment.controllers[await environment.active()]
    await environment.kill(environment.controllers[node])
    _wipe(environment, node)
    await environment.kill(active)
    await environment.restart(environment.controllers[node])
    await _require_no_quorum(environment, node)
    started = await environment.restart(active)
    await environment.load.more()
    await environment.settle(started)


async def _require_no_quorum(environment: DrillEnvironment, wiped: int) -> None:
    """One voter and one without a memory are no majority of three: for twice the election timeout nobody may lead."""
    node = environment.controllers[wiped]
    assert node.url is not None
    elected, end = 0, math.inf
    given_up = time.monotonic() + DEADLINE_S
    async with environment.client_of([node]) as client:
        while time.monotonic() < min(end, given_up):
            with suppress(ApiError, NotSent, NoAnswer):
                elected += (await client.status_of(node.url, 500)).quorum.active_id is not None
                end = min(end, time.monotonic() + _NOBODY_S)  # from its first answer on
            await asyncio.sleep(0.05)
    if end is math.inf:
        raise DrillBroken(f"{node.name} does not say whom it follows")
    environment.event("seen", "nobody was elected with the help of the wiped voter" if not elected else "elected!")
    environment.measure("elections_with_wiped_voter", int(elected > 0))


async def follower_far_behind(environment: DrillEnvironment) -> None:
    """So far that the log no longer reaches back: it must take a checkpoint."""
    node = await environment.standby()
    await environment.kill(environment.controllers[node])
    ground_end = (await environment.status()).quorum.log_end_offset or 0

    async def is_cut() -> bool | None:
        return ((await environment.status()).quorum.log_start_offset or 0) > ground_end or None

    await environment.cluster.until(is_cut, "the log begins behind what the stopped controller has", DEADLINE_S)
    started = await environment.restart(environment.controllers[node])
    await environment.votes_again(node, started)
    await environment.settle(started)


def _wipe(environment: DrillEnvironment, node: int) -> None:
    wipe(environment.directory(node))
    environment.event("fault", f"controller {node}'s directory is wiped, and made again without a vote")


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
        "rolling-upgrade",
        "controllers of the release before are replaced one by one, and one goes back: writes go on, nothing is lost",
        (outage(1_500), healthy_again(20_000)),
        rolling_upgrade,
        "rigs",
        controller_settings={"QUORUM__MESSAGE_VERSION_MAX": str(OLDEST_VERSION)},
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
