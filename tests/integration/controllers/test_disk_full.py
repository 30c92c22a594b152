"""The active controller of three runs out of disk under writes: it stops, and nothing acknowledged is lost."""

from __future__ import annotations

import asyncio
import resource
from pathlib import Path

from quorate.controller.protocol import CreatableTopic, CreateTopicsRequest
from quorate.metadata_log.errors import ApiError, ErrorCode
from quorate.scripts.cluster.local import LocalCluster
from quorate.scripts.cluster.making import Ports, controller_directory, make_fresh
from quorate.scripts.cluster.ports import free_ports
from quorate.scripts.cluster.process import ManagedProcess
from quorate.scripts.tour.digests import digests_at_one_offset
from tests.waiting import eventually

READY_S = 60.0
WRITERS = 8
#: What the largest file of the controller may still grow by: some dozens of writes.
ROOM_BYTES = 16 * 1024


class Writer:
    """Creates topics one after the other, and notes what was said of each."""

    def __init__(self, cluster: LocalCluster, name: str) -> None:
        self._cluster = cluster
        self._name = name
        self.acknowledged: list[str] = []
        self.unknown: list[str] = []
        self.is_stopped = False

    async def run(self) -> None:
        number = 0
        while not self.is_stopped:
            number += 1
            name = f"{self._name}-{number}"
            topic = CreatableTopic(name=name, num_partitions=1, replication_factor=1)
            try:
                reply = await self._cluster.client.create_topics(CreateTopicsRequest(topics=[topic]))
            except ApiError:
                self.unknown.append(name)
                continue
            if reply.topics[0].error_code is ErrorCode.NONE:
                self.acknowledged.append(name)


def fill_the_disk(process: ManagedProcess, directory: Path) -> None:
    """A file that may not grow is a disk that is full, as far as the one process can tell."""
    most = max(path.stat().st_size for path in directory.rglob("*.log")) + ROOM_BYTES
    assert process.pid is not None
    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (most, most))


async def acknowledge(writers: list[Writer], more: int) -> None:
    """Until so many more writes are acknowledged."""

    def acknowledged() -> int:
        return sum(len(writer.acknowledged) for writer in writers)

    enough = acknowledged() + more

    async def look() -> bool:
        return acknowledged() >= enough

    await eventually(look, "writes are acknowledged", READY_S)


async def test_active_controller_whose_disk_is_full_stops_and_loses_nothing_acknowledged(tmp_path: Path) -> None:
    plan = make_fresh(tmp_path, Ports.of(free_ports(7)), 3, 1)
    cluster = LocalCluster(tmp_path, plan)
    writers = [Writer(cluster, f"w{number}") for number in range(WRITERS)]
    tasks: list[asyncio.Task[None]] = []
    try:
        await cluster.start()
        await cluster.wait_for_controllers(READY_S)
        active = (await cluster.wait_for_brokers(READY_S)).quorum.active_id
        assert active is not None
        full = cluster.controllers[active]
        tasks = [asyncio.create_task(writer.run()) for writer in writers]
        await acknowledge(writers, WRITERS)
        planned = next(controller for controller in plan.controllers if controller.id == active)
        fill_the_disk(full, controller_directory(tmp_path, planned))
        assert await full.wait(READY_S)
        await acknowledge(writers, WRITERS)
        for writer in writers:
            writer.is_stopped = True
        await asyncio.gather(*tasks)
        await full.start()
        await cluster.wait_for_controllers(READY_S)
        _, digests = await digests_at_one_offset(cluster, READY_S)
        assert len(set(digests.values())) == 1
        known = await cluster.topic_names()
        assert not [name for writer in writers for name in writer.acknowledged if name not in known]
    finally:
        for task in tasks:
            task.cancel()
        await cluster.stop()
