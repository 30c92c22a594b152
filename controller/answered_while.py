"""Waiting for an answer only while it can be expected: a frozen process keeps its sockets open, and never answers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")


async def answered_while(
    ask: Callable[[], Awaitable[T]], is_worth_it: Callable[[], Awaitable[bool]], look_s: float
) -> T | None:
    """What ``ask`` gives; None, and it is given up, once a look finds that it is not worth waiting for any more.

    Args:
        look_s: before the first look, and between two of them.
    """
    async with asyncio.TaskGroup() as group:
        answer = group.create_task(_outcome(ask))
        while not answer.done():
            await asyncio.wait({answer}, timeout=look_s)
            if not answer.done() and not await is_worth_it():
                answer.cancel()
                return None
    value, error = answer.result()
    if error is not None:
        raise error
    return value


async def _outcome(ask: Callable[[], Awaitable[T]]) -> tuple[T | None, Exception | None]:
    """An error as a value: a task group would wrap it."""
    try:
        return await ask(), None
    except Exception as error:  # noqa: BLE001  # raised again by who waits
        return None, error
