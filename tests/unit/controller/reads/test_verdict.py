"""The verdict on a cluster, for every thing that can be wrong with it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from quorate.controller.api.answers.status_models import StatusReason
from quorate.controller.api.resources import (
    BrokerReply,
    BrokerStateName,
    PartitionCounts,
    QuorumReply,
    VoterReply,
    VoterRole,
)
from quorate.controller.reads.verdict import judge

COUNTS = PartitionCounts(total=100)


def voter(node_id: int, role: VoterRole, lag: int | None = 0, waits_for: Sequence[int] = ()) -> VoterReply:
    return VoterReply(
        node_id=node_id,
        http=f"http://127.0.0.1:{node_id}",
        role=role,
        log_end_offset=100,
        lag_records=lag,
        last_contact_ms=1,
        directory_id=None,
        last_caught_up_ms=1,
        vote_waits_for=list(waits_for),
    )


def quorum(*voters: VoterReply, active_id: int | None = 1) -> QuorumReply:
    return QuorumReply(
        observed_by=1,
        is_past=False,
        is_active=active_id == 1,
        active_id=active_id,
        epoch=5,
        high_watermark=100,
        log_start_offset=0,
        log_end_offset=100,
        applied_offset=100,
        generation=0,
        voters=list(voters) or [voter(1, "active"), voter(2, "standby"), voter(3, "standby")],
    )


def broker(id_: int, state: BrokerStateName = "active", lag: int | None = 0) -> BrokerReply:
    return BrokerReply(
        id=id_,
        rack=None,
        state=state,
        epoch=1,
        incarnation_id=bytes(16),
        listeners=[],
        directories=[],
        cordoned_directories=[],
        applied_offset=100,
        lag_records=lag,
        last_heartbeat_ms=5,
    )


def test_verdict_on_a_sound_cluster_is_healthy_without_reasons() -> None:
    assert judge(quorum(), [broker(11)], COUNTS, []) == ("healthy", [])


@pytest.mark.parametrize(
    ("view", "brokers", "counts", "verdict", "reason"),
    [
        (quorum(active_id=None), [], COUNTS, "no-quorum", "no active controller is known: nothing can be changed"),
        (quorum(), [], PartitionCounts(total=9, offline=1), "critical", "1 partition of 9 without a leader"),
        (quorum(), [], PartitionCounts(total=9, offline=2), "critical", "2 partitions of 9 without a leader"),
        (
            quorum(voter(1, "active"), voter(2, "unreachable"), voter(3, "standby")),
            [],
            COUNTS,
            "degraded",
            "controller 2 is unreachable: 0 more can fail before writes stop",
        ),
        (
            quorum(*(voter(n, "unreachable" if n == 2 else "standby") for n in range(1, 6))),
            [],
            COUNTS,
            "degraded",
            "controller 2 is unreachable: 1 more can fail before writes stop",
        ),
        (
            quorum(voter(1, "active"), voter(2, "non-voter"), voter(3, "standby")),
            [],
            COUNTS,
            "degraded",
            "controller 2 is not voting: memory was lost and is being recovered",
        ),
        (
            quorum(voter(1, "active"), voter(2, "non-voter", waits_for=[4, 5]), voter(3, "standby")),
            [],
            COUNTS,
            "degraded",
            "controller 2 is not voting: memory was lost, controllers 4, 5 must answer the active one first",
        ),
        (
            quorum(voter(1, "active"), voter(2, "standby", 20_000), voter(3, "standby")),
            [],
            COUNTS,
            "degraded",
            "controller 2 lags 20,000 records behind",
        ),
        (quorum(), [broker(11, "fenced"), broker(12, "fenced")], COUNTS, "degraded", "brokers 11, 12 are fenced"),
        (quorum(), [broker(11, "controlled-shutdown")], COUNTS, "degraded", "broker 11 is in controlled shutdown"),
        (quorum(), [broker(11, lag=20_000)], COUNTS, "degraded", "broker 11 lags 20,000 records behind"),
        (
            quorum(),
            [broker(n, "fenced") for n in range(1, 9)],
            COUNTS,
            "degraded",
            "brokers 1, 2, 3, 4, 5 and 3 more are fenced",
        ),
        (quorum(), [], PartitionCounts(total=9, under_replicated=3), "degraded", "3 partitions under-replicated"),
        (quorum(), [], PartitionCounts(under_min_isr=1), "degraded", "1 partition under min.insync.replicas"),
    ],
)
def test_verdict_names_what_is_wrong(
    view: QuorumReply, brokers: list[BrokerReply], counts: PartitionCounts, verdict: str, reason: str
) -> None:
    found, reasons = judge(view, brokers, counts, [])
    assert (found, [one.message for one in reasons]) == (verdict, [reason])


@pytest.mark.parametrize(
    ("held", "message"),
    [
        ({12: 1405}, "broker 12 is not registered and holds 1,405 replicas"),
        ({15: 1, 12: 2}, "brokers 12, 15 are not registered and hold 3 replicas"),
    ],
)
def test_verdict_names_brokers_that_are_not_registered_and_hold_replicas(held: dict[int, int], message: str) -> None:
    reason = StatusReason(code="BROKERS_UNREGISTERED", message=message, nodes=sorted(held))
    assert judge(quorum(), [broker(11)], COUNTS, [], held) == ("degraded", [reason])


@pytest.mark.parametrize(("third", "lag"), [("non-voter", 0), ("standby", 20_000)])
def test_voter_that_does_not_vote_or_lags_is_none_that_may_fail_besides(third: VoterRole, lag: int) -> None:
    """As `can-stop` counts them: three of five are needed, and three are fit."""
    others = [voter(4, "standby"), voter(5, "standby")]
    _, reasons = judge(
        quorum(voter(1, "active"), voter(2, "unreachable"), voter(3, third, lag), *others), [], COUNTS, []
    )
    assert reasons[0].message == "controller 2 is unreachable: 0 more can fail before writes stop"


def test_verdict_gives_the_gravest_reason_first() -> None:
    counts = PartitionCounts(total=9, offline=1, under_replicated=2)
    verdict, reasons = judge(quorum(active_id=None), [broker(11, "fenced")], counts, ["the disk is slow"])
    assert verdict == "no-quorum"
    assert [reason.message.split()[0] for reason in reasons] == ["no", "1", "the", "broker", "2"]


def test_verdict_counts_a_fault_of_the_node() -> None:
    fault = StatusReason(code="CONTROLLER_FAULT", message="digest differs", nodes=[1])
    assert judge(quorum(), [], COUNTS, ["digest differs"]) == ("degraded", [fault])


def test_reasons_name_the_nodes_and_count_the_partitions_that_they_are_about() -> None:
    counts = PartitionCounts(total=9, offline=1, under_min_isr=2, under_replicated=3)
    voters = quorum(voter(1, "active"), voter(2, "unreachable"), voter(3, "non-voter"))
    _, reasons = judge(voters, [broker(12, "fenced"), broker(13, "controlled-shutdown")], counts, [])
    assert [(one.code, one.nodes, one.partitions) for one in reasons] == [
        ("PARTITIONS_OFFLINE", [], 1),
        ("CONTROLLERS_UNREACHABLE", [2], 0),
        ("CONTROLLERS_NOT_VOTING", [3], 0),
        ("BROKERS_FENCED", [12], 0),
        ("BROKERS_LEAVING", [13], 0),
        ("PARTITIONS_UNDER_MIN_ISR", [], 2),
        ("PARTITIONS_UNDER_REPLICATED", [], 3),
    ]
