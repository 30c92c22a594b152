"""Waiting until controllers answer what is waited for. Who has much to wait for follows the metadata instead."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from quorate.metadata_log.errors import QuorateError

T = TypeVar("T")

#: Between two questions: short at first, for most is done soon; a controller should not notice the long waits.
_PAUSE_FIRST_S: Final = 0.02
_PAUSE_S_MAX: Final = 0.5


class WaitTimeout(QuorateError, TimeoutError):
    """The time was up before the awaited state had come. Nothing was changed by the waiting."""


async def wait_until(read: Callable[[], Awaitable[T]], is_true: Callable[[T], bool], what: str, timeout_ms: float) -> T:
    """Ask again and again until an answer is as it should be; that answer.

    Args:
        read: asks; what it raises ends the waiting (a client has by then tried for its own time).
        what: ends the sentence "waited ... for", in the error.

    Raises:
        WaitTimeout: no such answer within ``timeout_ms``.
    """
    limit = asyncio.timeout(timeout_ms / 1000)
    pause = _PAUSE_FIRST_S
    try:
        async with limit:
            while not is_true(answer := await read()):
                await asyncio.sleep(pause)
                pause = min(2 * pause, _PAUSE_S_MAX)
            return answer
    except TimeoutError as error:
        if not limit.expired():
            raise
        raise WaitTimeout(f"waited {timeout_ms:g} ms for {what}") from error
