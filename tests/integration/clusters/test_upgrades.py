"""Upgrades from older releases: processes of a wheel that was built of this tree's history, and those of this tree."""

from __future__ import annotations

import json
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from quorate.controller.protocol import CreateTopicsRequest
from quorate.controller.protocol.topics import CreatableTopic
from quorate.metadata_log.release import release
from quorate.quorum.versions import NEWEST_VERSION, OLDEST_VERSION
from quorate.scripts.cluster.control import LocalControl
from quorate.scripts.cluster.local import LocalCluster
from quorate.scripts.cluster.making import Ports, logs_directory, make_fresh
from quorate.scripts.cluster.ports import free_ports
from quorate.scripts.drills.controller_drills import OLDER_VARIABLE, VERSION_SETTING
from quorate.scripts.tour.digests import digests_at_one_offset
from tests.integration.clusters.test_drills import drill
from tests.integration.older_releases import OlderRelease, commit_that_added, installed_release
from tests.waiting import eventually

READY_S = 60.0
#: The newest version of messages that the release before knows.
NEWEST_BEFORE = 5


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> OlderRelease:
    """The oldest release from which one goes on without a stop of all controllers.

    Voters agree on a version of their messages since the commit before it, and this one is the first that runs so.
    """
    commit = commit_that_added("message_version_max", "controller/process/settings.py")
    return installed_release(commit, tmp_path_factory.mktemp("before"))


def kept_to(version: int, python: Path, directory: Path) -> Path:
    """An interpreter under which a controller speaks no version of messages above this one."""
    kept = directory / "python"
    kept.write_text(f'#!/bin/sh\n{VERSION_SETTING}={version} exec {python} "$@"\n', encoding="utf-8")
    kept.chmod(stat.S_IRWXU)
    return kept


@pytest.mark.parametrize("version", [NEWEST_BEFORE, OLDEST_VERSION])
async def test_release_before_is_replaced_under_writes_and_goes_back(
    before: OlderRelease, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: int
) -> None:
    """Processes of it said by themselves which release they are, and by their hellos up to which version they speak."""
    python = before.python if version == NEWEST_BEFORE else kept_to(version, before.python, tmp_path)
    monkeypatch.setenv(OLDER_VARIABLE, str(python))
    ended = await drill(tmp_path, "rolling-upgrade", "--json")

    assert ended.code == 0, ended
    outcome = json.loads(ended.out)
    values = {one["expectation"]["name"]: one["value"] for one in outcome["measured"]}
    names = ("lost_writes", "nodes_that_differ", "older_messages", "refused_messages")
    assert [values[name] for name in names] == [0] * 4
    assert outcome["noted"]["release_before"] == before.version != release()
    assert outcome["noted"]["message_versions"] == ", ".join(map(str, sorted({version, NEWEST_VERSION})))

    seen = [event["text"].split(" is of release ") for event in outcome["events"] if " is of release " in event["text"]]
    steps = [(name, said.split(":")[0]) for name, said in seen]
    controllers, brokers = (
        [f"controller-{node}" for node in (1, 2, 3)],
        [f"broker-{node}" for node in (11, 12, 13)],
    )
    ours = [(name, release()) for name in (*controllers, "controller-1", *brokers)]
    assert steps == [
        *((name, before.version) for name in (*controllers, *brokers)),
        *ours[:3],
        ("controller-1", before.version),
        *ours[3:],
        *ours[:3],
    ]
    said = [text for name, text in seen if name == "controller-1"]
    for text, spoken in ((said[1], version), (said[-1], NEWEST_VERSION)):
        assert text == f"{release()}: messages to 2 of version {spoken}, to 3 of version {spoken}"


@asynccontextmanager
async def cluster_of(release: OlderRelease, directory: Path) -> AsyncIterator[LocalCluster]:
    """Three controllers and three brokers of a release, ready; all are killed afterwards."""
    cluster = LocalCluster(directory, make_fresh(directory, Ports.of(free_ports(9)), 3, 3, is_secured=True))
    try:
        for process in cluster.processes:
            process.change({}, release.python)
        await cluster.start()
        await ready(cluster)
        yield cluster
    finally:
        await LocalControl(cluster).end()


async def ready(cluster: LocalCluster) -> None:
    await cluster.wait_for_controllers(READY_S)
    await cluster.wait_for_brokers(READY_S)


async def create(cluster: LocalCluster, name: str) -> None:
    await cluster.client.create_topics(
        CreateTopicsRequest(topics=[CreatableTopic(name=name, num_partitions=3, replication_factor=3)])
    )


async def test_release_without_agreed_versions_is_turned_away_and_replaced_all_at_once(tmp_path: Path) -> None:
    """Its voters name one version alone. A controller of this release does not join them, and says what to do."""
    agreed = commit_that_added("def common_version", "quorum/versions.py")
    # Of the three commits before it the two later ones are parts of it, and run alone no more than it does.
    oldest = installed_release(f"{agreed}~3", tmp_path)
    async with cluster_of(oldest, tmp_path / "var") as cluster:
        await create(cluster, "before")
        await cluster.controllers[1].stop(READY_S)
        cluster.controllers[1].change({}, None)
        log = logs_directory(cluster.directory) / "controller-1.log"
        begun = log.stat().st_size
        await cluster.controllers[1].start()

        async def is_turned_away() -> bool:
            said = log.read_bytes()[begun:].decode()
            return "it speaks version 3 alone, this node 4 and above: stop all controllers" in said

        await eventually(is_turned_away, "it says what to do")
        await create(cluster, "meanwhile")
        roles = {voter.node_id: voter.role for voter in (await cluster.status()).quorum.voters}
        assert sorted(roles.values()) == ["active", "standby", "unreachable"]
        assert roles[1] == "unreachable"

        for process in (*cluster.brokers.values(), *cluster.controllers.values()):
            assert await process.stop(READY_S) == 0
            process.change({}, None)
        await cluster.start()
        await ready(cluster)
        await create(cluster, "after")
        assert await cluster.topic_names() == {"before", "meanwhile", "after"}
        _, digests = await digests_at_one_offset(cluster, READY_S)
        assert len(digests) == 6
        assert len(set(digests.values())) == 1
