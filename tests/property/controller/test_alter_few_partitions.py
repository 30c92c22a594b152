"""A leader is answered, and the log told, the same whether partitions are taken one by one, by kind or as columns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorate.controller.decisions.decision import Decision
from quorate.controller.decisions.metadata_version import ELR_LEVEL
from quorate.controller.partitions import alter_partition, row_patterns
from quorate.controller.partitions.alter_partition import NO_BROKER, decide_alter_partition_columns
from quorate.controller.protocol.altered_partitions import AlteredPartitions, AlterPartitionColumns
from quorate.metadata_log.errors import ErrorCode
from quorate.metadata_log.ids import DIRECTORY_LOST, DIRECTORY_UNASSIGNED
from quorate.metadata_log.records.records import ConfigRecord, FeatureLevelRecord, PartitionRecord, VersionedRecord
from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.image.image_parts import TOPIC_RESOURCE, Provenance
from quorate.snapshots.replay.replay import replay
from quorate.snapshots.table.partition import Partition
from tests.default_parts import controller_config
from tests.guards.sound_images import take_broken
from tests.unit.controller.small_cluster import CLUSTER_ID, SmallCluster, records_of, uuid

BROKERS = 6
TOPICS = ("plain", "strict", "unclean")
PARTITIONS = 4
LEADER = 0


@pytest.fixture(autouse=True)
def _states_beyond_the_rules() -> Iterator[None]:
    """Let the drawn states be: a log of who knows whom may hold them, and they are to be decided the same."""
    yield
    assert take_broken()


def cluster_of(rng: Random) -> SmallCluster:
    """Partitions in any state that a log could hold; the leader that will ask leads most of them."""
    config = controller_config(3000, CLUSTER_ID, elects_last_known_leader=rng.random() < 0.5)
    cluster = SmallCluster(BROKERS, elr=rng.random() < 0.6, config=config)
    level = 30 if cluster.image.features.is_elr_enabled else rng.choice([30, 20, 14])
    for topic in TOPICS:
        cluster.create(topic, *([rng.sample(range(BROKERS), 3) for _ in range(PARTITIONS)]))
    cluster.write(
        FeatureLevelRecord("metadata.version", level),
        ConfigRecord(TOPIC_RESOURCE, "strict", "min.insync.replicas", "2"),
        ConfigRecord(TOPIC_RESOURCE, "unclean", "unclean.leader.election.enable", "true"),
    )
    for topic in TOPICS:
        for number in range(PARTITIONS):
            state = any_state(cluster.topic_id(topic), number, rng)
            if level < ELR_LEVEL:
                state = replace(state, eligible_leader_replicas=None, last_known_elr=None)
            cluster.image = replaced(cluster, state)
    for broker in range(1, BROKERS):
        if rng.random() < 0.2:
            cluster.heartbeat(broker, want_fence=True)
    return cluster


def any_state(topic_id: bytes, number: int, rng: Random) -> PartitionRecord:
    def some(brokers: list[int], chance: float) -> tuple[int, ...]:
        return tuple(broker for broker in brokers if rng.random() < chance)

    replicas = rng.sample(range(BROKERS), rng.randint(1, 5))
    if LEADER not in replicas and rng.random() < 0.8:
        replicas[rng.randrange(len(replicas))] = LEADER
    isr = list(some(rng.sample(replicas, len(replicas)), 0.7))
    is_reassigned = rng.random() < 0.1
    leader = LEADER if LEADER in replicas and rng.random() < 0.9 else rng.choice([-1, *replicas])
    return PartitionRecord(
        partition_id=number,
        topic_id=topic_id,
        replicas=tuple(replicas),
        isr=tuple(isr),
        removing_replicas=some(replicas, 0.3) if is_reassigned else (),
        adding_replicas=some(replicas, 0.3) if is_reassigned else (),
        leader=leader,
        leader_recovery_state=int(rng.random() < 0.2),
        leader_epoch=rng.randrange(5),
        partition_epoch=rng.randrange(9),
        directories=tuple(
            rng.choices([uuid(2, broker), DIRECTORY_UNASSIGNED, DIRECTORY_LOST, uuid(2, 99)], [7, 1, 1, 1])[0]
            for broker in replicas
        ),
        eligible_leader_replicas=some([broker for broker in replicas if broker not in isr], 0.5) or None,
        last_known_elr=rng.choice([None, None, (-1,), (replicas[0],), tuple(sorted(replicas)), (BROKERS,)]),
    )


def replaced(cluster: SmallCluster, record: PartitionRecord) -> MetadataImage:
    provenance = Provenance(cluster.image.provenance.end_offset, 1, 0)
    return replay(cluster.image, [VersionedRecord(record, 2)], provenance)


def requests(cluster: SmallCluster, rng: Random, count: int) -> AlterPartitionColumns:
    """What the leader asks for some partitions: mostly what it may."""
    rows: list[dict[str, Any]] = [asked_of(cluster, rng) for _ in range(count)]
    isr, epochs = np.full((count, 5), NO_BROKER, np.int32), np.full((count, 5), -1, np.int64)
    for at, row in enumerate(rows):
        isr[at, : len(row["isr"])] = row["isr"]
        epochs[at, : len(row["isr"])] = [rng.choice([-1, cluster.epoch(broker)]) for broker in row["isr"]]
    if rng.random() < 0.05:
        epochs += 1
    return AlterPartitionColumns(
        topic_ids=np.frombuffer(b"".join(row["topic_id"] for row in rows), np.uint8).reshape(-1, 16),
        partition_ids=np.array([row["partition_id"] for row in rows], np.int32),
        leader_epochs=np.array([row["leader_epoch"] for row in rows], np.int32),
        partition_epochs=np.array([row["partition_epoch"] for row in rows], np.int32),
        leader_recovery_states=np.array([row["recovery_state"] for row in rows], np.int8),
        new_isr=isr,
        new_isr_epochs=epochs,
    )


def asked_of(cluster: SmallCluster, rng: Random) -> dict[str, Any]:
    topic, number = rng.choice(TOPICS), rng.randrange(PARTITIONS)
    present: Partition = cluster.partition(topic, number)
    isr = [broker for broker in present.replicas if broker == LEADER or rng.random() < 0.6]
    rng.shuffle(isr)
    if rng.random() < 0.1:
        isr = rng.choices(range(-1, BROKERS), k=rng.randrange(5))

    def nearly(epoch: int) -> int:
        return epoch + rng.choices([0, 1, -1], [20, 1, 1])[0]

    return {
        "topic_id": uuid(3, 99) if rng.random() < 0.05 else cluster.topic_id(topic),
        "partition_id": rng.choices([number, PARTITIONS], [20, 1])[0],
        "leader_epoch": nearly(present.leader_epoch),
        "partition_epoch": nearly(present.partition_epoch),
        "recovery_state": rng.choices([present.leader_recovery_state, 0, 1, 2], [20, 3, 1, 1])[0],
        "isr": isr,
    }


def answers(reply: AlteredPartitions) -> list[tuple[Any, ...]]:
    """The reply row by row, of refused ones the code only."""
    rows = zip(
        reply.error_codes.tolist(),
        reply.leaders.tolist(),
        reply.leader_epochs.tolist(),
        reply.isr.tolist(),
        reply.leader_recovery_states.tolist(),
        reply.partition_epochs.tolist(),
        strict=True,
    )
    return [(code, *(map(str, rest) if code == ErrorCode.NONE else ())) for code, *rest in rows]


def decided_as_columns(
    cluster: SmallCluster, epoch: int, asked: AlterPartitionColumns, rows_min: int = row_patterns.ROWS_MIN
) -> Decision[AlteredPartitions]:
    usual = alter_partition.FEW, row_patterns.ROWS_MIN
    try:
        alter_partition.FEW, row_patterns.ROWS_MIN = 0, rows_min  # type: ignore[misc] # none are few
        return decide_alter_partition_columns(cluster.image, cluster.config, LEADER, epoch, asked)
    finally:
        alter_partition.FEW, row_patterns.ROWS_MIN = usual  # type: ignore[misc]


@given(st.integers(0, 10**9), st.integers(1, alter_partition.FEW))
@settings(max_examples=60, deadline=None)
def test_alter_few_partitions_one_by_one_decides_as_the_columns(seed: int, count: int) -> None:
    rng = Random(seed)
    cluster = cluster_of(rng)
    epoch = cluster.epoch(LEADER)
    for _ in range(4):
        asked = requests(cluster, rng, count)
        few = decide_alter_partition_columns(cluster.image, cluster.config, LEADER, epoch, asked)
        many = decided_as_columns(cluster, epoch, asked)
        by_kind = decided_as_columns(cluster, epoch, asked, rows_min=1)
        assert answers(few.reply) == answers(many.reply) == answers(by_kind.reply)
        # The columns write their records by shape, not in the order of the request.
        records = [sorted(map(repr, records_of(list(decision.records)))) for decision in (few, many, by_kind)]
        assert records[0] == records[1] == records[2]
        assert {item.version for item in few.records} == {item.version for item in many.records}
        cluster.commit(few)
