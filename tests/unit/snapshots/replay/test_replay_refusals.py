"""Records that an image cannot take: each is refused with a reason, by the row path and by the columns."""

from __future__ import annotations

from typing import Any

import pytest

from quorate.metadata_log.records import records as r
from quorate.snapshots.errors import ReplayError
from quorate.snapshots.image.image import EMPTY_IMAGE, MetadataImage
from quorate.snapshots.replay.replay import replay
from quorate.snapshots.table.table_editor import PARTITIONS_PER_TOPIC_MAX
from tests.record_stream import as_runs, versioned

TOPIC, OTHER = b"t" * 16, b"o" * 16
DIRECTORY = b"d" * 16


def partition(**changes: Any) -> r.PartitionRecord:
    fields: dict[str, Any] = {"partition_id": 0, "topic_id": TOPIC, "replicas": (1, 2), "isr": (1, 2), "leader": 1}
    return r.PartitionRecord(**{**fields, "leader_epoch": 0, "partition_epoch": 0, **changes})


def change(**changes: Any) -> r.PartitionChangeRecord:
    return r.PartitionChangeRecord(**{"partition_id": 0, "topic_id": TOPIC, **changes})


@pytest.fixture
def image() -> MetadataImage:
    records = [
        r.TopicRecord("t", TOPIC),
        partition(),
        r.RegisterBrokerRecord(broker_id=1, broker_epoch=7),
        r.ProducerIdsRecord(1, 1, 1000),
    ]
    return replay(EMPTY_IMAGE, [versioned(record) for record in records])


PARTITION_REFUSALS = [
    (partition(topic_id=OTHER), "there is no topic"),
    (partition(partition_id=-1), "not negative"),
    (partition(partition_id=PARTITIONS_PER_TOPIC_MAX), "the last number is"),
    (partition(replicas=(1, 1)), "twice"),
    (partition(isr=(2, 2)), "twice"),
    (partition(adding_replicas=(2, 2)), "twice"),
    (partition(directories=(DIRECTORY,)), "directories"),
    (partition(leader_recovery_state=2), "recovery state"),
    (partition(replicas=tuple(range(65))), "brokers, more than 64"),
    (partition(replicas=tuple(range(60)), isr=tuple(range(100, 105))), "brokers, more than 64"),
    (partition(isr=(-(2**31),)), "broker"),
    (change(topic_id=OTHER), "no partition 0"),
    (change(partition_id=1), "no partition 1"),
    (change(partition_id=-1), "no partition -1"),
    (change(replicas=(3, 3)), "twice"),
    (change(isr=(1, 1)), "twice"),
    (change(eligible_leader_replicas=(9, 9)), "twice"),
    (change(directories=(DIRECTORY,)), "directories"),
    (change(replicas=(1, 2, 3), directories=(DIRECTORY,)), "directories"),
    (change(leader_recovery_state=2), "recovery state"),
    (change(leader_recovery_state=-2), "recovery state"),
]


@pytest.mark.parametrize(("record", "reason"), PARTITION_REFUSALS)
@pytest.mark.parametrize("in_runs", [False, True])
def test_partition_record_that_cannot_be_is_refused(
    image: MetadataImage, record: Any, reason: str, in_runs: bool
) -> None:
    items = as_runs([record]) if in_runs else [versioned(record)]

    with pytest.raises(ReplayError, match=reason):
        replay(image, items)


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (r.TopicRecord("t", OTHER), "exists already"),
        (r.TopicRecord("u", TOPIC), "exists already"),
        (r.RemoveTopicRecord(OTHER), "there is no topic"),
        (r.ClearElrRecord("u"), "there is no topic 'u'"),
        (r.UnregisterBrokerRecord(2, 7), "broker 2 is not registered"),
        (r.UnregisterBrokerRecord(1, 8), "has epoch 7, not 8"),
        (r.FenceBrokerRecord(1, 8), "has epoch 7, not 8"),
        (r.UnfenceBrokerRecord(2, 7), "not registered"),
        (r.BrokerRegistrationChangeRecord(1, 6), "has epoch 7, not 6"),
        (r.BrokerRegistrationChangeRecord(1, 7, fenced=2), "fenced 2 is none of"),
        (r.BrokerRegistrationChangeRecord(1, 7, in_controlled_shutdown=-1), "neither 0 nor 1"),
        (r.ProducerIdsRecord(1, 1, 1000), "not above 1000"),
        (r.RemoveAccessControlEntryRecord(OTHER), "there is no entry"),
        (r.RemoveUserScramCredentialRecord("x", 1), "no credential of mechanism 1"),
        (r.BeginTransactionRecord(), "no meaning inside"),
    ],
)
def test_record_that_names_something_unknown_is_refused(image: MetadataImage, record: Any, reason: str) -> None:
    with pytest.raises(ReplayError, match=reason):
        replay(image, [versioned(record)])


def test_removal_of_unknown_token_is_no_error_as_in_kafka(image: MetadataImage) -> None:
    assert replay(image, [versioned(r.RemoveDelegationTokenRecord("x"))]) == image


@pytest.mark.parametrize("highest", [{"partition_epoch": 2**31 - 1}, {"leader_epoch": 2**31 - 1}], ids=str)
@pytest.mark.parametrize("in_runs", [False, True])
def test_epoch_that_cannot_rise_any_more_is_refused(highest: dict[str, int], in_runs: bool) -> None:
    """Found by mutated logs: row by row it was an error of numpy's, and in runs the epoch became negative."""
    items = as_runs([change(leader=2)]) if in_runs else [versioned(change(leader=2))]
    image = replay(EMPTY_IMAGE, [versioned(r.TopicRecord("t", TOPIC)), versioned(partition(**highest))])

    with pytest.raises(ReplayError, match="beyond 32 bits"):
        replay(image, items)
