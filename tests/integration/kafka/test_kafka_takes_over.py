"""Real Apache Kafka controllers start on what `quorate snapshot export` makes, and hold the state that we exported."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from quorate.controller.protocol import CreatableTopic, CreateTopicsRequest
from quorate.controller.protocol.configs import IncrementalAlterConfigsRequest
from quorate.metadata_log.ids import uuid_text
from quorate.scripts.cli.snapshot.command import app
from quorate.scripts.cluster.local import LocalCluster
from quorate.scripts.cluster.making import Ports, controller_directory, make_twin
from quorate.scripts.cluster.ports import free_ports
from quorate.snapshots.checkpoints.loading import load_image
from quorate.snapshots.image.image import MetadataImage
from tests.integration.kafka_controllers import KafkaVoter, running
from tests.integration.kafka_tools import kafka_jars

#: The first run fetches some 50 MB.
pytestmark = [pytest.mark.java, pytest.mark.timeout(1_000)]

#: For a quorum of Kafka's to start, agree, and write a snapshot.
SECONDS_MAX = 90
READY_S = 60.0


@pytest.fixture(scope="module")
def jars() -> Path:
    """Kafka's jars, or a skip that says why not."""
    return kafka_jars()


def export(
    source: Path, target: Path, ports: list[int], *options: str
) -> tuple[dict[str, Any], tuple[KafkaVoter, ...]]:
    """What the command says, and who is to run on the directories."""
    voters = [f"{id_}@127.0.0.1:{port}" for id_, port in enumerate(ports, start=1)]
    arguments = ["export", "--json", "--from", source, "--to", target, *options]
    for voter in voters:
        arguments += ["--voter", voter]
    result = CliRunner().invoke(app, list(map(str, arguments)), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    named = ((one["id"], one["port"], Path(one["directory"])) for one in document["voters"])
    return document, tuple(KafkaVoter(*each) for each in named)


def differences(ours: MetadataImage, theirs: MetadataImage) -> list[str]:
    """The parts of the state that are not the same. Who the controllers are is the new quorum's own affair."""
    parts = [part for part in ours._fields if part not in ("provenance", "kraft", "cluster")]
    different = [part for part in parts if getattr(ours, part) != getattr(theirs, part)]
    return different + ["brokers"] * (ours.cluster.brokers != theirs.cluster.brokers)


def assert_checksummed(voters: tuple[KafkaVoter, ...]) -> None:
    """Kafka is about to read an election state with a field that it does not know."""
    for voter in voters:
        state = json.loads((voter.directory / "__cluster_metadata-0/quorum-state").read_bytes())
        assert "crc" in state


def test_kafka_starts_as_a_static_voter_on_an_exported_state(jars: Path, kafka_data: Path, tmp_path: Path) -> None:
    """3,061 partitions, ELR, reassignments, ACLs, SCRAM, quotas; brokers dead and alive."""
    source = kafka_data / "static/m2/log"
    deadline = time.monotonic() + SECONDS_MAX
    document, voters = export(source, tmp_path / "kafka", list(free_ports(1)), "--static")
    assert_checksummed(voters)
    with running(jars, voters, is_static=True) as kafka:
        theirs = kafka.newest_snapshot(voters[0], document["end_offset"], deadline)
    assert differences(load_image(source), theirs) == []
    assert (theirs.kraft.version, theirs.kraft.voters) == (0, None)
    assert theirs.provenance.epoch > document["next_epoch"]


async def exported_by_us(tmp_path: Path, source: Path) -> tuple[Path, MetadataImage]:
    """A directory of a controller of ours, who has led a quorum and changed things in it; and its state."""
    plan = make_twin(tmp_path / "ours", source, Ports.of(list(free_ports(6))), "none")
    cluster = LocalCluster(tmp_path / "ours", plan)
    try:
        await cluster.start()
        await cluster.wait_for_controllers(READY_S)
        topic = CreatableTopic(name="ours", num_partitions=3, replication_factor=1)
        await cluster.client.create_topics(CreateTopicsRequest(topics=[topic]))
        config = {"name": "retention.ms", "config_operation": "SET", "value": "86400000"}
        resource = {"resource_type": "TOPIC", "resource_name": "ours", "configs": [config]}
        request = IncrementalAlterConfigsRequest.model_validate({"resources": [resource]})
        await cluster.client.incremental_alter_configs(request)
        # Kafka has no such thing. It is to keep what carries it, in its own snapshots, too.
        for labelled in ("topic:ours", "partition:ours-2", "record:routing"):
            await cluster.client.labels.set(labelled, "acme/version", "7")
    finally:
        await cluster.stop()
    directory = controller_directory(tmp_path / "ours", plan.controllers[0])
    return directory, load_image(directory)


async def test_kafka_quorum_goes_on_with_the_log_of_a_quorum_of_ours(
    jars: Path, kafka_data: Path, tmp_path: Path
) -> None:
    """Three dynamic voters, with the log that our leader wrote behind a checkpoint."""
    source, ours = await exported_by_us(tmp_path, kafka_data / "dynamic-small/m1/log")
    assert "ours" in ours.topics.by_name
    assert ours.labels.count == 3
    deadline = time.monotonic() + SECONDS_MAX
    document, voters = export(source, tmp_path / "kafka", list(free_ports(3)), "--with-log")
    assert 0 < document["checkpoint_offset"] < document["end_offset"]
    assert_checksummed(voters)
    with running(jars, voters, is_static=False) as kafka:
        states = [kafka.newest_snapshot(voter, document["end_offset"], deadline) for voter in voters]
        status = kafka.quorum_status()
    assert [differences(ours, theirs) for theirs in states] == [[], [], []]
    assert status["ClusterId"] == document["cluster_id"]
    assert int(status["LeaderEpoch"]) > document["next_epoch"]
    said = {(one["id"], one["directoryId"], *one["endpoints"]) for one in status["CurrentVoters"]}
    assert said == {
        (one["id"], one["directory_id"], f"CONTROLLER://127.0.0.1:{one['port']}") for one in document["voters"]
    }
    for theirs in states:
        assert theirs.kraft.voters is not None
        assert {(one.voter_id, uuid_text(one.voter_directory_id)) for one in theirs.kraft.voters.voters} == {
            (one["id"], one["directory_id"]) for one in document["voters"]
        }
