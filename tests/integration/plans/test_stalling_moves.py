"""What moves wait for is said beside them: a broker that has not caught up, or is not active."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from quorate.controller.client.client import ControllerClient
from quorate.scripts.cli.moves import waves
from quorate.scripts.cli.moves.waves import MoveRun
from tests.integration.commands import Terminal, terminal
from tests.waiting import eventually


@pytest.fixture
async def user() -> AsyncIterator[Terminal]:
    """Two partitions; nobody copies anything."""
    async with terminal({11: "a", 12: "b", 13: "a", 14: "b"}) as typed:
        await typed.run("topics", "create", "orders", "--replica-assignment", "11:12,12:11")
        yield typed


async def test_run_says_what_stalls_and_goes_on_after_a_refusal(
    user: Terminal, capsys: pytest.CaptureFixture[str]
) -> None:
    run = MoveRun({("orders", 0): [13, 12], ("orders", 1): [77]}, stall_s=0.0)
    said: list[str] = []

    async def is_told() -> bool:
        said.append(capsys.readouterr().err)
        return "quorate: orders-0 waits for broker 13, which has not caught up\n" in "".join(said)

    async with ControllerClient(user.stage.urls) as client, asyncio.TaskGroup() as group:
        running = group.create_task(run.carry_out(client))
        await eventually(is_told, "the stall is told")
        assert (run.waiting, run.under_way, running.done()) == ({}, {("orders", 0)}, False)
        await user.catch_up("orders-0")
        await running
    assert (run.ended, run.under_way) == (1, set())
    assert run.refused.keys() == {("orders", 1)}
    assert "INVALID_REPLICA_ASSIGNMENT" in run.refused["orders", 1]


async def test_broker_that_is_not_active_is_named_at_once(
    user: Terminal, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another one has time to catch up."""
    monkeypatch.setattr(waves, "_STALL_BY_BROKER_S", 0.0)
    fence = {"broker_id": 13, "broker_epoch": user.epochs[13], "current_metadata_offset": 2**60, "want_fence": True}
    assert (await user.stage.ask(1, "POST", "/v1/broker-rpc/heartbeat", fence))[1]["is_fenced"]
    run = MoveRun({("orders", 0): [13, 12], ("orders", 1): [14, 12]})
    said: list[str] = []

    async def is_told() -> bool:
        said.append(capsys.readouterr().err)
        return "quorate: orders-0 waits for broker 13, which is fenced\n" in "".join(said)

    async with ControllerClient(user.stage.urls) as client:
        running = asyncio.create_task(run.carry_out(client))
        await eventually(is_told, "the fenced broker is named")
        running.cancel()
        await asyncio.wait({running})
    assert "broker 14" not in "".join(said)
