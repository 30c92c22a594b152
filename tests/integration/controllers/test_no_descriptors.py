"""A controller that may open no more files, as strangers hold all that there may be: it goes on writing."""

from __future__ import annotations

import os
import resource
import socket
from contextlib import ExitStack
from pathlib import Path

from quorate.controller.protocol import CreatableTopic, CreateTopicsRequest
from quorate.metadata_log.directory.directory import LOG_DIRECTORY_NAME
from quorate.scripts.cluster.local import LocalOptions
from quorate.scripts.cluster.making import controller_directory
from tests.integration.running_cluster import running_cluster
from tests.waiting import eventually

#: A checkpoint is taken after a few requests.
SMALL = LocalOptions(controller={"LOG__CHECKPOINT_BYTES": "4096", "LOG__CHECKPOINT_INTERVAL_MS": "0"})
#: Above what it has open when strangers come.
ROOM = 4


def creation(name: str) -> CreateTopicsRequest:
    return CreateTopicsRequest(topics=[CreatableTopic(name=name, num_partitions=20, replication_factor=1)])


async def test_strangers_who_take_all_descriptors_do_not_end_a_controller(tmp_path: Path) -> None:
    async with running_cluster(tmp_path / "var", 1, 1, SMALL) as cluster:
        (planned,) = cluster.plan.controllers
        process = cluster.controllers[planned.id]
        log = controller_directory(cluster.directory, planned) / LOG_DIRECTORY_NAME
        assert not (await cluster.client.create_topics(creation("before"))).topics[0].error_code
        assert process.pid is not None
        open_files = Path(f"/proc/{process.pid}/fd")
        limit = len(os.listdir(open_files)) + ROOM
        resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (limit, limit))

        async def has_all_open() -> bool:
            return len(os.listdir(open_files)) == limit

        async def new_checkpoints() -> set[Path]:
            return set(log.glob("*.checkpoint")) - known

        with ExitStack() as stack:
            for _ in range(4 * ROOM):
                stack.enter_context(socket.create_connection(("127.0.0.1", planned.http_port)))
            await eventually(has_all_open, "it has all open that it may")
            known = set(log.glob("*.checkpoint"))
            for number in range(10):
                created = await cluster.client.create_topics(creation(f"topic-{number}"))
                assert not created.topics[0].error_code
            await eventually(new_checkpoints, "a checkpoint is written")
        assert process.is_running
        said = "".join(file.read_text() for file in cluster.directory.rglob("controller-*.log"))
        assert "disk.no_descriptors" in said
