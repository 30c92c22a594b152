"""The interpreter's cycle collector beside a large state.

A full collection looks at every container that is alive, and nothing of the process runs meanwhile: those of a state
of ten million partitions take a quarter of a second. A state has no cycles, and is freed when nobody refers to it any
more; of what is left in cycles nearly all is found young, by collections that look at the young only. So modules, a
state that was loaded, and what a full collection looked at for long, are set apart for good; and the longer one took,
the more has to come before the next. What was in use just then, as a connection, and is left in a cycle later is never
freed.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

#: Processor time in seconds of a full collection after which the next one comes as the interpreter would have it.
SHORT_S: Final = 0.002
#: Objects that have come, and collections of each generation before one of the next. Smaller steps than the
#: interpreter's own 700, 10 and 10: with a large state each may be a part of a map, and takes some microseconds.
_THRESHOLDS: Final = (200, 3, 100)
#: None comes while ten million partitions are created: requests that hold many objects for a moment count, too.
YOUNG_COLLECTIONS_MAX: Final = 10_000
#: From here on others notice it.
LONG_S: Final = 0.01
_FULL: Final = 2


class StateSparing:
    """A callback of the collector, ``gc.callbacks``."""

    def __init__(self, worked_s: Callable[[], float] = time.thread_time) -> None:
        """``worked_s``: processor time of the thread that collects."""
        self._worked_s = worked_s
        self._begun_s = 0.0

    def __call__(self, phase: str, info: dict[str, Any]) -> None:
        """A collection begins, or has ended."""
        if info["generation"] != _FULL:
            return
        if phase == "start":
            self._begun_s = self._worked_s()
            return
        took_s = self._worked_s() - self._begun_s
        if took_s >= LONG_S:
            gc.freeze()
        objects, young, least = _THRESHOLDS
        rest = round(least * took_s / SHORT_S)
        gc.set_threshold(objects, young, min(max(rest, least), YOUNG_COLLECTIONS_MAX))


@contextmanager
def state_spared() -> Iterator[None]:
    """For the whole life of a process that has nothing else to do: its modules are set apart at once."""
    before, sparing = gc.get_threshold(), StateSparing()
    gc.freeze()
    gc.set_threshold(*_THRESHOLDS[:_FULL], YOUNG_COLLECTIONS_MAX)
    gc.callbacks.append(sparing)
    try:
        yield
    finally:
        gc.callbacks.remove(sparing)
        gc.set_threshold(*before)


@contextmanager
def collector_resting() -> Iterator[None]:
    """While a state is made, which is many objects and no cycles of them: to look for some takes a tenth of the time.

    A process that spares its state never looks at what was made.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
        if any(isinstance(callback, StateSparing) for callback in gc.callbacks):
            gc.freeze()
    finally:
        gc.enable()
