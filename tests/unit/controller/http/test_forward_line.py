"""The line of what a standby passes on: who would not have his turn in time is told so at once, and when to come."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack

import pytest

from quorate.controller.http.forward_line import ForwardedKind, ForwardLine
from quorate.controller.http.routes.table import ROUTES
from quorate.metadata_log.errors import Overloaded
from tests.unit.own_time import passes, run_in_own_time

AT_ONCE, WAITING_MAX = 4, 100


async def worked_off(line: ForwardLine, seconds: float, done: list[float], patience_s: float = 30.0) -> None:
    async with line.place(patience_s):
        await passes(seconds)
    done.append(asyncio.get_running_loop().time())


async def _who_would_come_too_late() -> None:
    line = ForwardLine(AT_ONCE, WAITING_MAX)
    done: list[float] = []
    for _ in range(3):
        await asyncio.gather(*(worked_off(line, 0.1, done) for _ in range(AT_ONCE)))
    clock = asyncio.get_running_loop().time
    begun = clock()
    async with asyncio.TaskGroup() as group:
        for _ in range(AT_ONCE + 40):
            group.create_task(worked_off(line, 0.1, done))
        await passes(0.01)
        with pytest.raises(Overloaded, match="this one's turn in 1000 ms, and its time allows for 900") as refused:
            await worked_off(line, 0.1, done, patience_s=0.9)
        assert clock() - begun == pytest.approx(0.01), "he was told at once"
        assert refused.value.details["retry_after_ms"] in (1_025, 1_026)
        group.create_task(worked_off(line, 0.1, done, patience_s=1.2))
    assert done[-1] - begun == pytest.approx(1.2, abs=0.02)


async def _line_that_is_full() -> None:
    line = ForwardLine(1, 2)
    done: list[float] = []
    async with AsyncExitStack() as held:
        await held.enter_async_context(line.place(1.0))
        waiting = [asyncio.create_task(worked_off(line, 0.0, done)) for _ in range(2)]
        await asyncio.sleep(0)
        with pytest.raises(Overloaded, match="2, and no more may"):
            await worked_off(line, 0.0, done)
    await asyncio.gather(*waiting)
    assert len(done) == 2


async def _who_waited_in_vain() -> None:
    line = ForwardLine(1, 2)
    async with line.place(1.0):
        with pytest.raises(Overloaded, match="after 500 ms it was not this one's turn"):
            async with line.place(0.5):
                pytest.fail("there was no place")
    async with line.place(0.0):
        pass  # it is given back


@pytest.mark.parametrize("story", [_who_would_come_too_late, _line_that_is_full, _who_waited_in_vain])
def test_forward_line_refuses_whom_it_cannot_serve_in_time_and_gives_back_every_place(
    story: Callable[[], Awaitable[None]],
) -> None:
    run_in_own_time(story)


def test_requests_of_nodes_and_views_wait_for_no_others() -> None:
    kinds = {(route.method, route.path): ForwardedKind.of(route) for route in ROUTES}
    assert kinds["POST", "/v1/broker-rpc/heartbeat"] is ForwardedKind.NODES
    assert kinds["POST", "/v1/controller-rpc/register"] is ForwardedKind.NODES
    assert kinds["GET", "/v1/status"] is ForwardedKind.VIEWS
    assert kinds["POST", "/v1/topics"] is kinds["GET", "/v1/topics"] is ForwardedKind.OTHERS
