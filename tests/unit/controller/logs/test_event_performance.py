"""Slow events in the log, and the summary of a minute."""

from __future__ import annotations

from structlog.testing import capture_logs

from quorate.controller.logs.event_performance import PERIOD_MS, SLOW_MS, EventPerformance


class Noted:
    """A clock, and what is told to others too."""

    def __init__(self) -> None:
        self.now_ms = 1_000.0
        self.also: list[tuple[str, float, float]] = []
        self.performance = EventPerformance(lambda: self.now_ms, lambda *event: self.also.append(event))

    def note(self, event: str, took_ms: float, at_ms: float = 0.0) -> list[dict[str, object]]:
        self.now_ms = max(self.now_ms, at_ms)
        with capture_logs() as lines:
            self.performance.note(event, 3.0, took_ms)
        return [dict(line) for line in lines]


def test_every_slow_event_is_told_at_once_and_all_are_counted() -> None:
    noted = Noted()
    assert noted.note("create_topics", SLOW_MS - 1) == []
    slow = {"event": "event.slow", "log_level": "error", "name": "elect_leaders", "waited_ms": 3}
    assert noted.note("elect_leaders", SLOW_MS + 500) == [{**slow, "took_ms": 2_500}]
    assert noted.note("elect_leaders", SLOW_MS) == [{**slow, "took_ms": 2_000}]
    assert [name for name, *_ in noted.also] == ["create_topics", "elect_leaders", "elect_leaders"]


def test_minute_is_summed_up_and_the_next_one_begins() -> None:
    noted = Noted()
    noted.note("no_op", 1.0)
    noted.note("create_topics", 4.0)
    assert noted.note("no_op", 1.0, at_ms=1_000 + PERIOD_MS - 1) == []
    assert noted.note("no_op", 1.0, at_ms=1_000 + PERIOD_MS + 250) == [
        {
            "event": "events.summary", "log_level": "info", "period_ms": 60_250, "count": 4, "average_ms": 1.75,
            "slowest": "create_topics", "slowest_ms": 4.0,
        }
    ]  # fmt: skip
    (next_one,) = noted.note("alter_partition", 2.0, at_ms=1_250 + 2 * PERIOD_MS)
    assert (next_one["count"], next_one["slowest"], next_one["period_ms"]) == (1, "alter_partition", 60_000)
