"""Turns on threads for reads that look at all topics, or all of something else: of one principal one at a time.

Threads are few, and others wait for them, too: checkpoints for brokers, digests, an administrator's status. So all
principals together have two of them, and whoever asks for more at once waits behind himself.

A thread goes on when nobody waits for it any more, so turns end with threads and not with those who wait.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import ExitStack
from contextvars import copy_context
from typing import Final, TypeVar
from weakref import WeakValueDictionary

#: Reads of principals at once. A process has five threads at least.
_AT_ONCE: Final = 2

T = TypeVar("T")


async def run_in_turn(work: Callable[[], T], *turns: asyncio.Lock | asyncio.Semaphore) -> T:
    """The result of ``work``, made on a thread when all ``turns`` have come, one behind the other.

    Who is cancelled while he waits for them gives back those that he has. Once the thread is under way they are given
    back when it has ended, whether or not anybody waits for it.
    """
    with ExitStack() as held:
        for turn in turns:
            await turn.acquire()
            held.callback(turn.release)
        ending = asyncio.get_running_loop().run_in_executor(None, copy_context().run, work)
        until_ended = held.pop_all()
    ending.add_done_callback(lambda _: until_ended.close())
    return await asyncio.shield(ending)


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
        return await run_in_turn(work, line, self._places)
