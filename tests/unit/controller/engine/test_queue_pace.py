"""The pace of a line: what waits takes as long as what was worked off lately; who is refused is told when to come."""

from __future__ import annotations

import pytest

from quorate.controller.engine.queue_pace import COME_AGAIN_MS_MAX, QueuePace


def test_pace_is_not_known_before_anything_was_worked_off() -> None:
    pace = QueuePace()
    assert (pace.wait_ms(1_000), pace.come_again_ms(1_000, 5.0)) == (0.0, 0.0)


def test_pace_follows_what_was_worked_off_lately() -> None:
    pace = QueuePace()
    for _ in range(200):
        pace.note(1.0)
    assert pace.wait_ms(500) == pytest.approx(500)
    for _ in range(50):
        pace.note(8.0, 2)
    assert 2_100 < pace.wait_ms(1_000) < 3_900, "half of what counts is older"
    for _ in range(500):
        pace.note(8.0, 2)
    assert pace.wait_ms(500) == pytest.approx(2_000, rel=0.01)


def test_those_who_are_refused_are_told_to_come_one_behind_the_other() -> None:
    pace = QueuePace()
    pace.note(10.0)
    assert [pace.come_again_ms(100, 0.0) for _ in range(3)] == pytest.approx([1_010, 1_020, 1_030])
    # Later those have come, or have not: nobody is told to wait for them.
    assert pace.come_again_ms(100, 5_000.0) == pytest.approx(1_010)


def test_nobody_is_sent_away_for_long_however_many_were_refused() -> None:
    pace = QueuePace()
    pace.note(10.0)
    told = [pace.come_again_ms(10**6, 0.0) for _ in range(10)]
    assert told == [COME_AGAIN_MS_MAX] * 10
    assert pace.come_again_ms(0, COME_AGAIN_MS_MAX) == pytest.approx(10)
