"""The pace of writing: pauses in proportion to work, a quick switch of threads meanwhile, none of it at the end."""

from __future__ import annotations

import sys
import time

import pytest

from controller.checkpoint_pace import WorkShare


def work(seconds: float) -> None:
    ends_at = time.monotonic() + seconds
    while time.monotonic() < ends_at:
        pass


@pytest.mark.parametrize(("percent", "least"), [(50, 0.02), (20, 0.08)])
def test_pause_is_in_proportion_to_the_work_before_it(percent: int, least: float) -> None:
    pace = WorkShare(percent)
    pace.begin()
    work(0.02)
    begun = time.monotonic()
    pace.pause()
    assert time.monotonic() - begun >= least * 0.99
    pace.end()


def test_pause_after_next_to_no_work_is_put_off() -> None:
    pace = WorkShare(1)
    pace.begin()
    begun = time.monotonic()
    pace.pause()
    # A hundred times the work would be a tenth of a second, had it been added up to a piece.
    assert time.monotonic() - begun < 0.1
    pace.end()


def test_pace_that_is_closed_waits_no_more() -> None:
    pace = WorkShare(1)
    pace.begin()
    work(0.02)
    pace.close()
    begun = time.monotonic()
    pace.pause()
    assert time.monotonic() - begun < 1.0
    pace.end()


def test_threads_are_switched_quickly_only_while_a_checkpoint_is_written() -> None:
    usual = sys.getswitchinterval()
    pace = WorkShare(25)
    pace.begin()
    assert sys.getswitchinterval() < usual / 5
    pace.end()
    assert sys.getswitchinterval() == pytest.approx(usual)
