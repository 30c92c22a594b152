"""What a broker of ours says of deleted topics: nothing is left, but for what lay in a directory that had failed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from quorate.broker.publisher import Manifest
from quorate.broker.replica_deletions import RehearsalDeletions
from quorate.metadata_log.ids import DIRECTORY_LOST
from quorate.metadata_log.records.records import PartitionRecord, Record, RemoveTopicRecord, TopicRecord
from quorate.snapshots.difference.delta import MetadataDelta
from quorate.snapshots.image.image import EMPTY_IMAGE, MetadataImage
from tests.unit.broker.images import registration, replayed, uuid

TOPIC = uuid(1)


def partition(number: int, directories: Sequence[bytes]) -> PartitionRecord:
    return PartitionRecord(
        partition_id=number, topic_id=TOPIC, replicas=(1, 2), isr=(1, 2), leader=1, directories=tuple(directories)
    )


class Told:
    """A publisher that has seen an image; brokers 1 and 3 are of this process."""

    def __init__(self) -> None:
        self.deletions = RehearsalDeletions(lambda: frozenset({1, 3}))
        self.image = EMPTY_IMAGE
        lost = [DIRECTORY_LOST, uuid(502)]
        failed = [uuid(77), uuid(502)]
        sound = [uuid(501), uuid(502)]
        self.tell(registration(1), registration(2), registration(3), TopicRecord("t", TOPIC))
        self.tell(partition(0, sound), partition(1, failed), partition(2, lost))

    def tell(self, *records: Record) -> None:
        before, self.image = self.image, replayed(self.image, *records)
        self.publish(before)

    def publish(self, before: MetadataImage) -> None:
        manifest = Manifest(self.image.provenance, 1, 0, 0.0, False)
        self.deletions.on_metadata_update(MetadataDelta(before, self.image), self.image, manifest)

    def left(self, broker_id: int) -> list[tuple[str, list[int], list[int]]]:
        said = self.deletions.said_by(broker_id)
        assert said is not None
        assert said.metadata_offset == self.image.provenance.last_contained_offset
        return [(one.name, one.deleting, one.ineligible) for one in said.topics]


@pytest.fixture
def told() -> Told:
    return Told()


def test_broker_that_knows_no_metadata_yet_says_nothing() -> None:
    assert RehearsalDeletions(lambda: frozenset({1})).said_by(1) is None


def test_only_what_lies_in_a_failed_directory_of_a_broker_here_is_left(told: Told) -> None:
    assert told.left(1) == []
    told.tell(RemoveTopicRecord(TOPIC))
    assert told.left(1) == [("t", [], [1, 2])]
    assert told.left(3) == []


def test_what_is_left_goes_when_its_directory_is_registered_again(told: Told) -> None:
    told.tell(RemoveTopicRecord(TOPIC))
    told.tell(replace(registration(1), log_dirs=(uuid(501), uuid(77))))
    assert told.left(1) == [("t", [], [2])]


def test_broker_with_too_much_left_says_nothing(told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quorate.broker.replica_deletions.UNDELETED_TOPICS_MAX", 0)
    told.tell(RemoveTopicRecord(TOPIC))
    assert told.deletions.said_by(1) is None
    assert told.left(3) == []
