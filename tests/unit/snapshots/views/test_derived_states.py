"""States by Kafka's names: what each means, that columns say the same as single partitions, and which may follow."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest

from quorate.metadata_log.ids import DIRECTORY_LOST, DIRECTORY_UNASSIGNED
from quorate.metadata_log.records.records import PartitionChangeRecord
from quorate.snapshots.checkpoints.loading import load_image
from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.views.derived_states import (
    PARTITION_CHAINS,
    PARTITION_PREVIOUS,
    REPLICA_CHAINS,
    REPLICA_DELETION_CHAINS,
    REPLICA_PREVIOUS,
    REPLICA_RETURN,
    count_states,
    partition_state,
    replica_state,
)
from quorate.snapshots.views.state_names import (
    NEW_PARTITION,
    NEW_REPLICA,
    NON_EXISTENT_PARTITION,
    NON_EXISTENT_REPLICA,
    OFFLINE_PARTITION,
    OFFLINE_REPLICA,
    ONLINE_PARTITION,
    ONLINE_REPLICA,
    PartitionState,
    ReplicaState,
)
from tests.unit.controller.small_cluster import SmallCluster, uuid


@pytest.fixture
def cluster() -> SmallCluster:
    """Brokers 0 to 2, and partition t-0 of all three."""
    cluster = SmallCluster()
    cluster.create("t", [0, 1, 2])
    return cluster


def replicas_of(cluster: SmallCluster) -> list[ReplicaState]:
    return [replica_state(cluster.image, cluster.partition("t"), broker) for broker in range(4)]


def test_partition_is_online_while_it_has_a_leader_and_offline_after(cluster: SmallCluster) -> None:
    assert partition_state(cluster.partition("t")) == ONLINE_PARTITION
    for broker in range(3):
        cluster.heartbeat(broker, want_fence=True)
    assert partition_state(cluster.partition("t")) == OFFLINE_PARTITION
    assert partition_state(None) == NON_EXISTENT_PARTITION


def test_partition_without_a_leader_that_never_changed_is_new(cluster: SmallCluster) -> None:
    """Only another writer's log can hold one: here a partition is created with its leader."""
    created = cluster.partition("t")
    assert (created.leader_epoch, created.partition_epoch) == (0, 0)
    assert partition_state(replace(created, leader=-1)) == NEW_PARTITION
    assert partition_state(replace(created, leader=-1, partition_epoch=1)) == OFFLINE_PARTITION


def test_replica_is_online_with_its_broker_in_sync_or_not(cluster: SmallCluster) -> None:
    assert replicas_of(cluster) == [ONLINE_REPLICA] * 3 + [NON_EXISTENT_REPLICA]
    cluster.heartbeat(1, want_fence=True)
    assert replicas_of(cluster)[:3] == [ONLINE_REPLICA, OFFLINE_REPLICA, ONLINE_REPLICA]
    cluster.heartbeat(1)
    assert cluster.partition("t").isr == (0, 2)
    assert replicas_of(cluster)[:3] == [ONLINE_REPLICA] * 3


@pytest.mark.parametrize(
    ("directory", "state"),
    [
        (uuid(2, 1), ONLINE_REPLICA),
        (uuid(2, 9), OFFLINE_REPLICA),
        (DIRECTORY_UNASSIGNED, ONLINE_REPLICA),
        (DIRECTORY_LOST, OFFLINE_REPLICA),
    ],
)
def test_replica_is_offline_where_its_directory_is(
    cluster: SmallCluster, directory: bytes, state: ReplicaState
) -> None:
    directories = (uuid(2, 0), directory, uuid(2, 2))
    partition = replace(cluster.partition("t"), directories=directories)
    assert replica_state(cluster.image, partition, 1) == state


def test_replica_that_is_being_added_is_new_while_its_broker_lives(cluster: SmallCluster) -> None:
    change = PartitionChangeRecord(
        partition_id=0, topic_id=cluster.topic_id("t"), replicas=(0, 1, 2, 3), adding_replicas=(2, 3)
    )
    partition = cluster.partition("t").changed_by(change)
    states = [replica_state(cluster.image, partition, broker) for broker in range(4)]
    assert states == [ONLINE_REPLICA, ONLINE_REPLICA, NEW_REPLICA, OFFLINE_REPLICA], "there is no broker 3"


def one_by_one(image: MetadataImage) -> tuple[Counter[PartitionState], Counter[ReplicaState]]:
    partitions: Counter[PartitionState] = Counter()
    replicas: Counter[ReplicaState] = Counter()
    for topic_id in image.topics.by_id:
        for _, partition in image.partitions.partitions_of(topic_id):
            partitions[partition_state(partition)] += 1
            replicas.update(replica_state(image, partition, broker) for broker in partition.replicas)
    return partitions, replicas


@pytest.mark.parametrize("capture", ["static/m1", "static/m2", "static/m3", "static/m4", "dynamic-small/m1"])
def test_counts_of_captured_clusters_equal_looking_at_each_partition(kafka_data: Path, capture: str) -> None:
    image = load_image(kafka_data / capture / "log")
    counted = count_states(image)
    partitions, replicas = one_by_one(image)
    assert {state: count for state, count in counted.partitions.items() if count} == partitions
    assert {state: count for state, count in counted.replicas.items() if count} == replicas
    assert sum(counted.partitions.values()) == len(image.partitions)


def test_counts_follow_a_broker_that_is_fenced() -> None:
    cluster = SmallCluster()
    cluster.create("many", *([0, 1, 2] for _ in range(50)))
    assert count_states(cluster.image).replicas == {NEW_REPLICA: 0, ONLINE_REPLICA: 150, OFFLINE_REPLICA: 0}
    cluster.heartbeat(2, want_fence=True)
    counts = count_states(cluster.image)
    assert counts.replicas == {NEW_REPLICA: 0, ONLINE_REPLICA: 100, OFFLINE_REPLICA: 50}
    assert counts.partitions == {NEW_PARTITION: 0, ONLINE_PARTITION: 50, OFFLINE_PARTITION: 0}


def test_tables_know_every_state() -> None:
    assert set(PARTITION_PREVIOUS) == set(get_args(PartitionState))
    assert set(REPLICA_PREVIOUS) == set(get_args(ReplicaState))


def test_every_step_of_a_chain_is_legal_in_kafkas_table() -> None:
    for partition_chain in PARTITION_CHAINS:
        for partition_step in itertools.pairwise(partition_chain):
            assert partition_step[0] in PARTITION_PREVIOUS[partition_step[1]], partition_chain
    for replica_chain in (*REPLICA_CHAINS, *REPLICA_DELETION_CHAINS):
        for replica_step in itertools.pairwise(replica_chain):
            assert replica_step[0] in REPLICA_PREVIOUS[replica_step[1]], replica_chain


def test_the_return_of_a_replica_being_added_is_what_kafkas_table_lacks() -> None:
    before, after = REPLICA_RETURN
    assert before not in REPLICA_PREVIOUS[after]
