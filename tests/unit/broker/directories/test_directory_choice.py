"""Which replicas lie in no directory, and which one they are put into."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from quorate.broker.directories.directory_choice import UnplacedReplicas, choose_directories
from quorate.metadata_log.ids import DIRECTORY_LOST, DIRECTORY_MIGRATING, DIRECTORY_UNASSIGNED
from quorate.metadata_log.records.records import BrokerRegistrationChangeRecord, PartitionRecord
from quorate.snapshots.image.image import MetadataImage
from tests.unit.broker.images import change, cluster_image, partition, registration, replayed, uuid

ONE, OTHER = uuid(501), uuid(601)


def lying(topic: int, number: int, *directories: bytes) -> PartitionRecord:
    """A partition on brokers 1, 2, ... in these directories."""
    return replace(partition(topic, number, range(1, len(directories) + 1)), directories=directories)


def image(*partitions: PartitionRecord) -> MetadataImage:
    """Broker 1 has two directories, broker 2 one."""
    wide = replace(registration(1, epoch=2), log_dirs=(ONE, OTHER))
    return replayed(cluster_image([1, 2], partitions), wide)


def unplaced(taken: MetadataImage, *, begun_anew: frozenset[int] = frozenset()) -> dict[int, set[int]]:
    """Numbers of the partitions that have such a replica, by broker."""
    found = UnplacedReplicas()
    found.update(taken, [1, 2], begun_anew)
    return {broker: {number for _, number in found.of(broker)} for broker in (1, 2)}


def test_unplaced_are_those_in_no_directory_of_their_broker() -> None:
    two = uuid(502)
    taken = image(
        lying(5, 0, DIRECTORY_UNASSIGNED, two),
        lying(5, 1, ONE, DIRECTORY_MIGRATING),
        lying(5, 2, OTHER, two),
        lying(5, 3, uuid(777), DIRECTORY_LOST),
    )
    assert unplaced(taken) == {1: {0}, 2: {1}}, "what has failed stays lost while the broker runs"
    assert unplaced(taken, begun_anew=frozenset({1})) == {1: {0, 3}, 2: {1}}
    assert unplaced(taken, begun_anew=frozenset({1, 2})) == {1: {0, 3}, 2: {1, 3}}


def test_unplaced_another_image_is_followed() -> None:
    found, before = UnplacedReplicas(), image(lying(5, 0, DIRECTORY_UNASSIGNED), lying(5, 1, DIRECTORY_UNASSIGNED))
    found.update(before, [1], frozenset())
    assert found.of(1) == [(uuid(5), 0), (uuid(5), 1)]

    after = replayed(before, replace(change(5, 0), directories=(ONE,)))
    found.update(after, [1], frozenset())
    assert found.of(1) == [(uuid(5), 1)]
    # What lies there is elsewhere once the directory is gone, if the broker begins anew.
    lost = replayed(after, BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=2, log_dirs=(OTHER,)))
    found.update(lost, [1], frozenset({1}))
    assert found.of(1) == [(uuid(5), 0), (uuid(5), 1)]


def test_choice_fewest_replicas_first_those_on_their_way_included() -> None:
    taken = image(
        lying(5, 0, ONE), lying(5, 1, ONE), *(lying(5, number, DIRECTORY_UNASSIGNED) for number in range(2, 9))
    )
    due = [(uuid(5), number) for number in range(2, 8)]

    assert Counter(choose_directories(taken, 1, due, []).values()) == {ONE: 2, OTHER: 4}
    assert Counter(choose_directories(taken, 1, due, [OTHER, OTHER]).values()) == {ONE: 3, OTHER: 3}


def test_choice_cordoned_directory_is_taken_only_where_all_are() -> None:
    taken, due = image(lying(5, 0, DIRECTORY_UNASSIGNED)), [(uuid(5), 0)]
    for cordoned, wanted in (((ONE,), OTHER), ((OTHER,), ONE), ((ONE, OTHER), ONE)):
        said = BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=2, cordoned_log_dirs=cordoned)
        assert choose_directories(replayed(taken, said), 1, due, []) == {due[0]: wanted}
