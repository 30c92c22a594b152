"""Durations in words, whatever the clocks of a log said."""

from __future__ import annotations

from datetime import timedelta

import pytest

from quorate.pipeline.incidents.telling.report import report
from quorate.snapshots.incidents.findings import HistorySpan, IncidentFindings, Row, at
from quorate.snapshots.incidents.serial.runs import ConditionRun, RunMoment
from quorate.snapshots.incidents.serial.search import SerialFindings
from quorate.snapshots.incidents.serial.versions import PartitionHistory
from quorate.snapshots.incidents.telling.incident import in_words, lasting
from quorate.snapshots.incidents.telling.story import incidents
from quorate.snapshots.incidents.telling.timeline import timeline
from quorate.snapshots.incidents.thresholds import Thresholds

SET_BACK = "a time that nobody knows (the clock was set back)"
#: A partition that lost its leader and got it back a day before, by the clock.
DAY_MS = 86_364_800
ROW: Row = {
    "cluster_id": "c",
    "cause": "broker_crash",
    "broker": 11,
    "cause_offset": 7,
    "ended_by": "led_again",
    "partitions": 1,
    "from_offset": 7,
    "from_time": at(DAY_MS * 1000),
    "to_offset": 9,
    "to_time": at(0),
    "total_ms": -DAY_MS,
    "longest_ms": -DAY_MS,
    "first_partition": "orders-0",
}
#: Milliseconds from now to the calendar's end, of some thousands of partitions.
BEYOND = 5_000 * 251_000_000_000_000


def found(**changes: object) -> IncidentFindings:
    span = HistorySpan("c", 0, 9, at(0), at(DAY_MS * 1000), 1)
    return IncidentFindings([span], [], [], [], [], leaderless=[ROW | changes])


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [(-1, SET_BACK), (0, "0.0 s"), (119_999, "120.0 s"), (120_000, "2.0 min"), (DAY_MS, "24.0 h")],
)
def test_duration_in_words(milliseconds: int, text: str) -> None:
    assert in_words(milliseconds) == lasting(timedelta(milliseconds=milliseconds)) == text


def test_clock_that_was_set_back_makes_no_length() -> None:
    (told,) = incidents(found(), Thresholds())
    assert f"orders-0...), {SET_BACK} each: broker crash" in told.text
    run = ConditionRun(
        PartitionHistory("id", "orders", 0, is_base=False),
        RunMoment(7, DAY_MS * 1000, "broker_crash", 11, 7, holds=True),
        to_offset=9, to_us=0, ended_by="led_again",
    )  # fmt: skip
    events = timeline(SerialFindings(found(), leaderless=[run]), Thresholds())
    assert any(f", after {SET_BACK}: led again" in one.text for one in events)
    assert any(f"1 time, {SET_BACK} together" in line for line in report(found(), [told], 20))


def test_totals_have_room_for_dates_at_the_end_of_the_calendar() -> None:
    far = found(total_ms=BEYOND, longest_ms=BEYOND // 5_000, partitions=5_000)
    assert any("5,000 times, 348,611,111,111.1 h together" in line for line in report(far, [], 20))
