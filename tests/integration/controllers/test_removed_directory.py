"""A controller's directory is removed under it: nothing more is acknowledged, and the process says why it ends."""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path

import pytest

from quorate.controller.protocol import CreatableTopic, CreateTopicsRequest
from quorate.metadata_log.errors import QuorateError
from quorate.scripts.cluster.local import LocalOptions
from quorate.scripts.cluster.making import controller_directory
from quorate.scripts.terminal import exit_codes
from tests.integration.running_cluster import running_cluster
from tests.waiting import eventually_sync

END_S = 30.0
#: Nothing is written but what the test writes.
QUIET = LocalOptions(controller={"MAINTENANCE__IDLE_NOOP_INTERVAL_MS": "0"})


def creation(name: str) -> CreateTopicsRequest:
    return CreateTopicsRequest(topics=[CreatableTopic(name=name, num_partitions=1, replication_factor=1)])


def _removed(directory: Path) -> bool:
    shutil.rmtree(directory, ignore_errors=True)
    return not directory.exists()


async def test_controller_whose_directory_was_removed_acknowledges_nothing_more(tmp_path: Path) -> None:
    async with running_cluster(tmp_path / "var", 1, 1, QUIET) as cluster:
        (planned,) = cluster.plan.controllers
        assert not (await cluster.client.create_topics(creation("kept"))).topics[0].error_code
        # A file that the controller makes meanwhile is removed by the next try.
        eventually_sync(partial(_removed, controller_directory(cluster.directory, planned)), "the directory is gone")
        with pytest.raises(QuorateError):
            await cluster.client.create_topics(creation("for-nobody"))
        process = cluster.controllers[planned.id]
        assert await process.wait(END_S) == exit_codes.FAULT
        assert "it was removed while it was written to" in process.last_words()
