"""A controller that starts from a checkpoint with another state in it, whole by all checksums, is found out."""

from __future__ import annotations

from pathlib import Path

from quorate.controller.protocol import CreatableTopic, CreateTopicsRequest
from quorate.metadata_log.checkpoints.checkpoint_files import CheckpointId, checkpoint_name
from quorate.metadata_log.directory.directory import LOG_DIRECTORY_NAME
from quorate.metadata_log.records.records import ConfigRecord, VersionedRecord
from quorate.scripts.cluster.making import controller_directory
from quorate.scripts.terminal.exit_codes import FAULT
from quorate.snapshots.checkpoints.checkpoint import checkpoint_batches
from quorate.snapshots.checkpoints.loading import load_image
from quorate.snapshots.replay.replay import replay
from tests.integration.on_disk import until_topic_on_disk
from tests.integration.running_cluster import running_cluster
from tests.waiting import eventually

_FOUND_S = 90


def sabotage(directory: Path) -> None:
    """Leave a checkpoint at the end of a log that says something that the log does not."""
    image = load_image(directory)
    covers = image.provenance
    wrong = replay(image, [VersionedRecord(ConfigRecord(4, "", "log.cleaner.threads", "7"), 0)], covers)
    path = directory / LOG_DIRECTORY_NAME / checkpoint_name(CheckpointId(covers.end_offset, covers.epoch))
    path.write_bytes(b"".join(checkpoint_batches(wrong, covers.log_time_ms)))


async def test_controller_that_loads_a_wrong_state_ends_and_is_named_by_the_others(tmp_path: Path) -> None:
    async with running_cluster(tmp_path / "var", 3, 1) as cluster:
        topic = CreatableTopic(name="orders", num_partitions=1, replication_factor=1)
        await cluster.client.create_topics(CreateTopicsRequest(topics=[topic]))
        active = (await cluster.status()).quorum.active_id
        wrong = next(node_id for node_id in cluster.controllers if node_id != active)
        process, (planned,) = cluster.controllers[wrong], [c for c in cluster.plan.controllers if c.id == wrong]
        directory = controller_directory(cluster.directory, planned)
        await until_topic_on_disk(directory, "orders")
        process.kill()
        await process.wait(30)
        sabotage(directory)
        await process.start()

        assert await process.wait(_FOUND_S) == FAULT
        said = f"digest watch: the state of controller {wrong} differs from that of controllers"
        assert said.removeprefix("digest watch: ") in (tmp_path / f"var/logs/controller-{wrong}.log").read_text()

        async def is_named() -> bool:
            reasons = (await cluster.client.status()).reasons
            return any(reason.message.startswith(said) for reason in reasons)

        await eventually(is_named, "the alarm of the active controller", _FOUND_S)
