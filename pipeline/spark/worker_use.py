"""Use of resources by Spark's Python workers: processor time by activity, and the most memory that one has had.

Spark itself gathers it with each task's result. A task that is run again counts again: that time was spent too.
"""

from __future__ import annotations

import resource
import time
from typing import Final

from pyspark import AccumulatorParam
from pyspark.accumulators import Accumulator
from pyspark.sql import SparkSession

#: Beside the names of what was done: MB.
_MEMORY: Final = "mb"


class _Together(AccumulatorParam[dict[str, float]]):
    """Seconds are added up, of memory the most counts."""

    def zero(self, value: dict[str, float]) -> dict[str, float]:
        return {}

    def addInPlace(self, value1: dict[str, float], value2: dict[str, float]) -> dict[str, float]:  # noqa: N802
        for name, amount in value2.items():
            before = value1.get(name, 0.0)
            value1[name] = max(before, amount) if name == _MEMORY else before + amount
        return value1


class WorkerUse:
    """Of one job. Goes to the workers with what they run; read where the job was started."""

    def __init__(self, spark: SparkSession) -> None:
        self._gathered: Accumulator[dict[str, float]] = spark.sparkContext.accumulator({}, _Together())

    def clock(self) -> Clock:
        """In a worker: a clock that runs from now on."""
        return Clock(self._gathered)

    @property
    def processor_seconds(self) -> dict[str, float]:
        """Of all workers together, by what they did."""
        return {name: round(spent, 2) for name, spent in self._gathered.value.items() if name != _MEMORY}

    @property
    def mb_max(self) -> int:
        """Of the worker that took most."""
        return int(self._gathered.value.get(_MEMORY, 0))


class Clock:
    """Processor time of one worker."""

    def __init__(self, gathered: Accumulator[dict[str, float]]) -> None:
        self._gathered = gathered
        self._last = time.process_time()

    def stop(self, name: str) -> None:
        """Everything since the last stop was for this."""
        now = time.process_time()
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        self._gathered.add({name: now - self._last, _MEMORY: memory})
        self._last = now
