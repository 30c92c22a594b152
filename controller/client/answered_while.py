"""Waiting for an answer only while it can be expected: a frozen process keeps its sockets open, and never answers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")


async def answered_while(
    ask: Callable[[], Awaitable[T]], is_worth_it: Callable[[], Awaitable[bool]], look_s: float
) -> T | None:
    """The answer that ``ask`` gives; None, and it is given up, once a look finds that it is not worth waiting for any
    more.

    Args:
        is_worth_it: may take its time: an answer that comes meanwhile is taken.
        look_s: before the first look, and between two of them.
    """
    async with asyncio.TaskGroup() as group:
        answer = group.create_task(_outcome(ask))
        await asyncio.wait({answer}, timeout=look_s)
        if not answer.done():
            watch = group.create_task(_not_any_more(is_worth_it, look_s))
            await asyncio.wait({answer, watch}, return_when=asyncio.FIRST_COMPLETED)
            watch.cancel()
        if not answer.done():
            answer.cancel()
            return None
    value, error = answer.result()
    if error is not None:
        raise error
    return value


async def _not_any_more(is_worth_it: Callable[[], Awaitable[bool]], look_s: float) -> None:
    """Look, and look again, until it is not."""
    while await is_worth_it():  # noqa: ASYNC110 - nobody is told when it is not
        await asyncio.sleep(look_s)


async def _outcome(ask: Callable[[], Awaitable[T]]) -> tuple[T | None, Exception | None]:
    """An error as a value: a task group would wrap it."""
    try:
        return await ask(), None
    except Exception as error:  # noqa: BLE001  # raised again by who waits
        return None, error
