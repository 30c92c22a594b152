"""Waiting for a condition, the one place where tests sleep: never for a time that is hoped to be long enough."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
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


@contextmanager
def within(seconds: float, what: str) -> Iterator[None]:
    """Fail with `what` where the block takes longer, but for the time in which its threads waited for a processor.

    What takes a second on a quiet machine takes more on one that does ten things at once, and that more is told by
    Linux: so a bound on how soon something happens in this process holds on both, and is no looser on the quiet one.
    """
    waited, begun = _waited_ns(), time.monotonic()
    yield
    took = time.monotonic() - begun
    hindered = sum(now - waited.get(thread, 0) for thread, now in _waited_ns().items()) / 1e9
    assert took - hindered < seconds, f"not within {seconds} s but {took:.2f} s, {hindered:.2f} s hindered: {what}"


def _waited_ns() -> dict[str, int]:
    """For how long each thread of this process was ready to run and others had the processors."""
    found = {}
    for thread in Path("/proc/self/task").iterdir():
        with suppress(OSError):  # it may end while it is looked at
            found[thread.name] = int((thread / "schedstat").read_text("ascii").split()[1])
    return found
