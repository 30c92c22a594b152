"""The end of a controller process when it is told to stop, and its tasks besides serving."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from typing import Final

from quorate.controller.engine.faults import FaultHandler
from quorate.metadata_log.service_manager import tell_service_manager

#: Exit codes of processes that a signal ended, by convention: this and the signal's number.
_BY_SIGNAL: Final = 128


class Ending:
    """The first SIGTERM or SIGINT asks for an orderly end, the second ends the process at once.

    At once is safe: what was promised is durable. It only takes the others longer to notice.
    """

    def __init__(self) -> None:
        self.is_asked_for = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._told, number)

    def _told(self, number: int) -> None:
        if not self.is_asked_for.is_set():
            self.is_asked_for.set()
            tell_service_manager("STOPPING=1")
            return
        sys.stderr.write("quorate: told to end a second time: ending without waiting for anything\n")
        sys.stderr.flush()
        os._exit(_BY_SIGNAL + number)


async def in_background(what: str, work: Callable[[], Awaitable[None]], faults: FaultHandler) -> None:
    """Do ``work`` apart from all else: a typed error is its own to handle, any other ends the process.

    It is called here: a task that is cancelled before its first step leaves no coroutine that nobody awaits.
    """
    try:
        await work()
    except Exception as error:  # noqa: BLE001  # nobody else would hear of it: a task keeps its error to itself
        faults.fatal(what, error)
