"""The records of a snapshot: order, versions, and Java's order of hash maps."""

from __future__ import annotations

from typing import Any

import pytest

from quorate.metadata_log.records import records as r
from quorate.snapshots.checkpoints.as_records import image_records
from quorate.snapshots.checkpoints.checkpoint import checkpoint_items
from quorate.snapshots.checkpoints.hash_map_order import in_hash_map_order
from quorate.snapshots.image.image import EMPTY_IMAGE
from quorate.snapshots.replay.replay import replay
from tests.record_stream import versioned

TOPIC, DIRECTORY = b"t" * 16, b"d" * 16


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ([], []),
        (["PLAINTEXT", "SASL"], ["SASL", "PLAINTEXT"]),
        # In one bucket: the one put first comes first.
        (["share.version", "metadata.version"], ["share.version", "metadata.version"]),
        (["metadata.version", "share.version"], ["metadata.version", "share.version"]),
        (["a", "b", "a"], ["a", "b"]),
        # Single characters are their own hash: 13 of them make the map grow to 32 buckets.
        ([chr(97 + n) for n in range(12, -1, -1)], [chr(97 + n) for n in range(13)]),
        (["ünïcode", "𝄞", ""], ["", "𝄞", "ünïcode"]),
        # Java's null key, as brokers without a rack have it, is in the first bucket.
        (["a", None, "b"], [None, "a", "b"]),
        (["p", None], ["p", None]),
    ],
)
def test_names_come_in_the_order_of_a_java_hash_map(names: list[str | None], expected: list[str | None]) -> None:
    assert list(in_hash_map_order(names, lambda name: name)) == expected


def records_at(level: int, *records: Any) -> list[tuple[str, int]]:
    """Types and versions of the snapshot of some records at a metadata.version."""
    image = replay(EMPTY_IMAGE, [versioned(r.FeatureLevelRecord("metadata.version", level)), *map(versioned, records)])
    return [(type(record).__name__, version) for record, version in image_records(image)][1:]


@pytest.mark.parametrize(("level", "version"), [(7, 1), (8, 2), (16, 2), (17, 3), (29, 3), (30, 4)])
def test_registration_is_written_in_the_version_of_the_level(level: int, version: int) -> None:
    assert records_at(level, r.RegisterBrokerRecord(1)) == [("RegisterBrokerRecord", version)]


@pytest.mark.parametrize(("level", "version"), [(7, 0), (16, 0), (17, 1), (22, 1), (23, 2), (30, 2)])
def test_partition_is_written_in_the_version_of_the_level(level: int, version: int) -> None:
    topic = r.TopicRecord("t", TOPIC)
    partition = r.PartitionRecord(0, TOPIC, (1,), (1,), leader=1)

    assert records_at(level, topic, partition) == [("TopicRecord", 0), ("PartitionRecord", version)]


def test_what_a_level_cannot_write_raises_the_version_instead_of_being_lost() -> None:
    topic = r.TopicRecord("t", TOPIC)
    in_directory = r.PartitionRecord(0, TOPIC, (1,), (1,), leader=1, directories=(DIRECTORY,))
    with_elr = r.PartitionRecord(1, TOPIC, (1,), (), leader=-1, eligible_leader_replicas=(1,))
    cordoned = r.RegisterBrokerRecord(1, cordoned_log_dirs=(DIRECTORY,))

    assert records_at(7, topic, in_directory, with_elr, cordoned) == [
        ("RegisterBrokerRecord", 4),
        ("TopicRecord", 0),
        ("PartitionRecord", 1),
        ("PartitionRecord", 2),
    ]


def test_snapshot_begins_with_metadata_version_and_a_checkpoint_holds_the_same_records() -> None:
    records = [
        r.FeatureLevelRecord("group.version", 1),
        r.FeatureLevelRecord("metadata.version", 30),
        r.TopicRecord("b", TOPIC),
        r.TopicRecord("a", DIRECTORY),
        *(r.PartitionRecord(n, TOPIC, (1, 2, 3)[: n % 3 + 1], (1,), leader=1, directories=()) for n in range(50)),
        r.ConfigRecord(2, "a", "x", "y"),
    ]
    image = replay(EMPTY_IMAGE, [versioned(record) for record in records])
    shown = [record for record, _ in image_records(image)]
    written: list[Any] = []
    for item in checkpoint_items(image):
        if isinstance(item, r.VersionedRecord):
            written.append(item.record)
        else:
            written += [item.record(row) for row in range(len(item))]

    assert shown[0] == r.FeatureLevelRecord("metadata.version", 30)
    assert [record.name for record in shown if isinstance(record, r.TopicRecord)] == ["a", "b"]
    assert sorted(map(repr, written)) == sorted(map(repr, shown))
