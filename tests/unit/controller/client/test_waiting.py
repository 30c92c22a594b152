"""Waiting for an answer: it is asked again until it is right, and no longer than was said."""

import asyncio

import pytest

from quorate.controller.client.waiting import WaitTimeout, wait_until
from quorate.metadata_log.errors import NotController, QuorateError


async def test_wait_ends_with_the_first_answer_that_is_right() -> None:
    asked: list[int] = []

    async def read() -> int:
        asked.append(len(asked))
        return asked[-1]

    assert await wait_until(read, lambda number: number == 2, "two", timeout_ms=10_000) == 2
    assert asked == [0, 1, 2]


async def test_wait_for_what_does_not_come_ends_in_time_and_says_what_it_was() -> None:
    async def read() -> int:
        return 0

    with pytest.raises(WaitTimeout, match=r"^waited 30 ms for orders to move$") as raised:
        await wait_until(read, bool, "orders to move", timeout_ms=30)
    assert isinstance(raised.value, QuorateError)


async def test_wait_for_an_answer_that_never_comes_ends_in_time() -> None:
    with pytest.raises(WaitTimeout):
        await wait_until(asyncio.Event().wait, bool, "an answer", timeout_ms=30)


@pytest.mark.parametrize("error", [NotController(None), TimeoutError("a time-out of its own")])
async def test_error_of_the_question_ends_the_waiting(error: Exception) -> None:
    async def read() -> int:
        raise error

    with pytest.raises(type(error)) as raised:
        await wait_until(read, bool, "an answer", timeout_ms=10_000)
    assert raised.value is error
