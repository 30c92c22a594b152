"""An event loop whose time passes only while nothing else is to do: a wait takes no time, and always the same."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Awaitable, Callable
from typing import Any


class _Clock(selectors.DefaultSelector):
    """Where a selector would wait, time passes."""

    def __init__(self) -> None:
        super().__init__()
        self.now_s = 0.0

    def select(self, timeout: float | None = None) -> Any:
        ready = super().select(0)
        if not ready:
            assert timeout is not None, "it would wait for ever"
            self.now_s += timeout
        return ready


class _OwnTimeLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._clock = _Clock()
        super().__init__(self._clock)

    def time(self) -> float:
        return self._clock.now_s


async def passes(seconds: float) -> None:
    """Come back when so much of the loop's own time has passed: none of anybody's who waits for the test."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, _OwnTimeLoop), "it would take that long"
    passed = loop.create_future()
    loop.call_later(seconds, passed.set_result, None)
    await passed


def run_in_own_time(story: Callable[[], Awaitable[None]]) -> None:
    """Run a story without threads and sockets to its end."""

    async def run() -> None:
        await story()

    with asyncio.Runner(loop_factory=_OwnTimeLoop) as runner:
        runner.run(run())
