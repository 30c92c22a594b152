"""Watching over a running cluster: a process that ends by itself is told of, and started again where that is wanted."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from quorate.scripts.cluster.local import LocalCluster
from quorate.scripts.cluster.process import ManagedProcess

_LOOK_S: Final = 0.1
#: From the end of a process to its next start; doubled each time that it ends again soon.
_FIRST_WAIT_S: Final = 1.0
_LONGEST_WAIT_S: Final = 30.0
#: A process that has run for so long did not end because of how it was started.
_STEADY_S: Final = 60.0


@dataclass(slots=True)
class _Restart:
    """Of one process that ended by itself."""

    #: From its end to its start.
    wait_s: float
    due_s: float
    is_done: bool = False


class Supervisor:
    """``run`` watches until it is cancelled. Moments are monotonic seconds."""

    def __init__(self, cluster: LocalCluster, say: Callable[[str], None], is_lent: Callable[[], bool]) -> None:
        """``is_lent``: while it is, whoever borrowed the processes looks after them."""
        self._cluster = cluster
        self._say = say
        self._is_lent = is_lent
        self._restarts: dict[ManagedProcess, _Restart] = {}

    async def run(self) -> None:
        """Watch.

        Raises:
            ProcessFailed: no majority of the controllers is left, and none is started again.
        """
        while True:
            if not self._is_lent():
                self._cluster.require_there()
                if self._cluster.restarts:
                    for process in self._cluster.processes:
                        await self._look_after(process, time.monotonic())
            await asyncio.sleep(_LOOK_S)

    async def _look_after(self, process: ManagedProcess, now_s: float) -> None:
        planned = self._restarts.get(process)
        if process.has_failed:
            if planned is None or planned.is_done:
                wait_s = _FIRST_WAIT_S if planned is None else min(2 * planned.wait_s, _LONGEST_WAIT_S)
                self._restarts[process] = _Restart(wait_s, now_s + wait_s)
                self._say(f"{process.name} is started again in {wait_s:.0f} s")
            elif planned.due_s <= now_s:
                planned.is_done = True
                await process.start()
        elif planned is not None:
            planned.is_done = True
            if now_s - planned.due_s > _STEADY_S:
                del self._restarts[process]
