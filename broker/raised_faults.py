"""Faults of what runs beside a block of somebody else's program: they end the block, and are raised by it."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Self


class RaisedFaults:
    """A block that ends when a fault is noted, wherever that is, and raises it: by a cancellation, as time-outs do.

    A fault that is noted while the task that entered the block is gone (a fixture's, say) is raised at the end of it.
    """

    def __init__(self) -> None:
        self._fault: Exception | None = None
        self._owner: asyncio.Task[object] | None = None
        self._cancelled_before = 0
        self._has_cancelled = False

    def note(self, fault: Exception) -> None:
        """The first one counts."""
        if self._fault is None:
            self._fault = fault
            if self._owner is not None:
                self._has_cancelled = self._owner.cancel()

    def check(self) -> None:
        """Raise what was noted."""
        if self._fault is not None:
            raise self._fault

    async def __aenter__(self) -> Self:
        self._owner = asyncio.current_task()
        assert self._owner is not None, "a coroutine runs in a task"
        self._cancelled_before = self._owner.cancelling()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        owner, self._owner = self._owner, None
        is_from_outside = isinstance(error, asyncio.CancelledError)
        if self._has_cancelled and owner is asyncio.current_task() and owner is not None:
            if not is_from_outside:
                await _take_cancellation()
            is_from_outside = owner.uncancel() > self._cancelled_before
        if self._fault is None or is_from_outside or not isinstance(error, Exception | asyncio.CancelledError | None):
            return
        if isinstance(error, Exception):
            self._fault.add_note(f"meanwhile the block raised {error!r}")
        raise self._fault


async def _take_cancellation() -> None:
    """A cancellation that was asked for is delivered at the next wait: here, and not in what follows."""
    try:
        await asyncio.sleep(0)
    except asyncio.CancelledError:
        return
