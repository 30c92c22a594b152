"""`quorate broker` as a process: its output, its signals, its exit codes."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import aiohttp

from quorate.controller.client.client import ControllerClient
from quorate.scripts.terminal import exit_codes
from tests.integration.brokers.test_broker_host import create, partition
from tests.integration.http_stage import Stage, stage
from tests.waiting import eventually

QUICK = {
    "QUORATE_BROKER_LIFECYCLE__HEARTBEAT_INTERVAL_MS": "50",
    "QUORATE_BROKER_FEED__WAIT_MS": "200",
}


class BrokerProcess:
    """A child, and what it has logged."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.events: list[dict[str, object]] = []
        self.errors: list[str] = []

    async def read(self) -> None:
        """Collect its standard error until it closes."""
        assert self.process.stderr is not None
        async for line in self.process.stderr:
            try:
                self.events.append(json.loads(line))
            except json.JSONDecodeError:
                self.errors.append(line.decode())

    async def said(self, event: str) -> dict[str, object]:
        """The first log event of this name."""

        async def look() -> dict[str, object] | None:
            return next((logged for logged in self.events if logged["event"] == event), None)

        what = f"the process says {event}; it has said {self.events} {self.errors}"
        found = await eventually(look, what)
        assert found is not None
        return found

    async def ended(self) -> int:
        """Its exit code."""
        async with asyncio.timeout(60):
            return await self.process.wait()


def broker_process(*arguments: str, **settings: str) -> AbstractAsyncContextManager[BrokerProcess]:
    """A broker process; killed at the end if it still runs."""
    return bounded_broker_process(None, *arguments, **settings)


@asynccontextmanager
async def bounded_broker_process(
    files_max: int | None, /, *arguments: str, **settings: str
) -> AsyncIterator[BrokerProcess]:
    """The same of one that may have so many files open; None: as many as this one."""
    limit = None if files_max is None else lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (files_max, files_max))
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "quorate.scripts.cli", "broker", *arguments,
        stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE, env={**os.environ, **QUICK, **settings},
        preexec_fn=limit,
    )  # fmt: skip
    running = BrokerProcess(process)
    reader = asyncio.create_task(running.read())
    try:
        yield running
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
        await reader


async def ready(built: Stage, *ids: int) -> None:
    async def look() -> bool:
        brokers = built.members[1].controller.stable.cluster.brokers
        return all(id_ in brokers and not brokers[id_].is_fenced for id_ in ids)

    await eventually(look, f"brokers {ids} are unfenced")


async def test_broker_process_sigterm_hands_over_and_exits_zero() -> None:
    async with (
        stage(1) as built,
        ControllerClient(built.urls) as client,
        broker_process("--ids", "1", "--controllers", built.urls[0]) as staying,
        broker_process("--ids", "2,3", "--controllers", built.urls[0], "--racks", "x") as leaving,
    ):
        await ready(built, 1, 2, 3)
        await create(client, "t", [2, 1], [3, 1])
        leaving.process.send_signal(signal.SIGTERM)

        assert await leaving.ended() == exit_codes.DONE, (leaving.events, leaving.errors)
        assert [partition(built, "t", number).leader for number in (0, 1)] == [1, 1]
        assert leaving.errors == []
        assert staying.process.returncode is None
        notice = await staying.said("replicas.started")
        assert "no data are moved" in str(notice["notice"])


async def test_broker_process_killed_leaves_http_and_port_to_the_next() -> None:
    async with stage(1) as built, ControllerClient(built.urls) as client, aiohttp.ClientSession() as session:
        arguments = ("--ids", "1-2", "--controllers", ",".join(built.urls))
        async with broker_process(*arguments) as first:
            await ready(built, 1, 2)
            await create(client, "t", [1, 2])
            port = (await first.said("http.listening"))["port"]
            async with session.get(f"http://127.0.0.1:{port}/metrics") as answer:
                text = await answer.text()
            assert "# HELP quorate_broker_replicas_copying Rehearsal, no data are moved" in text
            assert 'quorate_broker_state{id="1",state="running"} 1.0' in text
        async with broker_process(*arguments, "--imported", QUORATE_BROKER_HTTP__PORT=str(port)):

            async def answers() -> bool:
                try:
                    async with session.get(f"http://127.0.0.1:{port}/readyz") as answer:
                        return answer.status == 200
                except aiohttp.ClientConnectionError:
                    return False

            await eventually(answers, "the next process is ready on the same port")

            async def is_led() -> bool:
                return partition(built, "t", 0).leader in (1, 2)  # who leads depends on how long the start took

            await eventually(is_led, "the partition is led")


async def test_broker_process_nobody_to_follow_exits_three() -> None:
    async with stage(1) as built:
        url = built.urls[0]
    settings = {"QUORATE_BROKER_LIFECYCLE__REGISTRATION_TIMEOUT_MS": "300"}
    async with broker_process("--ids", "1", "--controllers", url, **settings) as lonely:
        assert await lonely.ended() == exit_codes.UNREACHABLE
    (sentence,) = lonely.errors
    assert sentence.startswith("quorate: no controller could be followed within 0.3 s: ")


async def test_broker_process_imported_id_that_is_unknown_exits_one() -> None:
    async with stage(1) as built, broker_process("--ids", "9", "--controllers", built.urls[0], "--imported") as refused:
        assert await refused.ended() == exit_codes.REFUSED
    (sentence,) = refused.errors
    assert sentence == "quorate: broker 9 is not registered in the metadata; registered are: none\n"


async def test_broker_process_wrong_settings_exits_with_one_sentence() -> None:
    async with broker_process("--ids", "4-2", "--controllers", "127.0.0.1:1") as refused:
        assert await refused.ended() == exit_codes.REFUSED
    assert refused.errors == ["quorate: ids: the range 4-2 ends before it begins, not '4-2'\n"]


async def test_broker_process_port_that_is_taken_exits_with_one_sentence() -> None:
    async with stage(1) as built:
        port = built.urls[0].rpartition(":")[2]
        arguments = ("--ids", "1", "--controllers", built.urls[0], "--set", f"http.port={port}")
        async with broker_process(*arguments) as refused:
            assert await refused.ended() == exit_codes.REFUSED
    assert refused.errors == [f"quorate: 127.0.0.1:{port} cannot be listened on: Address already in use\n"]
