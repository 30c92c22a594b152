"""Two of three controllers are gone for good, one lags: four commands, with real processes and brokers that go on."""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from quorate.metadata_log.errors import ApiError
from quorate.scripts.cluster.local import LocalCluster
from quorate.scripts.cluster.making import controller_directory
from quorate.scripts.cluster.plan import ClusterPlan
from quorate.scripts.cluster.process import ManagedProcess
from quorate.scripts.tour.writes import WriteStream
from tests.integration.answers_by_schema import check_answer
from tests.integration.commands import Ended, end_of
from tests.integration.running_cluster import running_cluster
from tests.waiting import eventually

READY_S = 60.0
WRITES = 20
#: From the first command to a quorum that holds.
RECOVERED_S = 60.0


async def recover(*arguments: str) -> Ended:
    """One `quorate recover` command, as an operator gives it."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "quorate.scripts.cli", "recover", *arguments),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    ended = await end_of(process)
    check_answer(["recover", *arguments], ended.out)
    return ended


def old_controller(cluster: LocalCluster, node: int, aside: Path) -> ManagedProcess:
    """A controller as it was before: its directory and settings were kept somewhere else."""
    settings = aside / f"controller-{node}.toml"
    place = str(controller_directory(cluster.directory, next(c for c in cluster.plan.controllers if c.id == node)))
    settings.write_text(settings.read_text().replace(place, str(aside / f"controller-{node}")))
    return ManagedProcess(
        f"old-{node}", ("-m", "quorate.scripts.cli", "controller", "--config", str(settings)), aside / f"old-{node}.log"
    )


async def lose_majority(cluster: LocalCluster, aside: Path) -> int:
    """One standby stops following, more is written, and the two others are gone; the node that is left."""
    stop = asyncio.Event()
    writes = WriteStream(cluster.client, "t")
    writing = asyncio.create_task(writes.run(stop))

    async def written(count: int) -> bool:
        return len(writes.acknowledged) >= count

    await eventually(lambda: written(WRITES), "the first writes", READY_S)
    active = (await cluster.status()).quorum.active_id
    survivor = next(node for node in cluster.controllers if node != active)
    cluster.controllers[survivor].pause()
    seen = len(writes.acknowledged)
    await eventually(lambda: written(seen + WRITES), "writes that the survivor never hears of", READY_S)
    for process in cluster.controllers.values():
        process.kill()
        await process.wait(READY_S)
    stop.set()
    await writing
    put_aside(cluster, survivor, aside)
    return survivor


def put_aside(cluster: LocalCluster, survivor: int, aside: Path) -> None:
    """Settings of all, and the directories of those that are lost: what an old majority would come back with."""
    aside.mkdir()
    for controller in cluster.plan.controllers:
        shutil.copy(cluster.directory / f"controller-{controller.id}.toml", aside)
        if controller.id != survivor:
            path = controller_directory(cluster.directory, controller)
            path.rename(aside / path.name)


async def brokers_agree(cluster: LocalCluster) -> bool:
    """Whether every broker is active and holds what the active controller holds."""
    status = await cluster.status()
    if sum(broker.state == "active" for broker in status.brokers) < len(cluster.plan.brokers):
        return False
    offset = status.quorum.high_watermark
    urls = [node.url for node in cluster.members.brokers.values() if node.url is not None]
    active = next(voter.http for voter in status.quorum.voters if voter.node_id == status.quorum.active_id)
    try:
        return len({await cluster.client.digest_of(url, offset) for url in [active, *urls]}) == 1
    except ApiError:
        return False  # the log has moved on meanwhile


@pytest.mark.timeout(400)
async def test_quorum_whose_majority_is_gone_is_rebuilt(tmp_path: Path) -> None:
    directory, aside, plan_file = tmp_path / "var", tmp_path / "aside", str(tmp_path / "plan.json")
    async with running_cluster(directory, 3, 2) as cluster:
        survivor = await lose_majority(cluster, aside)
        brokers = ",".join(f"127.0.0.1:{broker.http_port}" for broker in cluster.plan.brokers)
        begun = time.monotonic()

        surveyed = await recover("survey", "--dir", str(directory), "--brokers", brokers, "--json")
        planned = await recover("plan", "--dir", str(directory), "--brokers", brokers, "--out", plan_file, "--json")
        unconsented = await recover("apply", plan_file, "--yes")
        consent = ("--yes", "--accept-loss", str(json.loads(planned.out)["lost_from"]))
        applied = await recover("apply", plan_file, *consent, "--json")
        renewed = LocalCluster(directory, known_plan(directory))
        try:
            for process in renewed.controllers.values():
                await process.start()
            await renewed.wait_for_controllers(READY_S)
            verified = await recover("verify", plan_file, "--json")
            took = time.monotonic() - begun
            print(f"four commands and a start: {took:.1f} s")

            for ended in (surveyed, planned, applied, verified):
                assert ended.code == 0, ended
            check_survey(json.loads(surveyed.out), survivor)
            assert unconsented.code == 1
            assert "--accept-loss" in unconsented.err
            plan = json.loads(planned.out)
            assert json.loads(verified.out)["verdict"] == "holds"
            assert (await renewed.status()).quorum.epoch > plan["generation"] >= 1_000
            assert took < RECOVERED_S
            # The brokers followed beyond the survivor's log: they throw that away.
            await eventually(lambda: brokers_agree(renewed), "brokers hold the new quorum's state", READY_S)
            refused = await recover("apply", plan_file, *consent)
            assert refused.code == 1
            assert "3 of 3 controllers answer" in refused.err
            await old_majority_ends(renewed, survivor, aside)
        finally:
            await stop(renewed)


async def test_wiped_controller_rejoins_without_a_vote_and_votes_when_it_has_caught_up(tmp_path: Path) -> None:
    directory = tmp_path / "var"
    async with running_cluster(directory, 3, 0) as cluster:
        active = (await cluster.status()).quorum.active_id
        node = next(node for node in cluster.controllers if node != active)
        process = cluster.controllers[node]
        process.kill()
        await process.wait(READY_S)
        command = ("rejoin", "--dir", str(directory), "--node-id", str(node))
        refused = await recover(*command)
        assert refused.code == 1
        assert "is formatted already" in refused.err
        shutil.rmtree(directory / f"controller-{node}")

        made = await recover(*command)

        assert made.code == 0, made
        await process.start()
        await cluster.wait_for_controllers(READY_S)
        assert (await recover("rejoin", "--dir", str(directory), "--node-id", "9")).code == 2


def known_plan(directory: Path) -> ClusterPlan:
    plan = ClusterPlan.load(directory)
    assert plan is not None
    return plan


def check_survey(found: dict[str, Any], survivor: int) -> None:
    (holding,) = found["directories"]
    assert (holding["node_id"], found["intact"], found["is_complete"]) == (survivor, [survivor], False)
    assert found["sentences"][0].startswith(f"LOST: records {holding['end_offset']} to {found['known_commit'] - 1}")


async def old_majority_ends(cluster: LocalCluster, survivor: int, aside: Path) -> None:
    """The two that were lost come back as they were, in place of their successors: they meet the new generation."""
    lost = [node for node in cluster.controllers if node != survivor]
    for node in lost:
        cluster.controllers[node].kill()
        await cluster.controllers[node].wait(READY_S)
    old = [old_controller(cluster, node, aside) for node in lost]
    try:
        for process in old:
            await process.start()
        for process in old:
            code = await process.wait(READY_S)
            assert code != 0
            said = (aside / f"{process.name}.log").read_text()
            assert "the quorum was rebuilt, and this directory may take no part in it" in said
    finally:
        for process in old:
            process.kill()
    for node in lost:
        await cluster.controllers[node].start()
    await cluster.wait_for_controllers(READY_S)


async def stop(cluster: LocalCluster) -> None:
    for process in cluster.controllers.values():
        process.kill()
        await process.wait(READY_S)
    await cluster.client.close()
