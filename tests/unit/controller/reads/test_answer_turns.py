"""Turns for rehearsals: one at a time, so many in line, and none that nobody waits for. The test moves the clock."""

from __future__ import annotations

import asyncio
import threading

import pytest

from quorate.controller.reads.answer_turns import ANSWERS_MAX, ANSWERS_OF_ONE_MAX, AnswerTurns, Check
from quorate.metadata_log.errors import ApiError, ErrorCode, Overloaded
from tests.waiting import eventually

EVE = "User:eve"


class Stage:
    """Turns, and work that goes on until it is let go."""

    def __init__(self) -> None:
        self.now_ms = 0.0
        self.turns = AnswerTurns(lambda: self.now_ms)
        self.may_end = threading.Event()
        self.begun = 0
        self.ended: list[Exception | None] = []

    def work(self, check: Check) -> str:
        self.begun += 1
        while not self.may_end.wait(0.001):
            try:
                check()
            except ApiError as error:
                self.ended.append(error)
                raise
        self.ended.append(None)
        return "done"

    def ask(self, principal: str | None = EVE) -> asyncio.Task[str]:
        return asyncio.create_task(self.turns.answer(principal, 1_000, self.work))

    async def has_begun(self) -> bool:
        return self.begun > 0

    async def has_ended(self) -> bool:
        return bool(self.ended)


async def test_answers_are_made_one_at_a_time_and_a_principal_has_a_share_of_the_line() -> None:
    stage = Stage()
    asked = [stage.ask() for _ in range(ANSWERS_OF_ONE_MAX)]
    await eventually(stage.has_begun, "the first one is under way")
    with pytest.raises(Overloaded, match="4 answers for User:eve wait to be rehearsed"):
        await stage.ask()
    asked += [stage.ask(None) for _ in range(ANSWERS_MAX - ANSWERS_OF_ONE_MAX)]
    await asyncio.sleep(0)
    with pytest.raises(Overloaded, match="16 answers wait to be rehearsed, 16 is the most"):
        await stage.ask("User:bo")
    assert stage.begun == 1
    stage.may_end.set()
    assert set(await asyncio.gather(*asked)) == {"done"}
    assert await stage.ask() == "done"


async def test_answer_that_takes_too_long_is_given_up_where_it_is_and_those_behind_it_are_made() -> None:
    stage = Stage()
    first = stage.ask()
    await eventually(stage.has_begun, "the first one is under way")
    stage.now_ms = 1_001.0
    with pytest.raises(ApiError, match="was not rehearsed within 1000 ms: ask about less") as late:
        await first
    assert late.value.code is ErrorCode.REQUEST_TIMED_OUT
    stage.may_end.set()
    assert await stage.ask() == "done"


async def test_work_ends_when_nobody_waits_for_it_any_more() -> None:
    stage = Stage()
    first = stage.ask()
    await eventually(stage.has_begun, "the first one is under way")
    first.cancel()
    await eventually(stage.has_ended, "its thread is free")
    assert isinstance(stage.ended[0], ApiError)
    stage.may_end.set()
    assert await stage.ask() == "done"
