"""A controller that must not go on where there is no process of its own to end: it is stopped, and the program told."""

from __future__ import annotations

from collections.abc import Callable

import structlog

from quorate.controller.engine.counters import Counters
from quorate.controller.engine.environment import ProcessFaults
from quorate.metadata_log.errors import QuorateError
from quorate.metadata_log.tracebacks import traceback_text

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
        log.error("fault.fatal", what=what, error=str(error), exception=traceback_text(error))
        if not self._is_told:
            self._is_told = True
            fault = ControllerFault(f"controller {self._node_id} was stopped: {what}: {error or type(error).__name__}")
            fault.__cause__ = error
            self._tell(fault)
