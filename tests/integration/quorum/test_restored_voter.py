"""A controller that is put back from an older copy has forgotten what it acknowledged, and must not vote.

A and B commit a record that C does not have; B is restored from a copy of the time before; A dies. B and C are a
majority, and together they do not know the record.
"""

from __future__ import annotations

import shutil
import time
from pathlib import Path

from quorate.controller.client.connection import NoAnswer, NotSent
from quorate.metadata_log.errors import ApiError
from tests.integration.commands import Ended, alone
from tests.integration.on_disk import until_topic_on_disk
from tests.integration.own_machines import READY_S, OwnMachines, own_machines
from tests.waiting import eventually

#: Of elections that must not succeed: six times the shortest timeout.
QUIET_S = 3.0


async def active_at(cluster: OwnMachines, nodes: tuple[int, ...]) -> list[int | None]:
    """Whom each of them follows, of those that answer."""
    found = []
    for node in nodes:
        try:
            status = await cluster.client.status_of(f"http://{cluster.controllers[node]}", 1_000.0)
        except (ApiError, NotSent, NoAnswer):
            continue
        found.append(status.quorum.active_id)
    return found


async def founded(cluster: OwnMachines) -> tuple[int, int, int]:
    """The cluster of the story, with a record that only two have, and a copy of one of them from before; who is who."""
    for node in cluster.controllers:
        made = await cluster.format(node, "--founding")
        assert made.code == 0, made
    for node in cluster.controllers:
        await cluster.start(node)
    await cluster.start_broker(11)
    active = (await cluster.all_vote()).quorum.active_id or 0
    forgets, lags = (node for node in cluster.controllers if node != active)
    await eventually(lambda: has_broker(cluster), "the broker is active", READY_S)
    await cluster.create_topic("early")
    await until_topic_on_disk(cluster.directory(forgets), "early")
    await cluster.kill(forgets)
    shutil.copytree(cluster.directory(forgets), cluster.home / "copy")
    await cluster.start(forgets)
    await cluster.all_vote()
    await cluster.kill(lags)
    await cluster.create_topic("late")
    await cluster.kill(forgets)
    shutil.rmtree(cluster.directory(forgets))
    return active, forgets, lags


async def restore(cluster: OwnMachines, node: int, *options: str) -> Ended:
    what = ("--from", str(cluster.home / "copy"), "--node-id", str(node), "--cluster-id", "same")
    return await alone("snapshot", "restore", *what, "--to", str(cluster.directory(node)), *options)


async def topics(cluster: OwnMachines) -> set[str]:
    """All that there are, as the active controller has them."""
    return {one.name for one in (await cluster.client.list_topics(consistency="linearizable")).topics}


async def has_broker(cluster: OwnMachines) -> bool:
    status = await cluster.status()
    return status is not None and any((one.id, one.state) == (11, "active") for one in status.brokers)


async def test_controller_restored_from_an_older_copy_elects_nobody_without_the_record(tmp_path: Path) -> None:
    async with own_machines(tmp_path) as cluster:
        active, forgets, lags = await founded(cluster)
        everybody = ("--controllers", ",".join(cluster.controllers.values()), "--secret-file", cluster.secret_file)
        insisted = await restore(cluster, forgets, "--with-vote", *everybody)
        assert insisted.code == 1
        assert f"{cluster.controllers[active]} answers" in insisted.err
        made = await restore(cluster, forgets)
        assert made.code == 0, made
        await cluster.kill(active)
        for node in (lags, forgets):
            await cluster.start(node)

        async def both_answer() -> bool:
            return len(await active_at(cluster, (lags, forgets))) == 2

        await eventually(both_answer, "both answer", READY_S)
        until = time.monotonic() + QUIET_S

        async def time_is_over() -> bool:
            assert set(await active_at(cluster, (lags, forgets))) <= {None, active}, "elected without the record"
            return time.monotonic() > until

        await eventually(time_is_over, "the time is over", READY_S)
        await cluster.start(active)
        await cluster.all_vote()
        assert await topics(cluster) == {"early", "late"}


async def test_vote_that_is_insisted_on_elects_and_forgets(tmp_path: Path) -> None:
    """What the other test would see if the restored controller had its vote."""
    async with own_machines(tmp_path) as cluster:
        active, forgets, lags = await founded(cluster)
        await cluster.kill(active)
        unasked = await restore(cluster, forgets, "--with-vote")
        assert unasked.code == 2
        everybody = ("--controllers", ",".join(cluster.controllers.values()))
        made = await restore(cluster, forgets, "--with-vote", *everybody)
        assert made.code == 0, made
        for node in (lags, forgets):
            await cluster.start(node)

        async def is_elected() -> bool:
            return await cluster.status() is not None

        await eventually(is_elected, "the two elect one", READY_S)
        assert await topics(cluster) == {"early"}
