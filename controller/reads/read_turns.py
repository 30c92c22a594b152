"""Turns on threads for reads that look at all topics, or all of something else: of one principal one at a time.

Threads are few, and others wait for them, too: checkpoints for brokers, digests, an administrator's status. So all
principals together have two of them, and whoever asks for more at once waits behind himself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, TypeVar
from weakref import WeakValueDictionary

#: Reads of principals at once. A process has five threads at least.
_AT_ONCE: Final = 2

T = TypeVar("T")


class ReadTurns:
    """Of one controller."""

    def __init__(self) -> None:
        self._places = asyncio.Semaphore(_AT_ONCE)
        #: Of whom any is under way or waits: each has one at most that waits for ``_places``.
        self._lines: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def run(self, principal: str | None, work: Callable[[], T]) -> T:
        """The result of ``work``, made on a thread. ``principal``: None: one who waits for no turn."""
        if principal is None:
            return await asyncio.to_thread(work)
        line = self._lines.get(principal)
        if line is None:
            line = self._lines[principal] = asyncio.Lock()
        async with line, self._places:
            return await asyncio.to_thread(work)
