"""Tasks of one part of a worker or a watcher, in somebody else's program: none of them goes missing.

A task group takes a cancelled task for one that has ended well. In a program that cancels tasks by itself, all of
them say, a broker would go on without its heartbeats then, and nobody would know why it was fenced.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import AsyncExitStack
from functools import partial
from types import TracebackType
from typing import Any, Self

from quorate.broker.raised_faults import RaisedFaults
from quorate.metadata_log.errors import QuorateError


class TaskCancelled(QuorateError):
    """Something else in the program has cancelled a task that was not its own."""


class OwnTasks:
    """An ``asyncio.TaskGroup`` that raises ``TaskCancelled`` where one of its tasks was cancelled by anybody but the
    group, its owner's cancellation, or ``cancel``.
    """

    def __init__(self) -> None:
        self._group = asyncio.TaskGroup()
        self._faults = RaisedFaults()
        self._both = AsyncExitStack()
        self._owner: asyncio.Task[Any] | None = None
        #: Those whose end was asked for here.
        self._ended: set[asyncio.Task[None]] = set()
        self._is_ending = False

    async def __aenter__(self) -> Self:
        self._owner = asyncio.current_task()
        await self._both.enter_async_context(self._faults)
        await self._both.enter_async_context(self._group)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_ending = self._is_ending or error is not None
        try:
            await self._both.__aexit__(kind, error, trace)
        except BaseExceptionGroup as group:
            cancelled, others = group.split(TaskCancelled)
            if cancelled is None or others is not None:
                raise
            raise cancelled.exceptions[0] from None

    def create_task(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        """Begin a task. ``name``: the sentence about its cancellation begins with it."""
        task = self._group.create_task(work, name=name)
        task.add_done_callback(partial(self._look, name))
        return task

    def cancel(self, task: asyncio.Task[None]) -> None:
        """Let one of its tasks end."""
        self._ended.add(task)
        task.cancel()

    def _look(self, name: str, task: asyncio.Task[None]) -> None:
        """A task is over. One that was cancelled before its first line has said nothing of it by itself."""
        is_meant = self._is_ending or task in self._ended or (self._owner is not None and self._owner.cancelling() > 0)
        self._ended.discard(task)
        if not task.cancelled():
            self._is_ending = self._is_ending or task.exception() is not None
        elif not is_meant:
            self._faults.note(TaskCancelled(f"{name} was cancelled"))
