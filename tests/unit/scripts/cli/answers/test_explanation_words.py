"""What `quorate explain` says of a controller, by what is known of its log."""

from __future__ import annotations

import pytest

from quorate.controller.answers.explain_controller import explain_controller
from quorate.controller.api.resources import QuorumReply, VoterReply, VoterRole
from quorate.scripts.cli.answers.explanation_words import _controller_lines


def voter(node_id: int, role: VoterRole, lag: int | None = 0, level_ms: int | None = 0) -> VoterReply:
    return VoterReply(
        node_id=node_id, http="", role=role, log_end_offset=None if lag is None else 100 - lag, lag_records=lag,
        last_contact_ms=5, directory_id=None, last_caught_up_ms=level_ms, vote_waits_for=[],
    )  # fmt: skip


@pytest.mark.parametrize(
    ("second", "says"),
    [
        (voter(2, "standby"), "a voter and stands by, last contact 5 ms ago"),
        (voter(2, "standby", 1, 7), "a voter and stands by, last contact 5 ms ago, 1 record behind, level 7 ms ago"),
        (voter(2, "standby", 60, None), "a voter and stands by, last contact 5 ms ago, 60 records behind"),
        (
            voter(2, "unreachable", None, None),
            "unreachable, last contact 5 ms ago, how far its log goes is unknown",
        ),
    ],
)
def test_of_a_log_only_what_is_known_is_told(second: VoterReply, says: str) -> None:
    quorum = QuorumReply(
        observed_by=1, is_past=False, is_active=True, active_id=1, epoch=1, high_watermark=1, log_start_offset=0,
        log_end_offset=100, applied_offset=1, generation=0, voters=[voter(1, "active"), second, voter(3, "standby")],
    )  # fmt: skip
    first, *_ = _controller_lines(explain_controller(quorum, (), 2))
    assert first == f"controller 2 is {says}"
