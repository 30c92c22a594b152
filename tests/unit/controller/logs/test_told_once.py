"""Whatever happens when, and whatever fails: each kind of lines is told every change of an active controller once."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field

import pytest

from quorate.controller.background.shared import MASS_RECORDS
from quorate.controller.logs import state_log
from quorate.controller.logs.state_changes import StateChange
from quorate.controller.logs.state_log import StateLog
from quorate.snapshots.image.image import EMPTY_IMAGE, MetadataImage
from tests.unit.controller.logs.test_state_changes import Watched

STEPS = 400
#: Chance that comparing fails.
FAILS = 0.1


class CannotBeTold(Exception):
    """Comparing two states failed."""


@dataclass
class Kind:
    """The stretches that one kind of lines was asked to compare, by end offset."""

    draw: random.Random
    compared: list[tuple[int, int]] = field(default_factory=list)

    def between(self, old: MetadataImage, new: MetadataImage, *_: object) -> Iterator[StateChange]:
        self.compared.append((old.provenance.end_offset, new.provenance.end_offset))
        if self.draw.random() < FAILS:
            raise CannotBeTold
        return iter(())


def joined(stretches: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The same, those that go on where the one before ended as one, without empty ones."""
    made: list[tuple[int, int]] = []
    for begin, end in stretches:
        if made and made[-1][1] == begin:
            begin, _ = made.pop()
        if begin != end:
            made.append((begin, end))
    return made


@pytest.mark.parametrize("seed", range(30))
def test_every_kind_of_lines_is_told_each_change_once(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    draw = random.Random(seed)
    kinds = Kind(draw), Kind(draw)
    monkeypatch.setattr(state_log, "state_changes", kinds[0].between)
    monkeypatch.setattr(state_log, "partition_changes", kinds[1].between)
    watched = Watched(EMPTY_IMAGE, is_active=draw.random() < 0.5)
    state = StateLog(watched, lambda _: None, lambda: 0)
    end, now, was_active, seen = 0, 0.0, False, 0
    expected: list[tuple[int, int]] = []
    for _ in range(STEPS):
        now += draw.choice((0.1, 0.1, 0.1, 3.0, 70.0))
        if draw.random() < 0.8:
            end = max(0, end + draw.choice((0, 1, 1, 100, MASS_RECORDS, MASS_RECORDS, -50)))
            provenance = EMPTY_IMAGE.provenance._replace(last_contained_offset=end - 1)
            watched.stable = EMPTY_IMAGE._replace(provenance=provenance)
        if draw.random() < 0.05:
            watched.is_active = not watched.is_active
        with suppress(CannotBeTold):  # as the thread does
            state.look(now)
        if was_active or watched.is_active:
            expected.append((seen, end))
        was_active, seen = watched.is_active, end
    state.start()
    state.close()
    for kind in kinds:
        assert joined(kind.compared) == joined(expected)
