"""What all controllers together say, whoever of them answers."""

from __future__ import annotations

import io

import pytest

from quorate.controller.api.answers.status_models import StatusReply, Verdict
from quorate.controller.api.resources import (
    BrokerEndpointReply,
    BrokerReply,
    ElectionsReply,
    PartitionCounts,
    QuorumReply,
    StatesReply,
    VoterReply,
    VoterRole,
)
from quorate.controller.reads.verdict import judge as judge_cluster
from quorate.scripts.cli.status_screen import render
from quorate.scripts.terminal.screen import Screen
from quorate.scripts.terminal.survey import ControllerProbe, ControllerSurvey, judge
from quorate.snapshots.views.state_names import ReplicaState

REPLICAS: dict[ReplicaState, int] = {"NewReplica": 2, "OnlineReplica": 140, "OfflineReplica": 8}
ELECTIONS = ElectionsReply(last_known=778, unclean=1)
URLS = [f"http://127.0.0.1:{port}" for port in (1, 2, 3)]


def voter(voter_id: int, role: VoterRole, *, is_heard: bool) -> VoterReply:
    """``is_heard``: by a controller to whom the others report."""
    return VoterReply(
        node_id=voter_id,
        http=URLS[voter_id - 1],
        role=role,
        log_end_offset=110,
        lag_records=0 if is_heard else None,
        last_contact_ms=3 if is_heard else None,
        directory_id=None,
        last_caught_up_ms=3 if is_heard else None,
        vote_waits_for=[],
    )


def reply(node_id: int, active_id: int | None, *, epoch: int = 5, offline: int = 0) -> StatusReply:
    """What one of three controllers sees; the active one hears of all."""
    is_active = node_id == active_id

    def role(voter_id: int) -> VoterRole:
        known: VoterRole = "standby" if is_active or voter_id == node_id else "unknown"
        return "active" if voter_id == active_id else known

    quorum = QuorumReply(
        observed_by=node_id,
        is_past=False,
        is_active=is_active,
        active_id=active_id,
        epoch=epoch,
        high_watermark=100 + epoch,
        log_start_offset=0,
        log_end_offset=110,
        applied_offset=100,
        generation=0,
        voters=[voter(voter_id, role(voter_id), is_heard=is_active) for voter_id in range(1, len(URLS) + 1)],
    )
    counts = PartitionCounts(total=50, offline=offline)
    verdict, reasons = judge_cluster(quorum, [], counts, [])
    return StatusReply(
        verdict=verdict,
        reasons=reasons,
        cluster_id="c",
        quorum=quorum,
        brokers=[],
        topics=2,
        partitions=counts,
        offline_partitions=[f"foo-{n}" for n in range(offline)],
        states=StatesReply(
            partitions={"OnlinePartition": 50 - offline, "OfflinePartition": offline}, replicas=REPLICAS
        ),
        elections=ELECTIONS,
        unsupported={"ACLs": 3},
        unprotected_by=["tls", "authorizer"],
    )


def asked(*replies: StatusReply | None) -> list[ControllerProbe]:
    """One for each address; None = it did not answer."""
    return [
        ControllerProbe(url, found, "" if found is not None else f"{url} cannot be reached: connection refused")
        for url, found in zip(URLS, replies, strict=True)
    ]


def refused(*numbers: int) -> list[ControllerProbe]:
    return [ControllerProbe(URLS[n - 1], None, "User:ana needs DESCRIBE", is_refused=True) for n in numbers]


def shown(survey: ControllerSurvey) -> str:
    text = io.StringIO()
    Screen(file=text, width=160).print(render(survey))
    return text.getvalue()


