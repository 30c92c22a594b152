"""Waiting for a condition, the one place where tests sleep: never for a time that is hoped to be long enough."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")

#: Between two looks. Short beside what is waited for (an election, a process start), long beside a look.
POLL_SECONDS = 0.01
#: For what must come anyway: on a loaded machine it comes late, and where it comes soon it costs nothing.
PATIENCE_S = 60.0


async def eventually(look: Callable[[], Awaitable[T]], what: str, deadline_s: float = PATIENCE_S) -> T:
    """Look until the result is true and return it; fail with `what` and the last result after `deadline_s`."""
    end = time.monotonic() + deadline_s
    while not (seen := await look()):
        assert time.monotonic() < end, f"not within {deadline_s} s: {what}; last seen: {seen!r}"
        await asyncio.sleep(POLL_SECONDS)
    return seen


def eventually_sync(look: Callable[[], T], what: str, deadline_s: float = PATIENCE_S) -> T:
    """`eventually` for tests without a loop, as those that watch other processes."""
    end = time.monotonic() + deadline_s
    while not (seen := look()):
        assert time.monotonic() < end, f"not within {deadline_s} s: {what}; last seen: {seen!r}"
        time.sleep(POLL_SECONDS)
    return seen
