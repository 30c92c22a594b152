"""The machine as a controller process uses it: randomness, new ids, and an exit when it must not go on."""

from __future__ import annotations

import asyncio
import os
import sys
import uuid
from typing import Any, Final

import numpy as np
import structlog
from numpy.typing import NDArray

from quorate.controller.engine.counters import Counters
from quorate.metadata_log.checkpoints.checkpoint_files import CheckpointId, checkpoint_name
from quorate.metadata_log.errors import ApiError, StorageError
from quorate.metadata_log.ids import Uuid, is_reserved_uuid, uuid_text
from quorate.metadata_log.tracebacks import traceback_text

log = structlog.get_logger()

#: Exit code of a process that a fault ended: EX_SOFTWARE of sysexits.h, and no command's.
FAULT_EXIT: Final = 70


class OsRandom:
    """``controller.decisions.random_source.RandomSource``, seeded by the operating system."""

    def __init__(self) -> None:
        self._generator = np.random.default_rng()

    def next_int(self, bound: int) -> int:
        """A number from 0 to ``bound`` (exclusive)."""
        return int(self._generator.random() * bound)

    def next_ints(self, bounds: NDArray[np.int64]) -> NDArray[np.int64]:
        """int64[n]: ``next_int`` of each bound."""
        # Uniform to 53 bits. A bulk request draws some thousand numbers: one by one they would be half of its cost.
        return (self._generator.random(len(bounds)) * bounds).astype(np.int64)


def new_uuid() -> Uuid:
    """A random id that Kafka does not keep for itself, and that no command takes for an option."""
    while is_reserved_uuid(made := uuid.uuid4().bytes) or uuid_text(made).startswith("-"):
        continue
    return made


class ProcessFaults:
    """``controller.engine.faults.FaultHandler``: counted and logged; a fatal one ends the process at once."""

    def __init__(self, counters: Counters) -> None:
        self.counters = counters
        self._last_fault: list[str] = []
        self._alarms: dict[str, str] = {}

    @property
    def sentences(self) -> list[str]:
        """The faults of now, a sentence each."""
        return [*self._last_fault, *self._alarms.values()]

    def fault(self, what: str, error: Exception) -> None:
        """Something is wrong, and the process goes on."""
        self.counters.metadata_errors += 1
        self._last_fault = [f"{what}: {error}"]
        log.error("fault", what=what, error=str(error), exception=traceback_text(error))

    def alarm(self, what: str, sentence: str | None) -> None:
        """Something is wrong in the cluster, until None takes it back."""
        if sentence is None:
            self._alarms.pop(what, None)
        else:
            self._alarms[what] = f"{what}: {sentence}"

    def report_checkpoint(self, end_offset: int, took_ms: float, error: StorageError | None) -> None:
        """``background.checkpoint_writer.Report``: one that cannot be written is an alarm until the next is."""
        if error is None:
            log.info("checkpoint.written", end_offset=end_offset, took_ms=round(took_ms))
            self.alarm("checkpoint", None)
        else:
            self.counters.checkpoints_failed += 1
            log.error("checkpoint.failed", end_offset=end_offset, error=str(error))
            self.alarm("checkpoint", f"none can be written, and the log is not cut meanwhile: {error}")

    def rotted(self, checkpoint: CheckpointId) -> None:
        """A checkpoint was found damaged, and set aside."""
        self.fault(checkpoint_name(checkpoint), StorageError("has rotted on this disk and was set aside"))

    def fatal(self, what: str, error: BaseException) -> None:
        """The process must not go on. Nothing is flushed or handed over: others elect somebody else."""
        try:
            log.error("fault.fatal", what=what, error=str(error), exception=traceback_text(error))
            sys.stderr.write(f"quorate: {what}: {error or type(error).__name__}\n")
            sys.stderr.flush()
        finally:
            # Also where the log's own disk is full.
            os._exit(FAULT_EXIT)

    def unhandled(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """The event loop's exception handler: what nobody caught of work that ends with a connection or a request."""
        error, message = context.get("exception"), context["message"]
        if isinstance(error, Exception) and not isinstance(error, ApiError | OSError):
            self.fault(message, error)
        else:
            log.warning("loop.unhandled", message=message, error=str(error))
