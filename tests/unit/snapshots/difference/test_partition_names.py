"""Topics and partitions in a difference where an id has another name by now, or a topic another size."""

from __future__ import annotations

from typing import Any

from quorate.metadata_log.records import records as r
from quorate.metadata_log.records.hidden_values import no_secrets
from quorate.snapshots.difference.image_difference import image_difference
from quorate.snapshots.image.image import EMPTY_IMAGE, MetadataImage
from quorate.snapshots.replay.replay import replay
from tests.record_stream import versioned

T, U = bytes(15) + b"t", bytes(15) + b"u"


def partition(number: int, topic: bytes = T) -> r.PartitionRecord:
    return r.PartitionRecord(number, topic, replicas=(1,), isr=(1,), leader=1, directories=(bytes(16),))


def image(*records: Any) -> MetadataImage:
    return replay(EMPTY_IMAGE, list(map(versioned, records)))


def told(old: MetadataImage, new: MetadataImage) -> list[str]:
    return [
        f"{part.part} {entry.name} {entry.change} {','.join(entry.fields) if entry.change == 'changed' else ''}".strip()
        for part in image_difference(old, new, no_secrets)
        if part.part in ("topics", "partitions")
        for entry in part.entries
    ]


def test_topic_that_has_another_name_by_now_is_called_by_that() -> None:
    old = image(r.TopicRecord("aaa", T), partition(0), partition(1))
    change = r.PartitionChangeRecord(partition_id=0, topic_id=T, leader=-1)
    new = replay(old, list(map(versioned, (r.RemoveTopicRecord(T), r.TopicRecord("bbb", T), partition(0), change))))

    assert told(old, new) == [
        "topics aaa removed",
        "topics bbb added",
        "partitions bbb-0 changed leader,leader_epoch,partition_epoch",
        "partitions bbb-1 removed",
    ]


def test_topic_that_has_only_more_or_fewer_partitions_has_changed() -> None:
    fewer = image(r.TopicRecord("a", T), partition(0), r.TopicRecord("b", U), partition(0, U))
    more = image(r.TopicRecord("a", T), partition(0), partition(1), r.TopicRecord("b", U), partition(0, U))

    assert told(fewer, more) == ["topics a changed partitions", "partitions a-1 added"]
    assert told(more, fewer) == ["topics a changed partitions", "partitions a-1 removed"]
