"""Creating, changing, writing, loading and digesting partitions: calls are by pages and topics, never by partitions.

And what is in the works at any moment does not grow with the state: the cycle collector would look at all of it.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from quorate.metadata_log.batches.runs import PartitionChangeRun, PartitionRun
from quorate.metadata_log.records.records import TopicRecord, VersionedRecord
from quorate.snapshots.checkpoints.checkpoint import checkpoint_batches, checkpoint_chunks, read_checkpoint
from quorate.snapshots.difference.delta import MetadataDelta
from quorate.snapshots.image.image import EMPTY_IMAGE, MetadataImage
from quorate.snapshots.image_digest import digest_image
from quorate.snapshots.replay.replay import replay

TOPIC = bytes(range(16))
PARTITIONS = 60_000
#: Calls, Python's and C's, that the work on 60,000 partitions of 15 pages may take: far below one a partition.
CALLS_MAX = 12_000


def calls(work: Callable[[], Any]) -> int:
    """Function calls made while doing some work."""
    count = 0

    def note(_frame: object, event: str, _argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


def objects_at_once(work: Callable[[Callable[[], None]], Any]) -> int:
    """Most objects that the collector finds in young containers at any pause of some work."""
    most = 0

    def pause() -> None:
        nonlocal most
        young = (one for one in gc.get_objects(0) if isinstance(one, (list, set, dict, tuple)))
        most = max(most, sum(map(len, young)))

    gc.collect()  # what there is already is old
    gc.disable()
    try:
        work(pause)
    finally:
        gc.enable()
    return most


def creation() -> list[Any]:
    numbers = np.arange(PARTITIONS, dtype=np.int32)
    replicas = np.stack([numbers % 7, numbers % 7 + 10, numbers % 7 + 20], axis=1).astype(np.int32)
    nobody, zeros = np.empty((PARTITIONS, 0), np.int32), np.zeros(PARTITIONS, np.int32)
    directories = np.frombuffer(TOPIC * 3, np.uint8).reshape(1, 3, 16).repeat(PARTITIONS, axis=0)
    run = PartitionRun(
        version=2,
        topic_ids=np.frombuffer(TOPIC, np.uint8).reshape(1, 16).repeat(PARTITIONS, axis=0),
        partition_ids=numbers,
        replicas=replicas,
        isr=replicas,
        removing_replicas=nobody,
        adding_replicas=nobody,
        leader=replicas[:, 0],
        leader_epoch=zeros,
        partition_epoch=zeros,
        directories=directories,
    )
    return [VersionedRecord(TopicRecord("t", TOPIC), 0), run]


def loss(image: MetadataImage) -> list[Any]:
    """The changes for a lost broker, of two shapes."""
    rows = image.partitions.rows_with_isr(3)
    columns = image.partitions.gather(rows)
    isr = np.ascontiguousarray(columns.slots[:, 1:])
    half = len(rows) // 2
    kept: dict[str, Any] = {"topic_ids": columns.topic_ids, "partition_ids": columns.partition_ids, "isr": isr}
    elr = np.full((len(rows), 1), 3, np.int32)
    return [
        PartitionChangeRun(2, leader=isr[:half, 0], **{name: column[:half] for name, column in kept.items()}),
        PartitionChangeRun(
            2, eligible_leader_replicas=elr[half:], **{name: column[half:] for name, column in kept.items()}
        ),
    ]


@pytest.fixture(scope="module")
def image() -> MetadataImage:
    return replay(EMPTY_IMAGE, creation())


def test_creation_makes_no_call_per_partition() -> None:
    items = creation()

    assert calls(lambda: replay(EMPTY_IMAGE, items)) < CALLS_MAX


def test_loss_of_broker_makes_no_call_per_partition(image: MetadataImage) -> None:
    assert calls(lambda: replay(image, loss(image))) < CALLS_MAX


def test_checkpoint_and_its_load_make_no_call_per_partition(image: MetadataImage) -> None:
    assert calls(lambda: read_checkpoint(list(checkpoint_batches(image, 0)), 0, 0)) < CALLS_MAX


def test_digest_and_delta_make_no_call_per_partition(image: MetadataImage) -> None:
    changed = replay(image, loss(image))

    assert calls(lambda: digest_image(image)) < CALLS_MAX
    assert calls(lambda: digest_image(changed, digest_image(image))) < CALLS_MAX
    assert calls(lambda: MetadataDelta(image, changed).local_changes(13)) < CALLS_MAX
    assert calls(lambda: changed == image) < CALLS_MAX


def test_work_with_pauses_is_in_small_pieces_and_gives_the_same(image: MetadataImage) -> None:
    changed = replay(image, loss(image))
    pauses = 0

    def pause() -> None:
        nonlocal pauses
        pauses += 1

    assert digest_image(changed, pause=pause).value == digest_image(changed).value
    assert pauses >= PARTITIONS // 2048
    pauses = 0
    assert digest_image(changed, digest_image(image), pause).value == digest_image(changed).value
    assert pauses >= PARTITIONS // 2048
    pauses = 0
    chunks = list(checkpoint_chunks(changed, 0, pause))
    assert b"".join(chunks) == b"".join(checkpoint_batches(changed, 0))
    assert max(map(len, chunks)) < 1024 * 1024
    assert pauses >= PARTITIONS // 2048


def test_work_with_pauses_holds_no_more_objects_at_once_the_more_topics_there_are() -> None:
    topics, at_once = 20_000, 8_000
    ids = [bytes([1, *number.to_bytes(15, "big")]) for number in range(topics)]
    whole = creation()[1]
    one_each = replace(
        whole.slice(0, topics),
        topic_ids=np.frombuffer(b"".join(ids), np.uint8).reshape(-1, 16),
        partition_ids=np.zeros(topics, np.int32),
    )
    names = [VersionedRecord(TopicRecord(f"topic-{number}", topic), 0) for number, topic in enumerate(ids)]
    image = replay(EMPTY_IMAGE, [*names, one_each])
    isr = np.ascontiguousarray(one_each.replicas[:, :2])
    shrunk = PartitionChangeRun(2, topic_ids=one_each.topic_ids, partition_ids=one_each.partition_ids, isr=isr)
    changed = replay(image, [shrunk])
    digest = digest_image(image)

    assert objects_at_once(lambda pause: digest_image(image, pause=pause)) <= at_once
    assert objects_at_once(lambda pause: digest_image(changed, digest, pause)) <= at_once
    assert objects_at_once(lambda pause: [None for _ in checkpoint_chunks(image, 0, pause)]) <= at_once
