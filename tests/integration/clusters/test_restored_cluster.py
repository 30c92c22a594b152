"""Controllers that are started on restored directories serve the state that was restored."""

from __future__ import annotations

import json
from pathlib import Path

from typer.testing import CliRunner

from quorate.scripts.cli.snapshot.command import app
from quorate.scripts.cluster.local import LocalCluster
from quorate.scripts.cluster.plan import ClusterPlan
from quorate.scripts.cluster.ports import free_stretch
from quorate.snapshots.checkpoints.loading import load_image
from quorate.snapshots.image_digest import digest_image

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
        topics = await cluster.client.list_topics()
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
