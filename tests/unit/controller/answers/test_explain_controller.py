"""How a controller is, what its loss would mean, and what to do: for each state that a quorum knows of a voter."""

from __future__ import annotations

import pytest

from quorate.controller.answers.explain_controller import explain_controller, remedies_of, symptoms_of
from quorate.controller.api.resources import VoterRole
from quorate.metadata_log.errors import ApiError
from tests.unit.controller.answers.test_quorum_margin import quorum

STANDBY: tuple[VoterRole, ...] = ("active", "standby", "standby")


@pytest.mark.parametrize(
    ("roles", "lags", "asked", "symptoms", "remedies", "if_lost"),
    [
        (STANDBY, {}, 3, [], [], []),
        (STANDBY, {}, 1, [], [], []),
        (STANDBY, {3: 20_000}, 3, ["CONTROLLER_LAGS"], ["WAIT"], []),
        (STANDBY, {3: 20_000}, 2, [], [], ["QUORUM_LOST_UNTIL_CAUGHT_UP"]),
        (
            ("active", "standby", "unreachable"), {}, 3,
            ["CONTROLLERS_UNREACHABLE"], ["START_CONTROLLER", "REJOIN_CONTROLLER"], [],
        ),
        (("active", "standby", "unreachable"), {}, 2, [], [], ["QUORUM_LOST"]),
        (("active", "standby", "non-voter"), {}, 3, ["CONTROLLERS_NOT_VOTING"], ["WAIT"], []),
        (("active",), {}, 1, [], [], ["QUORUM_LOST"]),
        (
            ("standby", "unknown", "unknown"), {}, 2,
            ["NO_ACTIVE_CONTROLLER"], ["START_CONTROLLER", "RECOVER_QUORUM"], ["QUORUM_NOT_KNOWN"],
        ),
    ],
)  # fmt: skip
def test_controller_is_explained_by_what_the_quorum_knows_of_it(
    roles: tuple[VoterRole, ...],
    lags: dict[int, int],
    asked: int,
    symptoms: list[str],
    remedies: list[str],
    if_lost: list[str],
) -> None:
    seen = quorum(*roles, lags=lags)

    found = explain_controller(seen, [], asked)

    assert found.voter == seen.voters[asked - 1]
    assert [one.code for one in symptoms_of(seen, found.voter)] == symptoms
    assert [one.code for one in remedies_of(seen, found.voter)] == remedies
    assert [one.code for one in found.if_lost] == if_lost


def test_controller_without_a_vote_names_those_that_must_answer_first() -> None:
    seen = quorum("active", "standby", "non-voter", "unreachable", "standby")
    waiting = seen.voters[2].model_copy(update={"vote_waits_for": [4]})
    told = [(one.code, one.controller) for one in remedies_of(seen, waiting)]
    assert told == [("START_CONTROLLER", 4)]


def test_registered_controller_outside_the_quorum_is_missed_by_nobody() -> None:
    found = explain_controller(quorum(*STANDBY), [1, 2, 3, 9], 9)
    assert (found.is_voter, found.voter, found.quorum, found.if_lost) == (False, None, None, [])
    assert not [*symptoms_of(quorum(*STANDBY), found.voter), *remedies_of(quorum(*STANDBY), found.voter)]


@pytest.mark.parametrize(("is_past", "said"), [(False, "no controller 9 is a voter"), (True, "no log or checkpoint")])
def test_stranger_and_old_state_are_refused(is_past: bool, said: str) -> None:
    """Also of a controller that is registered: whether it belonged to the quorum then no log says."""
    with pytest.raises(ApiError, match=said):
        explain_controller(quorum(*STANDBY, is_past=is_past), [9] if is_past else [], 9)
