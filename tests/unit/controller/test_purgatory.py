"""The purgatory: replies wait for their offset, in order, and each is given exactly once."""

from __future__ import annotations

import pytest

from controller.purgatory import Purgatory


def test_purgatory_high_watermark_releases_exactly_what_is_committed() -> None:
    told: list[int] = []
    purgatory = Purgatory()
    for end_offset in (3, 5, 5, 8):
        purgatory.add(end_offset, lambda e=end_offset: told.append(e), lambda _: told.append(-1))  # type: ignore[misc]
    purgatory.complete_up_to(4)
    assert told == [3]
    purgatory.complete_up_to(5)
    assert told == [3, 5, 5]
    assert len(purgatory) == 1
    assert purgatory.last_offset == 8


def test_purgatory_failing_all_answers_each_once() -> None:
    errors: list[Exception] = []
    purgatory = Purgatory()
    purgatory.add(3, lambda: errors.append(AssertionError("completed")), errors.append)
    lost = RuntimeError("lost")
    purgatory.fail_all(lost)
    purgatory.complete_up_to(10)
    assert errors == [lost]
    assert purgatory.last_offset == 0


def test_purgatory_falling_offsets_are_a_bug() -> None:
    purgatory = Purgatory()
    purgatory.add(3, lambda: None, lambda _: None)
    with pytest.raises(AssertionError):
        purgatory.add(2, lambda: None, lambda _: None)
