"""`quorate` commands as processes of their own, against servers of the test."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, redirect_stderr, redirect_stdout
from io import StringIO
from typing import Any, NamedTuple

import pytest

from quorate.scripts.cli.__main__ import make_app
from quorate.scripts.terminal.command_line import run
from tests.integration.answers_by_schema import check_answer
from tests.integration.http_stage import Stage, stage


class Ended(NamedTuple):
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def said(self) -> str:
        """Its complaint as running text, out of the frame that usage errors are put in."""
        return " ".join(self.err.replace("│", " ").split())

    @property
    def cells(self) -> list[list[str]]:
        """Its output by lines and words."""
        return [line.split() for line in self.out.splitlines()]


def answered(out: str) -> dict[str, Any]:
    """The answer in a command's JSON, without what all of them say of themselves."""
    document: dict[str, Any] = json.loads(out)
    del document["schema_version"], document["as_of"]
    return document


async def start(url: str, *arguments: str) -> asyncio.subprocess.Process:
    """Start a command; nobody sits at its terminal."""
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "quorate.scripts.cli", *arguments, "--controllers", url),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


async def command(url: str, *arguments: str) -> Ended:
    """Run a command to its end."""
    return await end_of(await start(url, *arguments))


async def end_of(process: asyncio.subprocess.Process) -> Ended:
    """What a command leaves behind."""
    out, err = await process.communicate()
    assert process.returncode is not None
    return Ended(process.returncode, out.decode(), err.decode())


def _run_here(arguments: list[str]) -> Ended:
    with redirect_stdout(StringIO()) as out, redirect_stderr(StringIO()) as err, pytest.raises(SystemExit) as ended:
        run(make_app(arguments), arguments)
    code = ended.value.code
    check_answer(arguments, out.getvalue())
    return Ended(code if isinstance(code, int) else 0, out.getvalue(), err.getvalue())


async def alone(*arguments: str) -> Ended:
    """A command that is told in its arguments whom to ask, or asks nobody; in this process."""
    return await asyncio.to_thread(_run_here, [*arguments])


async def here(url: str, *arguments: str) -> Ended:
    """`command` in this process: it takes a twentieth of the time."""
    return await alone(*arguments, "--controllers", url)


class Terminal:
    """Commands against a stage whose brokers stay alive as long as somebody types."""

    def __init__(self, stage: Stage, epochs: dict[int, int]) -> None:
        self.stage = stage
        self.epochs = epochs

    async def run(self, *arguments: str) -> Ended:
        """A command to its end, in this process."""
        await self.beat()
        return await self.run_as_it_is(*arguments)

    async def run_as_it_is(self, *arguments: str) -> Ended:
        """The same, with no heartbeat before it: a broker may have gone."""
        return await here(self.stage.urls[1], *arguments)

    async def beat(self) -> None:
        """A heartbeat of every broker."""
        for broker_id, epoch in self.epochs.items():
            heartbeat = {"broker_id": broker_id, "broker_epoch": epoch, "current_metadata_offset": 2**60}
            status, reply, _ = await self.stage.ask(1, "POST", "/v1/broker-rpc/heartbeat", heartbeat)
            assert (status, reply["is_fenced"]) == (200, False), reply

    async def catch_up(self, partition: str) -> None:
        """The leader says that all replicas have caught up."""
        topic, _, number = partition.rpartition("-")
        _, reply, _ = await self.stage.ask(1, "GET", f"/v1/topics/{topic}")
        state = reply["topic"]["partitions"][int(number)]
        data = {
            "partition_index": int(number),
            "leader_epoch": state["leader_epoch"],
            "partition_epoch": state["partition_epoch"],
            "new_isr_with_epochs": [{"broker_id": broker} for broker in state["replica_nodes"]],
        }
        leader = state["leader_id"]
        request = {
            "broker_id": leader,
            "broker_epoch": self.epochs[leader],
            "topics": [{"topic_id": reply["topic"]["topic_id"], "partitions": [data]}],
        }
        status, reply, _ = await self.stage.ask(1, "POST", "/v1/broker-rpc/alter-partition", request)
        assert (status, reply["topics"][0]["partitions"][0]["error_code"]) in ((200, 0), (200, 108)), reply


@asynccontextmanager
async def terminal(racks: Mapping[int, str | None]) -> AsyncIterator[Terminal]:
    """Three controllers, and brokers by id with their racks."""
    async with stage() as s:
        yield Terminal(s, {broker_id: await s.register(1, broker_id, rack) for broker_id, rack in racks.items()})
