"""The pace of writing: pauses in proportion to work, a quick switch of threads meanwhile, none of it at the end."""

from __future__ import annotations

import sys
import time

import pytest

from quorate.controller.background.checkpoint_pace import WorkShare
from quorate.controller.background.shared import MASS_RECORDS, SharedWork


def work(seconds: float) -> None:
    ends_at = time.monotonic() + seconds
    while time.monotonic() < ends_at:
        pass


@pytest.mark.parametrize(("percent", "least"), [(50, 0.02), (20, 0.08)])
def test_pause_is_in_proportion_to_the_work_before_it(percent: int, least: float) -> None:
    pace = WorkShare(percent)
    with pace.working():
        work(0.02)
        begun = time.monotonic()
        pace.pause()
        assert time.monotonic() - begun >= least * 0.99


def test_pause_after_next_to_no_work_is_put_off() -> None:
    pace = WorkShare(1)
    took = []
    for _ in range(5):
        with pace.working():
            begun = time.monotonic()
            pace.pause()
            took.append(time.monotonic() - begun)
    # A hundred times the work would be a tenth of a second, were it added up to a piece; a busy machine may be.
    assert min(took) < 0.1


def test_pace_that_is_closed_waits_no_more() -> None:
    pace = WorkShare(1)
    with pace.working():
        work(0.02)
        pace.close()
        begun = time.monotonic()
        pace.pause()
        assert time.monotonic() - begun < 1.0


def paused_s(pace: WorkShare) -> float:
    """How long the pause after a hundredth of a second of work is."""
    with pace.working():
        work(0.01)
        begun = time.monotonic()
        pace.pause()
        return time.monotonic() - begun


def test_who_gives_way_stands_still_until_nothing_has_come_for_some_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quorate.controller.background.checkpoint_pace._GIVING_WAY_S", 0.25)
    pace = WorkShare(50)
    pace.give_way()
    assert paused_s(pace) >= 0.2
    # A busy machine may be that slow once.
    assert min(paused_s(pace) for _ in range(5)) < 0.2


def test_who_gives_way_to_what_lasts_pauses_longer_and_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    module = "quorate.controller.background.checkpoint_pace"
    monkeypatch.setattr(f"{module}.STANDSTILL_S_MAX", 0.3)
    monkeypatch.setattr(f"{module}.GIVING_WAY", 4)
    monkeypatch.setattr(f"{module}._GIVING_WAY_S", 60.0)
    pace = WorkShare(50)
    pace.give_way()

    assert paused_s(pace) >= 0.2, "it did not stand still"
    took = [paused_s(pace) for _ in range(5)]
    assert min(took) >= 4 * 0.01 * 0.99
    assert min(took) < 0.2, "it stood still for longer than it may"


def test_only_records_that_commit_together_in_masses_are_given_way_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quorate.controller.background.checkpoint_pace._GIVING_WAY_S", 0.25)
    shared = SharedWork(checkpoint_work_percent=50)
    least = 0.2
    shared.moved(MASS_RECORDS - 1)
    shared.moved(2 * (MASS_RECORDS - 1))
    # A busy machine may be that slow once.
    assert min(paused_s(shared.checkpoint_pace) for _ in range(5)) < least

    shared.moved(3 * MASS_RECORDS)
    assert paused_s(shared.checkpoint_pace) >= least
    shared.moved(4 * MASS_RECORDS)
    assert paused_s(shared.digest_pace) >= least


def test_threads_are_switched_quickly_only_while_anybody_works() -> None:
    usual = sys.getswitchinterval()
    first, second = WorkShare(25), WorkShare(10)
    with second.working():
        with first.working():
            assert sys.getswitchinterval() < usual / 5
        assert sys.getswitchinterval() < usual / 5
    assert sys.getswitchinterval() == pytest.approx(usual)
