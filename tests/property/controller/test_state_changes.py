"""Whatever is asked of a controller, partitions and replicas change their states as Kafka's tables allow."""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from collections.abc import Iterator

from hypothesis import given, settings
from hypothesis import strategies as st

from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.table.partition import Partition
from quorate.snapshots.views.derived_states import (
    PARTITION_CHAINS,
    PARTITION_PREVIOUS,
    REPLICA_CHAINS,
    REPLICA_PREVIOUS,
    REPLICA_RETURN,
    partition_state,
    replica_state,
)
from quorate.snapshots.views.state_names import PartitionState, ReplicaState
from tests.property.random_requests import BROKERS, RandomRequests

_PARTITION_ENDS = {(chain[0], chain[-1]) for chain in PARTITION_CHAINS}
_REPLICA_ENDS = {(chain[0], chain[-1]) for chain in REPLICA_CHAINS}

PartitionStep = tuple[PartitionState, PartitionState]
ReplicaStep = tuple[ReplicaState, ReplicaState]


def partitions(image: MetadataImage) -> dict[tuple[bytes, int], Partition]:
    return {
        (topic_id, number): partition
        for topic_id in image.topics.by_id
        for number, partition in image.partitions.partitions_of(topic_id)
    }


def steps(old: MetadataImage, new: MetadataImage) -> Iterator[tuple[PartitionStep, list[ReplicaStep]]]:
    """What every partition, and every replica of it, was and is."""
    before, after = partitions(old), partitions(new)
    for key in before.keys() | after.keys():
        was, is_ = before.get(key), after.get(key)
        replica_steps = [(replica_state(old, was, id_), replica_state(new, is_, id_)) for id_ in BROKERS]
        yield (partition_state(was), partition_state(is_)), replica_steps


def is_legal_partition_step(step: PartitionStep) -> bool:
    was, is_ = step
    return was == is_ or was in PARTITION_PREVIOUS[is_] or step in _PARTITION_ENDS


def is_legal_replica_step(step: ReplicaStep) -> bool:
    was, is_ = step
    return was == is_ or was in REPLICA_PREVIOUS[is_] or step in _REPLICA_ENDS or step == REPLICA_RETURN


def run(seed: int, requests: int) -> RandomRequests:
    made = RandomRequests(seed)
    asyncio.run(made.run(requests))
    return made


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_every_change_between_committed_images_is_a_legal_transition(seed: int) -> None:
    for old, new in itertools.pairwise(run(seed, requests=60).images):
        for partition_step, replica_steps in steps(old, new):
            assert is_legal_partition_step(partition_step), partition_step
            for replica_step in replica_steps:
                assert is_legal_replica_step(replica_step), replica_step


def test_random_requests_reach_the_transitions_that_there_are() -> None:
    """So that the property above is about something."""
    partition_seen: Counter[PartitionStep] = Counter()
    replica_seen: Counter[ReplicaStep] = Counter()
    for seed in range(12):
        for old, new in itertools.pairwise(run(seed, requests=120).images):
            for partition_step, replica_steps in steps(old, new):
                partition_seen[partition_step] += 1
                replica_seen.update(replica_steps)
    assert {("OnlinePartition", "OfflinePartition"), ("OfflinePartition", "OnlinePartition")} <= partition_seen.keys()
    assert partition_seen.keys() >= _PARTITION_ENDS
    assert replica_seen.keys() >= _REPLICA_ENDS
    assert replica_seen.keys() >= {
        ("NewReplica", "OnlineReplica"),
        ("NewReplica", "OfflineReplica"),
        ("OnlineReplica", "OfflineReplica"),
        ("OfflineReplica", "OnlineReplica"),
        REPLICA_RETURN,
    }
