"""Which changes give partitions other replicas, and which do not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import pytest

from quorate.broker.replicas.moved_replicas import moves_replicas
from quorate.metadata_log.ids import DIRECTORY_LOST, DIRECTORY_UNASSIGNED
from quorate.metadata_log.records.records import (
    BrokerRegistrationChangeRecord,
    PartitionChangeRecord,
    Record,
    RemoveTopicRecord,
    TopicRecord,
)
from quorate.snapshots.table.partition_table import PartitionTable
from tests.unit.broker.images import cluster_image, fencing, partition, reloaded, replayed, uuid

CLUSTER = cluster_image([1, 2, 3, 4, 5], [partition(0, number, [1, 2, 3]) for number in range(3)])
DIRECTORIES = {broker: uuid(500 + broker) for broker in range(1, 6)}


def moved(*replicas: int) -> PartitionChangeRecord:
    directories = tuple(DIRECTORIES[broker] for broker in replicas)
    return PartitionChangeRecord(1, uuid(0), replicas=replicas, isr=replicas[:1], directories=directories)


@pytest.mark.parametrize(
    ("records", "moves"),
    [
        ([moved(1, 2)], True),
        ([moved(1, 2, 4)], True),
        ([moved(1, 2, 3, 4, 5)], True),
        ([moved(1, 3, 2)], True),
        ([PartitionChangeRecord(1, uuid(0), leader=2, isr=(2,))], False),
        ([PartitionChangeRecord(1, uuid(0), adding_replicas=(3,))], False),
        ([fencing(2, fenced=True)], False),
        ([PartitionChangeRecord(1, uuid(0), directories=(uuid(501), uuid(602), uuid(503)))], True),
        ([PartitionChangeRecord(1, uuid(0), directories=(uuid(501), DIRECTORY_LOST, uuid(503)))], True),
        ([BrokerRegistrationChangeRecord(broker_id=2, broker_epoch=1, log_dirs=(uuid(602),))], True),
        ([TopicRecord("u", uuid(1)), partition(1, 0, [1, 2, 3])], False),
        ([RemoveTopicRecord(uuid(0))], False),
        ([RemoveTopicRecord(uuid(0)), TopicRecord("u", uuid(1)), partition(1, 1, [3, 4, 5])], False),
    ],
)
def test_only_other_replicas_of_partitions_that_stay_are_moves(records: Sequence[Record], moves: bool) -> None:
    assert moves_replicas(CLUSTER, replayed(CLUSTER, *records)) is moves


def test_replica_that_is_assigned_its_first_directory_does_not_move() -> None:
    nowhere = PartitionChangeRecord(1, uuid(0), directories=(uuid(501), DIRECTORY_UNASSIGNED, uuid(503)))
    somewhere = PartitionChangeRecord(1, uuid(0), directories=(uuid(501), uuid(502), uuid(503)))
    unassigned = replayed(CLUSTER, nowhere)
    assert not moves_replicas(unassigned, replayed(unassigned, somewhere))


def test_replica_that_goes_and_comes_in_its_slot_moves_each_time() -> None:
    """It keeps the slot where the records do not say that it is added no more."""
    images = [replayed(CLUSTER, moved(1, 3))]
    for change in (replace(moved(1, 3, 2), adding_replicas=(2,)), moved(1, 3), moved(1, 3, 2)):
        images.append(replayed(images[-1], change))
    assert [moves_replicas(before, after) for before, after in pairwise(images)] == [True] * 3


def test_table_that_was_read_anew_may_hold_its_partitions_anywhere() -> None:
    large = replayed(CLUSTER, *(partition(0, number, [1, 2, 3]) for number in range(3, 5_000)))
    assert not moves_replicas(CLUSTER, CLUSTER)
    assert moves_replicas(large, CLUSTER)
    fewer = PartitionTable(pages=large.partitions.pages[:1])
    assert moves_replicas(large, large._replace(partitions=fewer)), "what lay in the other pages may lie anywhere"


def test_directory_that_has_the_number_of_another_one_is_another_one() -> None:
    elsewhere = PartitionChangeRecord(1, uuid(0), directories=(uuid(501), uuid(602), uuid(503)))
    image = cluster_image([1, 2, 3], [partition(0, 1, [1, 2, 3])])
    assert moves_replicas(image, reloaded(replayed(image, elsewhere)))
    assert not moves_replicas(image, reloaded(image))
