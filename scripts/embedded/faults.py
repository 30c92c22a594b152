"""A controller that must not go on where there is no process of its own to end: it is stopped, and the program told."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import TracebackType
from typing import Self

import structlog

from quorate.controller.engine.counters import Counters
from quorate.controller.engine.environment import ProcessFaults
from quorate.metadata_log.errors import QuorateError

log = structlog.get_logger()


class ControllerFault(QuorateError):
    """A controller met a fault that would have ended its process, and was stopped. ``__cause__``: what it met."""


class EmbeddedFaults(ProcessFaults):
    """``ProcessFaults`` without a process: the first fatal one is handed on, those that follow from it are logged."""

    def __init__(self, node_id: int, tell: Callable[[ControllerFault], None]) -> None:
        """``tell`` must stop the controller."""
        super().__init__(Counters())
        self._node_id = node_id
        self._tell = tell
        self._is_told = False

    def fatal(self, what: str, error: BaseException) -> None:
        """The controller must not go on."""
        log.error("fault.fatal", what=what, error=str(error), exc_info=error)
        if not self._is_told:
            self._is_told = True
            fault = ControllerFault(f"controller {self._node_id} was stopped: {what}: {error or type(error).__name__}")
            fault.__cause__ = error
            self._tell(fault)


class RaisedFaults:
    """A block that ends when a fault is noted, wherever that is, and raises it: by a cancellation, as time-outs do.

    A fault that is noted while the task that entered the block is gone (a fixture's, say) is raised at the end of it.
    """

    def __init__(self) -> None:
        self._fault: ControllerFault | None = None
        self._owner: asyncio.Task[object] | None = None
        self._cancelled_before = 0
        self._has_cancelled = False

    def note(self, fault: ControllerFault) -> None:
        """The first one counts."""
        if self._fault is None:
            self._fault = fault
            if self._owner is not None:
                self._has_cancelled = self._owner.cancel()

    def check(self) -> None:
        """Raise what was noted.

        Raises:
            ControllerFault.
        """
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
