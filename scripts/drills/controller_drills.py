"""Drills on controllers: killed, frozen, stopped, wiped, left behind."""

from __future__ import annotations

import asyncio
import math
import os
import re
import shutil
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import aiohttp

from quorate.controller.client.connection import NoAnswer, NotSent
from quorate.metadata_log.errors import ApiError, ErrorCode
from quorate.quorum.versions import NEWEST_VERSION, OLDEST_VERSION
from quorate.scripts.cluster.formatting import wipe
from quorate.scripts.cluster.making import logs_directory
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
_RELEASE: Final = re.compile(r'^quorate_build_info\{(?:python="[^"]*",)?version="([^"]*)"', re.MULTILINE)
_VERSION: Final = re.compile(r'^quorate_raft_voter_message_version\{voter="(\d+)"\} (\d+)', re.MULTILINE)
_TELLS_VERSIONS: Final = "# TYPE quorate_raft_voter_message_version "
#: In the log of a controller that closed a connection for a message's form (``quorum.messages.wire``).
_REFUSED_MESSAGE: Final = b" closed: message type "


@dataclass(frozen=True, slots=True)
class _Account:
    """A process's account of itself, by its metrics."""

    release: str
    #: Of the messages between a controller and others, by their ids.
    versions: Mapping[int, int]
    #: False of brokers, and of controllers of a release that had no such metric.
    tells_versions: bool


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


def _older_python() -> Path | None:
    """The interpreter of the release before; None: there is none.

    Raises:
        DrillBroken: nothing that is named so can be run.
    """
    named = os.environ.get(OLDER_VARIABLE)
    if named is None:
        return None
    found = shutil.which(named)
    if found is None:
        raise DrillBroken(f"{OLDER_VARIABLE} names {named!r}, which cannot be run")
    return Path(found)


def _begin_older(environment: DrillEnvironment) -> None:
    """Let all processes be of the release before. Without one they are of this one, and controllers say to each other
    no more than it could.
    """
    older = _older_python()
    settings = {VERSION_SETTING: str(OLDEST_VERSION) if older is None else None}
    for process in environment.local.cluster.processes:
        process.change(settings, older)


async def rolling_upgrade(environment: DrillEnvironment) -> None:
    """Processes of the release before are replaced one by one: the controllers, of which one goes back and comes
    again, then the brokers, which are of this release all along where no other is there.
    """
    older = _older_python()
    controllers, brokers = _in_order(environment.controllers), _in_order(environment.brokers)
    before = {(await _look(environment, node)).release for node in (*controllers, *brokers)}
    environment.noted["release_before"] = ", ".join(sorted(before))
    back = None if older is not None else str(OLDEST_VERSION)
    steps: list[tuple[LocalNode, str | None, Path | None]] = [(node, None, None) for node in controllers]
    steps += [(controllers[0], back, older), (controllers[0], None, None)]
    steps += [(node, None, None) for node in brokers] if older is not None else []
    last, spoken, logged = time.monotonic(), set[int](), _logs(environment)
    for node, version_max, python in steps:
        last = await _replace(environment, node, version_max, python)
        spoken |= set((await _look(environment, node)).versions.values())
    environment.noted["message_versions"] = ", ".join(map(str, sorted(spoken)))
    at_end = [(await _look(environment, node)).versions.values() for node in controllers]
    environment.measure("older_messages", sum(one < NEWEST_VERSION for versions in at_end for one in versions))
    await environment.settle(last)
    refused = [log.count(_REFUSED_MESSAGE, len(logged[node])) for node, log in _logs(environment).items()]
    environment.measure("refused_messages", sum(refused))


def _logs(environment: DrillEnvironment) -> dict[int, bytes]:
    """The logs of the controllers so far, by their ids."""
    directory = logs_directory(environment.local.cluster.directory)
    return {node.id: (directory / f"{node.name}.log").read_bytes() for node in environment.controllers.values()}


def _in_order(nodes: Mapping[int, LocalNode]) -> list[LocalNode]:
    return [node for _, node in sorted(nodes.items())]


async def _replace(
    environment: DrillEnvironment, node: LocalNode, version_max: str | None, python: Path | None
) -> float:
    """Stop a process, and start it by another release; the moment of its start, once all is well."""
    await environment.stop(node)
    environment.local.process(node).change({VERSION_SETTING: version_max}, python)
    at = await environment.restart(node)
    await environment.until_steady()
    await environment.load.more()
    return at


async def _look(environment: DrillEnvironment, node: LocalNode) -> _Account:
    """Note the account that a process gives of itself, once it is connected to all other controllers if it is one."""
    others = len(environment.controllers) - 1 if node.kind == "controller" else 0

    async def look() -> _Account | None:
        url = f"{node.url}/metrics"
        async with aiohttp.ClientSession() as session, session.get(url, ssl=environment.ssl) as answer:
            account = _account(await answer.text())
        return account if len(account.versions) == others or not account.tells_versions else None

    account = await environment.cluster.until(look, f"{node.name} is connected to all others", DEADLINE_S)
    spoken = ", ".join(f"to {id_} of version {version}" for id_, version in account.versions.items())
    environment.event("seen", f"{node.name} is of release {account.release}{spoken and f': messages {spoken}'}")
    return account


def _account(metrics: str) -> _Account:
    release = _RELEASE.search(metrics)
    return _Account(
        release="unknown" if release is None else release[1],
        versions={int(voter): int(version) for voter, version in _VERSION.findall(metrics)},
        tells_versions=_TELLS_VERSIONS in metrics,
    )


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
        "processes of the release before are replaced one by one, and one goes back: writes go on, nothing is lost",
        (
            outage(1_500),
            healthy_again(20_000),
            Expectation(
                name="older_messages", meaning="controllers that talk to others as before at the end", at_most=0
            ),
            Expectation(
                name="refused_messages", meaning="messages that a controller did not know in their version", at_most=0
            ),
        ),
        rolling_upgrade,
        "rigs",
        # A broker that comes back waits for the end of the session that it had.
        controller_settings={"BROKERS__SESSION_TIMEOUT_MS": "3000"},
        arrange=_begin_older,
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
