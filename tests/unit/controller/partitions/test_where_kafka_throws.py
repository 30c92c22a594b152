"""States in which Kafka 4.3.1's controller throws, for its indexes are stale: here they are states as any other."""

from __future__ import annotations

import numpy as np
import pytest

from quorate.controller.configs.alter_configs import decide_incremental_alter_configs
from quorate.controller.partitions.elections import decide_elect_leaders, leader_and_isr_changes
from quorate.controller.protocol import DeleteTopicsRequest, ElectLeadersRequest
from quorate.controller.protocol.configs import IncrementalAlterConfigsRequest
from quorate.controller.topics.topics import decide_delete_topics
from quorate.metadata_log.errors import ErrorCode
from quorate.metadata_log.records.records import PartitionChangeRecord
from tests.unit.controller.small_cluster import SmallCluster, registration, uuid


@pytest.fixture
def cluster() -> SmallCluster:
    """Brokers 0 to 2 under ELR with two to be in sync; t-0 on all of them has lost 1 and 2, which are eligible."""
    cluster = SmallCluster(elr=True)
    cluster.create("t", [0, 1, 2], configs={"min.insync.replicas": "3"})
    for broker in (1, 2):
        cluster.heartbeat(broker, want_fence=True)
    assert (cluster.partition("t").isr, cluster.partition("t").elr) == ((0,), (1, 2))
    return cluster


def delete(cluster: SmallCluster) -> None:
    request = DeleteTopicsRequest(topic_ids=[cluster.topic_id("t")])
    decision = decide_delete_topics(cluster.image, request)
    assert [result.error_code for result in decision.reply.responses] == [ErrorCode.NONE]
    cluster.commit(decision)


def set_min_isr(cluster: SmallCluster, value: str) -> None:
    change = {"name": "min.insync.replicas", "config_operation": "SET", "value": value}
    resource = {"resource_type": "TOPIC", "resource_name": "t", "configs": [change]}
    request = IncrementalAlterConfigsRequest.model_validate({"resources": [resource]})
    cluster.commit(decide_incremental_alter_configs(cluster.image, cluster.config, request))


def restart(cluster: SmallCluster, broker: int) -> None:
    cluster.now_ms += 10_000
    cluster.register(registration(broker, incarnation=1))


def test_eligible_broker_that_is_no_replica_is_not_elected(cluster: SmallCluster) -> None:
    """A replica that a reassignment removed can stay in the ELR; Kafka looks for its directory and finds none."""
    cluster.write(PartitionChangeRecord(partition_id=0, topic_id=cluster.topic_id("t"), replicas=(0, 2)))
    assert 1 in cluster.partition("t").elr
    cluster.heartbeat(1)
    cluster.heartbeat(0, want_fence=True)
    assert cluster.partition("t").leader == -1
    rows = np.array(cluster.image.partitions.rows_of(cluster.topic_id("t")))
    leader_and_isr_changes(cluster.image, cluster.config, rows, broker_to_add=1)
    for kind in ("PREFERRED", "UNCLEAN"):
        request = ElectLeadersRequest.model_validate({"election_type": kind, "topic_partitions": None})
        cluster.commit(decide_elect_leaders(cluster.image, cluster.config, request))
    assert cluster.partition("t").leader == -1
    cluster.heartbeat(2)
    assert cluster.partition("t").leader == 2


def test_directory_lost_after_a_topic_with_an_empty_isr_was_deleted(cluster: SmallCluster) -> None:
    cluster.heartbeat(0, want_fence=True)
    assert cluster.partition("t").isr == ()
    delete(cluster)
    _, records = cluster.heartbeat(0, offline_log_dirs=[uuid(2, 0)])
    assert [type(record).__name__ for record in records] == ["BrokerRegistrationChangeRecord"] * 2


def test_eligible_broker_restarts_after_its_eligibility_was_cleared(cluster: SmallCluster) -> None:
    set_min_isr(cluster, "2")
    assert cluster.partition("t").elr == ()
    before = cluster.partition("t")
    restart(cluster, 1)
    assert cluster.partition("t") == before


def test_eligible_broker_restarts_after_the_topic_is_gone(cluster: SmallCluster) -> None:
    set_min_isr(cluster, "2")
    delete(cluster)
    restart(cluster, 1)
    assert cluster.image.cluster.brokers[1].incarnation_id == uuid(1, 1, 1)
