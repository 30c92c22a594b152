"""Controllers may be stopped as long as a majority goes on that has what the active one has."""

from __future__ import annotations

import pytest

from quorate.controller.answers.quorum_margin import quorum_without, reasons_against, reasons_without_active
from quorate.controller.api.resources import QuorumReply, VoterReply, VoterRole
from quorate.metadata_log.errors import ApiError


def quorum(*roles: VoterRole, lags: dict[int, int] | None = None, is_past: bool = False) -> QuorumReply:
    """Voters 1, 2, ... in these roles; one that is active is the active controller."""
    voters = [
        VoterReply(
            node_id=node_id,
            http="",
            role=role,
            log_end_offset=100,
            lag_records=(lags or {}).get(node_id, 0),
            last_contact_ms=1,
            directory_id=None,
            last_caught_up_ms=1,
            vote_waits_for=[],
        )
        for node_id, role in enumerate(roles, start=1)
    ]
    active = next((voter.node_id for voter in voters if voter.role == "active"), None)
    return QuorumReply(
        observed_by=1, is_past=is_past, is_active=active == 1, active_id=active, epoch=1, high_watermark=1,
        log_start_offset=0, log_end_offset=1, applied_offset=1, generation=0, voters=voters,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("roles", "lags", "stopping", "codes", "may_fail"),
    [
        (("active", "standby", "standby"), {}, [2], [], (1, 0)),
        (("active", "standby", "standby"), {}, [1], [], (1, 0)),
        (("active", "standby", "standby"), {}, [1, 2], ["QUORUM_LOST"], (1, -1)),
        (("active", "standby", "unreachable"), {}, [2], ["QUORUM_LOST"], (0, -1)),
        (("active", "standby", "unreachable"), {}, [3], [], (0, 0)),
        (("active", "standby", "non-voter"), {}, [2], ["QUORUM_LOST"], (0, -1)),
        (("active", "standby", "standby"), {3: 50_000}, [2], ["QUORUM_LOST_UNTIL_CAUGHT_UP"], (0, -1)),
        (("active", "standby", "standby"), {3: 5}, [2], [], (1, 0)),
        (("active", "standby", "standby", "standby", "standby"), {}, [2, 3], [], (2, 0)),
        (("active", "standby"), {}, [2], ["QUORUM_LOST"], (0, -1)),
        (("active",), {}, [1], ["QUORUM_LOST"], (0, -1)),
        (("standby", "unknown", "unknown"), {}, [1], ["QUORUM_NOT_KNOWN"], (-1, -2)),
    ],
)
def test_margin_of_the_quorum_says_whether_controllers_may_be_stopped(
    roles: tuple[VoterRole, ...], lags: dict[int, int], stopping: list[int], codes: list[str], may_fail: tuple[int, int]
) -> None:
    seen = quorum(*roles, lags=lags)

    margin = quorum_without(seen, stopping)

    assert [reason.code for reason in reasons_against(seen, stopping, margin)] == codes
    assert (margin.may_fail_now, margin.may_fail_then) == may_fail
    assert margin.moves_leadership == (seen.active_id in stopping)


@pytest.mark.parametrize(
    ("roles", "is_past", "codes"),
    [
        (("active", "standby", "standby"), False, []),
        (("standby", "unknown", "unknown"), False, ["QUORUM_NOT_KNOWN"]),
        (("standby", "unknown", "unknown"), True, []),
    ],
)
def test_no_broker_may_be_stopped_while_nobody_decides(
    roles: tuple[VoterRole, ...], is_past: bool, codes: list[str]
) -> None:
    assert [reason.code for reason in reasons_without_active(quorum(*roles, is_past=is_past))] == codes


@pytest.mark.parametrize(
    ("is_past", "stopping", "said"),
    [(False, [1, 7], "no controller 7 is a voter: these are 1, 2, 3"), (True, [1], "no log or checkpoint says")],
)
def test_stranger_and_old_state_are_refused_by_the_quorum_question(
    is_past: bool, stopping: list[int], said: str
) -> None:
    with pytest.raises(ApiError, match=said):
        quorum_without(quorum("active", "standby", "standby", is_past=is_past), stopping)