@pytest.mark.parametrize(
    ("answers", "verdict", "reason"),
    [
        (asked(reply(1, 2), reply(2, 2), reply(3, 2)), "healthy", None),
        (asked(None, reply(2, 2), reply(3, 2)), "healthy", None),
        (asked(reply(1, 2), reply(2, 2, offline=3), None), "critical", "3 partitions of 50 without a leader"),
        (asked(None, None, reply(3, None)), "no-quorum", "no quorum: 1 of 3 reachable"),
        (asked(None, None, reply(3, 2)), "no-quorum", "no quorum: 1 of 3 reachable"),
        (asked(reply(1, None), reply(2, None), reply(3, None)), "no-quorum", "no quorum: 3 of 3 reachable"),
        (
            asked(reply(1, 2), None, reply(3, 2)),
            "degraded",
            "controller 2 is said to be active and gives no status here (2 of 3 reachable)",
        ),
        (refused(1, 2, 3), "refused", f"{URLS[0]} answers and refuses: User:ana needs DESCRIBE"),
        ([*refused(1), *asked(None, reply(2, 2), reply(3, 2))[1:]], "healthy", None),
        (
            [*asked(reply(1, 2), None, None)[:1], *refused(2, 3)],
            "degraded",
            "controller 2 is said to be active and gives no status here (3 of 3 reachable)",
        ),
        (
            [*refused(1), *asked(None, None, None)[1:]],
            "refused",
            f"{URLS[0]} answers and refuses: User:ana needs DESCRIBE",
        ),
        (asked(None, None, None), "unreachable", "no controller answers: 0 of 3 reachable"),
    ],
)
def test_survey_of_three_controllers_gives_one_verdict(
    answers: list[ControllerProbe], verdict: Verdict, reason: str | None
) -> None:
    survey = judge(answers)
    assert survey.verdict == verdict
    assert [one.message for one in survey.reasons[:1]] == ([] if reason is None else [reason])
    text = shown(survey)
    assert verdict.upper().replace("-", " ") in text
    assert reason is None or reason in text


def test_survey_of_two_that_both_claim_to_be_active_takes_the_newer_epoch() -> None:
    survey = judge(asked(reply(1, 1, epoch=4), reply(2, 2, epoch=5), None))
    assert survey.status is not None
    assert survey.status.quorum.observed_by == 2


def test_survey_counts_voters_and_who_answers() -> None:
    survey = judge(asked(reply(1, 2), reply(2, 2), None))
    assert (survey.voter_count, survey.reachable_count) == (3, 2)
    assert [(one.node_id, one.is_reachable) for one in survey.controllers] == [(1, True), (2, True), (None, False)]


def test_screen_tells_who_refuses_from_who_is_silent() -> None:
    text = shown(judge([*asked(None, reply(2, 2), None)[1:], *refused(1)]))
    lines = [line for line in text.splitlines() if line.endswith(tuple(URLS))]
    assert [one for line in lines for one in ("refuses here", "active", "does not answer here") if one in line] == [
        "refuses here",
        "active",
        "does not answer here",
    ]


def test_screen_without_an_active_controller_shows_what_was_last_known() -> None:
    text = shown(judge(asked(None, reply(2, None, epoch=7), reply(3, None, epoch=6))))
    assert "no active controller" in text
    assert "(last known to controller 2)" in text
    assert "2 topics, 50 partitions" in text
    assert "150 replicas: 2 new, 140 online, 8 offline" in text


def test_screen_names_offline_partitions_and_what_is_not_acted_on() -> None:
    text = shown(judge(asked(reply(1, 1, offline=2), None, None)))
    assert "Offline: foo-0, foo-1" in text
    assert "Stored, and without effect here: 3 ACLs" in text


def test_screen_says_what_elections_of_replicas_not_in_sync_mean() -> None:
    text = shown(judge(asked(reply(1, 1), None, None)))
    assert "778 partitions were led again by their last known leaders: what these had not flushed" in text
    assert "1 partition was led again uncleanly, by other replicas: what these had not copied is lost" in text
    assert "eligible" not in text, "there were none"


@pytest.mark.parametrize("name", ["[/foo]", "[bold red on white]HEALTHY[/]", ":smile:", "a\x1b[2Jb"])
def test_name_that_a_broker_chose_is_on_the_screen_as_it_is_and_no_markup(name: str) -> None:
    status = reply(1, 1)
    broker = BrokerReply(
        id=960,
        rack=name,
        state="active",
        epoch=1,
        incarnation_id=bytes(16),
        listeners=[BrokerEndpointReply.model_construct(name="A", host=name, port=9)],
        directories=[],
        cordoned_directories=[],
        applied_offset=1,
        lag_records=0,
        last_heartbeat_ms=1,
    )
    text = shown(judge(asked(status.model_copy(update={"brokers": [broker], "cluster_id": name}), None, None)))
    assert text.count(name.replace("\x1b", "\\u001b")) == 3
