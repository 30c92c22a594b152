"""Events that take long, in the log: each slow one, and a summary now and then (Kafka's ``EventPerformanceMonitor``).

How long all of them took is in the metrics; this is for whoever reads the log and asks why a minute was slow.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import structlog

log = structlog.get_logger()

#: Kafka's ``controller.performance.always.log.threshold.ms``.
SLOW_MS: Final = 2_000.0
#: Kafka's ``controller.performance.sample.period.ms``.
PERIOD_MS: Final = 60_000.0


class EventPerformance:
    """``note`` fits ``EventQueue.observe``. Owned by the loop thread. A summary comes with an event, after its time."""

    def __init__(self, now_ms: Callable[[], float], also: Callable[[str, float, float], None] | None) -> None:
        """``now_ms``: monotonic. ``also``: is told of every event, too."""
        self._now_ms = now_ms
        self._also = also
        self._begun_ms = now_ms()
        self._count = 0
        self._total_ms = 0.0
        self._slowest: tuple[float, str] = (0.0, "")

    def note(self, event: str, queue_ms: float, processing_ms: float) -> None:
        """An event has run; of a pass over many partitions one slice."""
        if self._also is not None:
            self._also(event, queue_ms, processing_ms)
        self._count += 1
        self._total_ms += processing_ms
        if processing_ms > self._slowest[0]:
            self._slowest = processing_ms, event
        if processing_ms >= SLOW_MS:
            log.error("event.slow", name=event, took_ms=round(processing_ms), waited_ms=round(queue_ms))
        period_ms = self._now_ms() - self._begun_ms
        if period_ms >= PERIOD_MS:
            self._tell(period_ms)

    def _tell(self, period_ms: float) -> None:
        slowest_ms, slowest = self._slowest
        log.info(
            "events.summary",
            period_ms=round(period_ms),
            count=self._count,
            average_ms=round(self._total_ms / self._count, 2),
            slowest=slowest,
            slowest_ms=round(slowest_ms, 2),
        )
        self._begun_ms += period_ms
        self._count, self._total_ms, self._slowest = 0, 0.0, (0.0, "")
