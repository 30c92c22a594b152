"""Controllers that are started on restored directories serve the state that was restored."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from typer.testing import CliRunner

from quorate.controller.protocol import CreateTopicsRequest
from quorate.controller.protocol.topics import CreatableTopic
from quorate.scripts.cli.snapshot.command import app
from quorate.scripts.cluster.local import LocalCluster
from quorate.scripts.cluster.plan import ClusterPlan
from quorate.scripts.cluster.ports import free_stretch
from quorate.snapshots.checkpoints.loading import load_image
from quorate.snapshots.image_digest import digest_image
from tests.integration.commands import Ended, alone, answered
from tests.integration.running_cluster import running_cluster
from tests.waiting import eventually

READY_S = 60.0
OFFSET = 60


async def test_cluster_on_restored_directories_serves_that_state(kafka_data: Path, tmp_path: Path) -> None:
    source, target = kafka_data / "dynamic-small/m1/log", tmp_path / "new"
    options = ["--nodes", "3", "--at", str(OFFSET), "--brokers", "none", "--base-port", str(free_stretch(6)), "--json"]
    result = CliRunner().invoke(app, ["restore", "--from", str(source), "--to", str(target), *options])
    document = json.loads(result.stdout)
    plan = ClusterPlan.load(target)
    assert plan is not None
    cluster = LocalCluster(target, plan)
    try:
        await cluster.start()
        status = await cluster.wait_for_controllers(READY_S)
        listed = [await cluster.client.checkpoints.list(url) for url in plan.controller_urls]
        topics = await cluster.client.list_topics(consistency="linearizable")
    finally:
        await cluster.stop()
    assert status.quorum.epoch > document["next_epoch"]
    wanted = load_image(source, OFFSET)
    assert {(one.checkpoints[0].end_offset, one.checkpoints[0].digest) for one in listed} == {
        (OFFSET, digest_image(wanted).text)
    }
    assert {topic.name for topic in topics.topics} == set(wanted.topics.by_name)
    for node in document["nodes"]:
        # What they have come to since begins with that state, and changes nothing in it but who the controllers are.
        after = load_image(Path(node["directory"]))
        assert load_image(Path(node["directory"]), OFFSET) == wanted
        assert after.provenance.end_offset > OFFSET
        assert (after.topics, after.partitions, after.configs) == (wanted.topics, wanted.partitions, wanted.configs)


async def test_state_saved_from_a_running_cluster_that_is_destroyed_makes_a_healthy_one_with_the_same_digest(
    tmp_path: Path,
) -> None:
    first, file, second = tmp_path / "first", tmp_path / "state", tmp_path / "second"
    async with running_cluster(first, 3, 1) as lost:
        await lost.client.create_topics(
            CreateTopicsRequest(topics=[CreatableTopic(name="kept", num_partitions=3, replication_factor=1)])
        )
        ended = await alone("snapshot", "save", str(file), "--json", "--dir", str(first))
        assert ended.code == 0, ended
        saved = answered(ended.out)
    shutil.rmtree(first)
    options = ("--nodes", "3", "--base-port", str(free_stretch(7)))
    restored = await alone("snapshot", "restore", "--from", str(file), "--to", str(second), *options)
    assert (restored.code, f"digest {saved['digest']}" in restored.out) == (0, True), restored
    plan = ClusterPlan.load(second)
    assert plan is not None
    assert (plan.source_cluster_id, plan.cluster_id == saved["cluster_id"]) == (saved["cluster_id"], False)
    cluster = LocalCluster(second, plan)
    try:
        await cluster.start()
        await cluster.wait_for_controllers(READY_S)
        await cluster.wait_for_brokers(READY_S)
        digests = {await cluster.client.digest_of(url, saved["end_offset"]) for url in plan.controller_urls}
        status = await eventually(lambda: healthy(second), "status is healthy", READY_S)
        kept = await cluster.client.describe_topic("kept", is_linearizable=True)
    finally:
        await cluster.stop()
    assert (digests, len(kept.topic.partitions)) == ({saved["digest"]}, 3)
    assert status is not None
    assert status.out.startswith("HEALTHY"), status


async def healthy(directory: Path) -> Ended | None:
    """What `quorate status` says, once its exit code is that of a healthy cluster."""
    ended = await alone("status", "--dir", str(directory))
    return ended if ended.code == 0 else None
