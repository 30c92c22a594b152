"""The versions of all partitions, out of the records about them."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from quorate.metadata_log.errors import QuorateError
from quorate.metadata_log.ids import Uuid, uuid_text
from quorate.metadata_log.records.records import (
    ClearElrRecord,
    PartitionChangeRecord,
    PartitionRecord,
    Record,
    RemoveTopicRecord,
    TopicRecord,
)
from quorate.pipeline.incidents.serial.versions import PartitionHistory, PartitionVersion
from quorate.scripts.cli.incidents.places import RecordPlace
from quorate.snapshots.errors import ReplayError
from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.table.partition import Partition

#: Each takes some 300 bytes.
VERSIONS_MAX: Final = 5_000_000
#: Records that change single partitions, and nothing else.
CHANGED_AS_VALUES: Final = (PartitionRecord, PartitionChangeRecord)
#: All records that say something of partitions.
OF_PARTITIONS: Final = (*CHANGED_AS_VALUES, TopicRecord, RemoveTopicRecord, ClearElrRecord)


class TooManyVersions(QuorateError):
    """More changes of partitions than one process holds."""


class PartitionTrack:
    """The versions up to one record."""

    def __init__(self, start: MetadataImage, begin: RecordPlace) -> None:
        """``begin``: the last record that ``start`` holds."""
        self.all: list[PartitionHistory] = []
        self._count = 0
        #: Of topics that are there, by id.
        self._names: dict[Uuid, str] = {topic.id: topic.name for topic in start.topics.by_id.values()}
        self._now: dict[Uuid, dict[int, tuple[Partition, PartitionHistory]]] = {}
        for topic_id in self._names:
            for number, partition in start.partitions.partitions_of(topic_id):
                self._begin(topic_id, number, partition, begin, is_base=True)

    def take(self, record: Record, place: RecordPlace) -> None:
        """Go on by one of ``OF_PARTITIONS``.

        Raises:
            ReplayError: it is about what is not there. TooManyVersions: there are more than ``VERSIONS_MAX``.
        """
        match record:
            case TopicRecord():
                self._names[record.topic_id] = record.name
            case PartitionRecord():
                self._declare(record, place)
            case PartitionChangeRecord():
                self._change(record, place)
            case RemoveTopicRecord():
                self._names.pop(record.topic_id, None)
                for _, history in self._now.pop(record.topic_id, {}).values():
                    history.gone = place
            case ClearElrRecord():
                self._clear(record.topic_name, place)

    def _declare(self, record: PartitionRecord, place: RecordPlace) -> None:
        partition = Partition.from_record(record)
        known = self._now.get(record.topic_id, {}).get(record.partition_id)
        if known is None:
            self._begin(record.topic_id, record.partition_id, partition, place, is_base=False)
        else:
            self._put(record.topic_id, record.partition_id, partition, known[1], place)

    def _change(self, record: PartitionChangeRecord, place: RecordPlace) -> None:
        known = self._now.get(record.topic_id, {}).get(record.partition_id)
        if known is None:
            name = f"{uuid_text(record.topic_id)}-{record.partition_id}"
            raise ReplayError(f"PartitionChangeRecord: there is no partition {name}", place.offset)
        partition, history = known
        self._put(record.topic_id, record.partition_id, partition.changed_by(record), history, place)

    def _clear(self, topic: str, place: RecordPlace) -> None:
        """Clear the ELRs of one topic, or of all."""
        for topic_id, partitions in self._now.items():
            if topic in ("", self._names[topic_id]):
                for number, (partition, history) in list(partitions.items()):
                    if partition.elr or partition.last_known_elr:
                        cleared = replace(partition, elr=(), last_known_elr=())
                        self._put(topic_id, number, cleared, history, place)

    def _begin(self, topic_id: Uuid, number: int, partition: Partition, place: RecordPlace, *, is_base: bool) -> None:
        name = self._names.get(topic_id)
        if name is None:
            raise ReplayError(f"PartitionRecord: there is no topic {uuid_text(topic_id)}", place.offset)
        history = PartitionHistory(uuid_text(topic_id), name, number, is_base)
        self.all.append(history)
        self._put(topic_id, number, partition, history, place)

    def _put(
        self, topic_id: Uuid, number: int, partition: Partition, history: PartitionHistory, place: RecordPlace
    ) -> None:
        self._count += 1
        if self._count > VERSIONS_MAX:
            raise TooManyVersions(
                f"more than {VERSIONS_MAX:,} changes of partitions up to offset {place.offset}: say --since, or let "
                "quorate pipeline incidents read the log"
            )
        self._now.setdefault(topic_id, {})[number] = partition, history
        history.versions.append(
            PartitionVersion(
                *place,
                partition.leader,
                partition.leader_epoch,
                partition.isr,
                partition.replicas,
                partition.adding_replicas,
                partition.removing_replicas,
                partition.elr,
                partition.last_known_elr,
            )
        )
