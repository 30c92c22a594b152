"""Replay: the only thing that changes state. ``replay(image, items) -> image`` folds records into an image.

Rules of the file: no clock, no I/O, no random, no logging. The rules of each record are those of Kafka's own replay
(``image/*Delta``, ``controller/*ControlManager``). A record that names something unknown, or says something
impossible, is a ``ReplayError``; then nothing has changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, Final

from quorate.metadata_log.batches.runs import BatchItem, PartitionRun
from quorate.metadata_log.ids import Uuid, uuid_text
from quorate.metadata_log.records.records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    ClearElrRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    KRaftVersionRecord,
    LeaderChangeMessage,
    NoOpRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    TopicRecord,
    VersionedRecord,
    VotersRecord,
    ZkMigrationStateRecord,
)
from quorate.snapshots.errors import ReplayError
from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.image.image_editor import ImageEditor
from quorate.snapshots.image.image_parts import TOPIC_RESOURCE, Provenance, Topic
from quorate.snapshots.replay import replay_cluster, replay_resources
from quorate.snapshots.table.extents import TopicStretches
from quorate.snapshots.table.table_runs import change_run, clear_elrs, put_run, reserve_rows


def replay(image: MetadataImage, items: Sequence[BatchItem], provenance: Provenance | None = None) -> MetadataImage:
    """The image after some records, in their order.

    Args:
        items: records and runs, as ``metadata_log.batches.columns.decode_batch`` gives them. Transaction markers are
        for
            ``snapshots.replay.replay_state``.
        provenance: what the new image covers; that of ``image`` if it is left out.

    Raises:
        ReplayError: a record that the image cannot take.
    """
    editor = ImageEditor(image)
    replay_items(editor, items)
    return editor.finish(image.provenance if provenance is None else provenance)


def replay_items(editor: ImageEditor, items: Sequence[BatchItem], ahead: Sequence[BatchItem] = ()) -> None:
    """Fold records into an image that is being made: what ``replay`` does, for readers of many batches.

    Args:
        ahead: what comes next, where that is known: topics that go on there get their rows now.

    Raises:
        ReplayError: a record that cannot follow on the ones before it. The image in the making is then of no use.
    """
    runs = _partition_runs(items)
    if runs:
        reserve_rows(editor.partitions, runs, _partition_runs(ahead))
    stretches = [of_run for _, of_run in reversed(runs)]
    for item in items:
        if isinstance(item, VersionedRecord):
            record = item.record
            rule = _RULES.get(type(record))
            if rule is None:
                raise ReplayError(f"{type(record).__name__} is not replayed on its own")
            rule(editor, record)
        elif isinstance(item, PartitionRun):
            of_run = stretches.pop()
            _require_topics(editor, of_run.topics)
            put_run(editor.partitions, item, of_run)
        else:
            change_run(editor.partitions, item)


def _partition_runs(items: Sequence[BatchItem]) -> list[tuple[PartitionRun, TopicStretches]]:
    return [(item, TopicStretches.of(item.topic_ids)) for item in items if isinstance(item, PartitionRun)]


def _require_topics(editor: ImageEditor, topics: Iterable[Uuid]) -> None:
    for topic_id in topics:
        if topic_id not in editor.topics_by_id:
            raise ReplayError(f"PartitionRecord: there is no topic {uuid_text(topic_id)}")


# --- topics and partitions ---------------------------------------------------------------------------


def _topic(editor: ImageEditor, record: TopicRecord) -> None:
    name, topic_id = record.name, record.topic_id
    by_name, by_id = editor.topics_by_name, editor.topics_by_id
    if name in by_name or topic_id in by_id:
        raise ReplayError(f"TopicRecord: topic {name!r} or id {uuid_text(topic_id)} exists already")
    by_name[name] = by_id[topic_id] = topic = Topic(name, topic_id)
    editor.count_by_min_isr(topic)


def _remove_topic(editor: ImageEditor, record: RemoveTopicRecord) -> None:
    topic = editor.topics_by_id.get(record.topic_id)
    if topic is None:
        raise ReplayError(f"RemoveTopicRecord: there is no topic {uuid_text(record.topic_id)}")
    editor.topics_by_id.remove(topic.id)
    editor.topics_by_name.remove(topic.name)
    editor.partitions.remove_topic(topic.id)
    editor.configs.remove_all((TOPIC_RESOURCE, topic.name))


def _partition(editor: ImageEditor, record: PartitionRecord) -> None:
    if record.topic_id not in editor.topics_by_id:
        raise ReplayError(f"PartitionRecord: there is no topic {uuid_text(record.topic_id)}")
    editor.partitions.put(record)


def _partition_change(editor: ImageEditor, record: PartitionChangeRecord) -> None:
    editor.partitions.change(record)


def _clear_elr(editor: ImageEditor, record: ClearElrRecord) -> None:
    if not record.topic_name:
        clear_elrs(editor.partitions, editor.partitions.all_rows())
        return
    topic = editor.topics_by_name.get(record.topic_name)
    if topic is None:
        raise ReplayError(f"ClearElrRecord: there is no topic {record.topic_name!r}")
    clear_elrs(editor.partitions, editor.partitions.rows_of(topic.id))


# --- features and quorum -----------------------------------------------------------------------------


def _feature_level(editor: ImageEditor, record: FeatureLevelRecord) -> None:
    levels = editor.features.levels
    levels = levels.put(record.name, record.feature_level) if record.feature_level else levels.without(record.name)
    editor.features = replace(editor.features, levels=levels)


def _zk_migration_state(editor: ImageEditor, record: ZkMigrationStateRecord) -> None:
    editor.features = replace(editor.features, zk_migration_state=record.zk_migration_state)


def _kraft_version(editor: ImageEditor, record: KRaftVersionRecord) -> None:
    editor.kraft = replace(editor.kraft, version=record.kraft_version)


def _voters(editor: ImageEditor, record: VotersRecord) -> None:
    editor.kraft = replace(editor.kraft, voters=record)


def _nothing(editor: ImageEditor, record: object) -> None:
    """The record has no state."""


def _marker(editor: ImageEditor, record: object) -> None:
    raise ReplayError(f"{type(record).__name__} has no meaning inside one batch of state changes")


_RULES: Final[dict[type, Callable[[ImageEditor, Any], None]]] = {
    TopicRecord: _topic,
    RemoveTopicRecord: _remove_topic,
    PartitionRecord: _partition,
    PartitionChangeRecord: _partition_change,
    ClearElrRecord: _clear_elr,
    FeatureLevelRecord: _feature_level,
    ZkMigrationStateRecord: _zk_migration_state,
    KRaftVersionRecord: _kraft_version,
    VotersRecord: _voters,
    NoOpRecord: _nothing,
    LeaderChangeMessage: _nothing,
    SnapshotHeaderRecord: _nothing,
    SnapshotFooterRecord: _nothing,
    BeginTransactionRecord: _marker,
    EndTransactionRecord: _marker,
    AbortTransactionRecord: _marker,
    **replay_cluster.RULES,
    **replay_resources.RULES,
}
