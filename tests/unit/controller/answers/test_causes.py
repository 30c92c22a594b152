"""Whom a partition misses: those whom the rules of election and reassignment wait for, and no others."""

from __future__ import annotations

import numpy as np
import pytest

from quorate.controller.answers.causes import causes_of
from quorate.controller.answers.explain import explain
from quorate.controller.answers.subjects import AskedPartitions
from quorate.controller.decisions.decision import Decision
from quorate.metadata_log.records.records import PartitionRecord, TopicRecord, VersionedRecord
from quorate.snapshots.counts.cells import Cells
from quorate.snapshots.table.directories import LOST_CODE
from tests.unit.controller.small_cluster import SmallCluster, uuid

BROKERS = 4


def missed(lists: dict[str, object], *, elr_is_enabled: bool, down: int = BROKERS) -> dict[str, list[int]]:
    """The brokers that each symptom of the only partition is explained by; the first ``down`` brokers are fenced."""
    cluster = SmallCluster(BROKERS, elr=elr_is_enabled)
    values: dict[str, object] = {"replicas": (0, 1, 2), "leader": -1, "isr": (), "leader_epoch": 0}
    values |= lists
    replicas = values["replicas"]
    assert isinstance(replicas, tuple)
    directories = tuple(uuid(2, broker) for broker in replicas)
    partition = PartitionRecord(partition_id=0, topic_id=uuid(3, 7), directories=directories, **values)  # type: ignore[arg-type]
    for broker in range(down):
        cluster.heartbeat(broker, want_fence=True)
    cluster.write(TopicRecord("t", uuid(3, 7)))
    cluster.commit(Decision([VersionedRecord(partition, 2)], None))
    found = explain(AskedPartitions().scope(cluster.image), cluster.config, 1, {})
    return {one.code: sorted(cause.broker for cause in one.causes) for one in found.symptoms}


@pytest.mark.parametrize(
    ("elr_is_enabled", "lists", "brokers"),
    [
        (True, {"isr": (1,), "eligible_leader_replicas": (2,)}, [1]),
        (True, {"eligible_leader_replicas": (1, 2)}, [1, 2]),
        (True, {"eligible_leader_replicas": (1, 3)}, [1]),
        (True, {"eligible_leader_replicas": (3,)}, [0, 1, 2]),
        (True, {"last_known_elr": (2,)}, [2]),
        (True, {"last_known_elr": (1, 2)}, [0, 1, 2]),
        (True, {"last_known_elr": (-1,)}, [0, 1, 2]),
        (False, {"last_known_elr": (2,)}, [0, 1, 2]),
        (False, {"isr": (0,)}, [0]),
    ],
)
def test_partition_without_a_leader_misses_those_whom_an_election_would_take(
    elr_is_enabled: bool, lists: dict[str, object], brokers: list[int]
) -> None:
    """An eligible replica is not asked while somebody is in sync, and of several last known ones nobody leads."""
    assert missed(lists, elr_is_enabled=elr_is_enabled)["PARTITIONS_OFFLINE"] == brokers


@pytest.mark.parametrize(
    ("isr", "adding", "removing", "brokers"),
    [
        ((0,), (2,), (1,), [2]),
        ((0,), (), (2,), [1]),
        ((0,), (2,), (), [2]),
        ((0, 1), (), (2,), []),
    ],
)
def test_open_reassignment_misses_who_must_be_in_sync_before_it_ends(
    isr: tuple[int, ...], adding: tuple[int, ...], removing: tuple[int, ...], brokers: list[int]
) -> None:
    """Where more go than come all that stay must be."""
    lists: dict[str, object] = {"isr": isr, "leader": 0, "adding_replicas": adding, "removing_replicas": removing}
    assert missed(lists, elr_is_enabled=True, down=0)["REASSIGNMENTS_OPEN"] == brokers


def test_causes_are_told_by_how_much_they_explain_and_of_each_broker_the_first_that_holds() -> None:
    cluster = SmallCluster(4)
    cluster.heartbeat(3, want_fence=True)
    brokers = np.array([0, 3, 3, 3, 7, 7, 7, 1, 1, 1, 1])
    missing = Cells.of((brokers, np.full(len(brokers), LOST_CODE)))
    found = [(cause.code, cause.broker, cause.partitions) for cause in causes_of(cluster.image, missing, {3: 5})]
    # None of them has this directory, but who is down, or unknown, is that first.
    assert found == [
        ("DIRECTORY_OFFLINE", 1, 4),
        ("BROKER_DOWN", 3, 3),
        ("BROKER_UNKNOWN", 7, 3),
        ("DIRECTORY_OFFLINE", 0, 1),
    ]
