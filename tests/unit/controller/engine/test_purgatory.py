"""The purgatory: replies wait for their offset, in order, and each is given exactly once."""

from __future__ import annotations

import pytest

from quorate.controller.engine.purgatory import Purgatory


class Told:
    """A reply that notes what it is told."""

    def __init__(self, told: list[object]) -> None:
        self._told = told

    def complete(self, result: object) -> None:
        self._told.append(result)

    def fail(self, error: Exception) -> None:
        self._told.append(error)


def test_purgatory_high_watermark_releases_exactly_what_is_committed() -> None:
    told: list[object] = []
    purgatory = Purgatory()
    for end_offset in (3, 5, 5, 8):
        purgatory.add(end_offset, Told(told), end_offset)
    purgatory.complete_up_to(4)
    assert told == [3]
    purgatory.complete_up_to(5)
    assert told == [3, 5, 5]
    assert len(purgatory) == 1
    assert purgatory.last_offset == 8


def test_purgatory_failing_all_answers_each_once() -> None:
    told: list[object] = []
    purgatory = Purgatory()
    purgatory.add(3, Told(told), 3)
    lost = RuntimeError("lost")
    purgatory.fail_all(lost)
    purgatory.complete_up_to(10)
    assert told == [lost]
    assert purgatory.last_offset == 0


def test_purgatory_falling_offsets_are_a_bug() -> None:
    purgatory = Purgatory()
    purgatory.add(3, Told([]), None)
    with pytest.raises(AssertionError):
        purgatory.add(2, Told([]), None)
