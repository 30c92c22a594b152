"""Which epochs and which leaders a node believes in."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from quorate.quorum.elections.admission import LEAP_MAX, Admission
from quorate.quorum.errors import ProtocolError, SecondLeader

OWN = 40


class Core:
    """As much of the core as is asked."""

    def __init__(self) -> None:
        self.epoch = OWN
        self.voted_id: int | None = None
        self.abstained: list[tuple[int, int]] = []

    def abstain_in(self, epoch: int, leader: int) -> None:
        self.abstained.append((epoch, leader))


def admission(core: Core, *, is_voter: bool = True) -> Admission:
    return Admission(cast("Any", core), cast("Any", SimpleNamespace(is_voter=is_voter)), 0.0)


def adopt(admitted: Admission, core: Core, epoch: int, now: float) -> None:
    admitted.check_epoch(2, epoch, now)
    former, core.epoch = core.epoch, epoch
    admitted.took(former)


@pytest.mark.parametrize("epoch", [0, OWN, OWN + 1, OWN + 1_000, OWN + 1 + LEAP_MAX])
def test_epoch_that_may_have_come_about_is_let_in(epoch: int) -> None:
    admission(Core()).check_epoch(2, epoch, 0.0)


def test_epoch_too_far_above_the_own_is_refused() -> None:
    with pytest.raises(ProtocolError, match=f"speaks of epoch {OWN + 2 + LEAP_MAX}"):
        admission(Core()).check_epoch(2, OWN + 2 + LEAP_MAX, 0.0)


def test_leaps_one_after_the_other_do_not_use_the_epochs_up() -> None:
    """A peer that says ever higher epochs gets no further than with one leap, but for what time adds."""
    core = Core()
    admitted = admission(core)
    adopt(admitted, core, OWN + LEAP_MAX // 2, 0.0)
    adopt(admitted, core, OWN + LEAP_MAX, 0.0)
    with pytest.raises(ProtocolError):
        admitted.check_epoch(2, core.epoch + 100, 1.0)

    admitted.check_epoch(2, core.epoch + 1, 1.0)
    admitted.check_epoch(2, core.epoch + 100, 11.0)


def test_elections_one_after_the_other_are_no_leap() -> None:
    core = Core()
    admitted = admission(core)
    for epoch in range(OWN + 1, OWN + 3_000):
        adopt(admitted, core, epoch, 0.0)

    admitted.check_epoch(2, core.epoch + 1 + LEAP_MAX, 0.0)


def test_node_without_a_vote_takes_any_epoch() -> None:
    """It comes back empty into a quorum that may have any epoch, and stores none."""
    admission(Core(), is_voter=False).check_epoch(2, 2_000_000_000, 0.0)


def test_second_leader_of_an_epoch_is_refused_for_good() -> None:
    core = Core()
    admitted = admission(core)
    admitted.check_leader(2, OWN)
    admitted.note_leader(2, OWN)
    admitted.check_leader(2, OWN)

    for _ in range(2):
        with pytest.raises(SecondLeader, match=f"node 3 says that it leads epoch {OWN}, which node 2 leads"):
            admitted.check_leader(3, OWN)
    admitted.check_leader(3, OWN + 1)


def test_follower_of_a_leader_has_no_vote_left_in_its_epoch() -> None:
    core = Core()
    admission(core).note_leader(2, OWN)
    assert core.abstained == [(OWN, 2)]

    core = Core()
    core.voted_id = 3
    admission(core).note_leader(2, OWN)
    assert core.abstained == [], "it is given already"
