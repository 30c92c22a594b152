"""Processes of a running cluster that end by themselves: told of, counted, started again."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from quorate.scripts.cluster.local import LocalCluster
from quorate.scripts.cluster.making import Ports, make_fresh
from quorate.scripts.cluster.process import ManagedProcess, ProcessFailed
from quorate.scripts.cluster.supervision import Supervisor
from tests.waiting import eventually

LIVES = "import time; time.sleep(600)"
FAILS = "print('no room'); raise SystemExit(7)"
WAIT_S = 30.0


class Stage:
    """A cluster whose processes run other programs."""

    def __init__(self, directory: Path, *, restarts: bool = False) -> None:
        self.said: list[str] = []
        self.is_lent = False
        self.looks = 0
        self.directory = directory
        plan = make_fresh(directory, Ports.from_base(20_000), 3, 1)
        self.cluster = LocalCluster(directory, plan, tell_lost=self.said.append, restarts=restarts)
        for id_ in self.cluster.controllers:
            self.cluster.controllers[id_] = self.process(f"controller-{id_}", LIVES)
        self.cluster.brokers[11] = self.process("broker-11", LIVES)

    def process(self, name: str, program: str) -> ManagedProcess:
        return ManagedProcess(name, ("-c", program), self.directory / "logs" / f"{name}.log")

    @asynccontextmanager
    async def watched(self) -> AsyncIterator[asyncio.Task[None]]:
        """The cluster's processes, under supervision; they are killed at the end."""
        await self.cluster.start()
        supervisor = Supervisor(self.cluster, self.said.append, self.look)
        try:
            async with asyncio.TaskGroup() as group:
                task = group.create_task(supervisor.run())
                yield task
                task.cancel()
        finally:
            self.cluster.kill()
            for process in self.cluster.processes:
                await process.wait(WAIT_S)
            await self.cluster.client.close()

    def look(self) -> bool:
        """Whether the processes are lent: asked at each look."""
        self.looks += 1
        return self.is_lent

    async def until_looked(self) -> None:
        """Until the supervisor has looked once more, to the end."""
        enough = self.looks + 2

        async def look() -> bool:
            return self.looks >= enough

        await eventually(look, "the supervisor looks", WAIT_S)

    async def until_said(self, sentence: str) -> None:
        async def look() -> bool:
            return sentence in self.said

        await eventually(look, f"{sentence!r} is said, not only {self.said}", WAIT_S)


async def test_process_that_ends_by_itself_is_told_of_once_with_its_last_words(tmp_path: Path) -> None:
    stage = Stage(tmp_path / "var")
    stage.cluster.brokers[11] = stage.process("broker-11", FAILS)
    async with stage.watched():
        await stage.until_said("broker-11 ended with exit code 7: no room")
        stage.cluster.controllers[2].kill()  # told to: nobody's news
        await stage.cluster.controllers[2].wait(WAIT_S)
        os.kill(pid_of(stage.cluster.controllers[3]), signal.SIGKILL)
        lost = "controller-3 was ended by SIGKILL, the last line of its log: "
        await stage.until_said(f"{lost}nothing in {tmp_path}/var/logs/controller-3.log")
    assert [line.split()[0] for line in stage.said] == ["broker-11", "controller-3"]


def pid_of(process: ManagedProcess) -> int:
    assert process.pid is not None
    return process.pid


async def test_cluster_ends_when_no_majority_of_its_controllers_is_left(tmp_path: Path) -> None:
    stage = Stage(tmp_path / "var")
    for id_ in (1, 3):
        stage.cluster.controllers[id_] = stage.process(f"controller-{id_}", FAILS)
    with pytest.raises(ExceptionGroup) as failed:
        async with stage.watched() as task:
            await asyncio.wait({task})
    assert failed.group_contains(ProcessFailed, match="1 of 3 controllers are left, which is no majority")


async def test_controller_that_was_ended_by_order_is_not_counted_among_those_left(tmp_path: Path) -> None:
    stage = Stage(tmp_path / "var")

    async def lose_them_all() -> None:
        async with stage.watched() as task:
            stage.cluster.controllers[2].kill()
            await stage.cluster.controllers[2].wait(WAIT_S)
            await stage.until_looked()
            assert stage.said == [], "an order stands, and is no reason to end"
            for id_ in (1, 3):
                os.kill(pid_of(stage.cluster.controllers[id_]), signal.SIGKILL)
            await asyncio.wait({task})

    with pytest.raises(ExceptionGroup) as failed:
        await lose_them_all()
    assert failed.group_contains(ProcessFailed, match="0 of 3 controllers are left, which is no majority")


async def test_process_that_ends_again_and_again_is_started_after_growing_waits(tmp_path: Path) -> None:
    stage = Stage(tmp_path / "var", restarts=True)
    for id_ in (1, 2, 3):
        stage.cluster.controllers[id_] = stage.process(f"controller-{id_}", FAILS)
    async with stage.watched():
        for seconds in (1, 2, 4):
            await stage.until_said(f"controller-2 is started again in {seconds} s")
    assert (tmp_path / "var" / "logs" / "controller-2.log").read_text() == "no room\n" * 3


async def test_process_that_was_lent_is_looked_after_by_its_borrower(tmp_path: Path) -> None:
    stage = Stage(tmp_path / "var", restarts=True)
    stage.cluster.brokers[11] = stage.process("broker-11", FAILS)
    stage.is_lent = True
    async with stage.watched():
        await stage.cluster.brokers[11].wait(WAIT_S)
        await stage.until_looked()
        assert stage.said == []
        stage.is_lent = False
        await stage.until_said("broker-11 is started again in 1 s")
