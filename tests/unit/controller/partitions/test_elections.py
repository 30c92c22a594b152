"""Elections on request and as background duties, and passes over many partitions at once."""

from __future__ import annotations

from dataclasses import replace

import pytest

from quorate.controller.partitions.elections import (
    ELECTIONS_PER_PASS_MAX,
    decide_balance_leaders,
    decide_elect_leaders,
    decide_elect_unclean_leaders,
    leader_and_isr_changes,
)
from quorate.controller.protocol import ElectLeadersRequest
from quorate.metadata_log.batches.runs import PartitionChangeRun
from quorate.metadata_log.errors import ErrorCode
from tests.unit.controller.small_cluster import CONFIG, SmallCluster, registration

UNCLEAN = {"unclean.leader.election.enable": "true"}


def elect(cluster: SmallCluster, kind: str, partitions: list[int] | None) -> dict[int, ErrorCode]:
    wanted = None if partitions is None else [{"topic": "t", "partitions": partitions}]
    request = ElectLeadersRequest.model_validate({"election_type": kind, "topic_partitions": wanted})
    decision = decide_elect_leaders(cluster.image, cluster.config, request)
    cluster.commit(decision)
    results = [result for topic in decision.reply.replica_election_results for result in topic.partition_results]
    return {result.partition_id: result.error_code for result in results}


def bounce(cluster: SmallCluster, broker: int) -> None:
    """Fence a broker and bring it back: it is out of its ISRs then, unless it was alone in them."""
    cluster.heartbeat(broker, want_fence=True)
    cluster.heartbeat(broker)


def test_elect_preferred_gives_leadership_back_once_the_replica_is_in_sync() -> None:
    cluster = SmallCluster(elr=True)
    cluster.create("t", [0, 1], [1, 0], configs={"min.insync.replicas": "1"})
    bounce(cluster, 0)
    assert elect(cluster, "PREFERRED", [0, 1, 7]) == {
        0: ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
        1: ErrorCode.ELECTION_NOT_NEEDED,
        7: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert elect(cluster, "PREFERRED", None) == {0: ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE}


def test_elect_unclean_does_not_ask_the_topic() -> None:
    cluster = SmallCluster()
    cluster.create("t", [0, 1])
    bounce(cluster, 1)
    cluster.heartbeat(0, want_fence=True)
    assert cluster.partition("t").leader == -1
    assert elect(cluster, "UNCLEAN", None) == {0: ErrorCode.NONE}
    partition = cluster.partition("t")
    assert (partition.leader, partition.isr, partition.leader_recovery_state) == (1, (1,), 1)
    assert elect(cluster, "UNCLEAN", [0]) == {0: ErrorCode.ELECTION_NOT_NEEDED}


@pytest.mark.parametrize(("configs", "leader"), [({}, -1), (UNCLEAN, 1)])
def test_background_unclean_pass_works_where_the_topic_allows_it(configs: dict[str, str | None], leader: int) -> None:
    cluster = SmallCluster()
    cluster.create("t", [0, 1], configs=dict(configs))
    cluster.heartbeat(1, want_fence=True)
    cluster.heartbeat(0, want_fence=True)
    cluster.heartbeat(1)
    decision = decide_elect_unclean_leaders(cluster.image, cluster.config)
    cluster.commit(decision)
    assert (cluster.partition("t").leader, decision.reply) == (leader, None)


def test_background_balance_pass_is_bounded() -> None:
    cluster = SmallCluster(brokers=2)
    cluster.create("t", *([0, 1] for _ in range(ELECTIONS_PER_PASS_MAX + 5)))
    cluster.heartbeat(0, want_shut_down=True)
    cluster.heartbeat(0, want_fence=True)
    assert len(cluster.image.partitions.rows_not_led_by_preferred()) == ELECTIONS_PER_PASS_MAX + 5
    decision = decide_balance_leaders(cluster.image, cluster.config)
    assert (list(decision.records), decision.reply) == ([], None)  # the preferred leader is not in sync


def test_leader_and_isr_changes_many_partitions_come_as_one_run_a_shape() -> None:
    cluster = SmallCluster()
    cluster.create("t", *([0, 1, 2] for _ in range(50)), *([1, 0, 2] for _ in range(50)))
    rows = cluster.image.partitions.rows_with_isr(0)
    runs = leader_and_isr_changes(cluster.image, cluster.config, rows, broker_to_remove=0)
    assert all(isinstance(run, PartitionChangeRun) for run in runs)
    assert sorted((len(run), run.leader is not None) for run in runs) == [(50, False), (50, True)]
    assert leader_and_isr_changes(cluster.image, cluster.config, rows[:0]) == []


@pytest.mark.parametrize(("elects", "leader", "remembered"), [(True, 0, ()), (False, -1, (0, 1))])
def test_last_known_leader_back_leads_only_where_that_is_on(
    elects: bool, leader: int, remembered: tuple[int, ...]
) -> None:
    cluster = SmallCluster(elr=True, config=replace(CONFIG, elects_last_known_leader=elects))
    cluster.create("t", [0, 1], configs={"min.insync.replicas": "2"})
    cluster.heartbeat(1, want_fence=True)
    for broker in (0, 1):  # Both come back without saying that they had ended cleanly.
        cluster.now_ms += CONFIG.session_timeout_ms + 1
        cluster.register(registration(broker, incarnation=1))
    assert (cluster.partition("t").isr, cluster.partition("t").elr) == ((), ())
    cluster.heartbeat(1)
    assert cluster.partition("t").leader == -1
    cluster.heartbeat(0)
    assert (cluster.partition("t").leader, cluster.partition("t").last_known_elr) == (leader, remembered)
