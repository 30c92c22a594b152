"""The replicas that reassignments are adding, and since when, read out of the records about their partitions. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from quorate.metadata_log.batches.batch import checked_header
from quorate.metadata_log.batches.columns import decode_batch
from quorate.metadata_log.batches.runs import BatchItem, PartitionChangeRun
from quorate.metadata_log.ids import Uuid
from quorate.metadata_log.records.records import PartitionChangeRecord, RemoveTopicRecord, VersionedRecord
from quorate.metadata_log.records.wire import Buffer

#: Partitions that are remembered; of more that are reassigned at once the moment is not known. Some 40 MB.
PARTITIONS_MAX: Final = 100_000


class AddingChange(NamedTuple):
    """The replicas that are being added to a partition from one record on."""

    topic_id: Uuid
    #: None: the topic is gone with all its partitions.
    partition: int | None
    adding: Sequence[int]
    #: Of the record's batch, in milliseconds since 1970, and its base offset.
    time_ms: int
    offset: int


def adding_changes(data: Buffer, end_offset: int) -> tuple[list[AddingChange], int]:
    """Those of whole batches up to one that begins at ``end_offset`` or later; where the next one begins.

    Raises:
        MalformedData: these are none.
    """
    view, position, next_offset = memoryview(data), 0, end_offset
    found: list[AddingChange] = []
    while position < len(view):
        header = checked_header(view, position)
        if header.base_offset >= end_offset:
            break
        if not header.is_control:
            for item in decode_batch(view, position):
                found += (AddingChange(*named, header.timestamp, header.base_offset) for named in _changes_in(item))
        position, next_offset = position + header.size, header.end_offset
    return found, next_offset


def _changes_in(item: BatchItem) -> Iterator[tuple[Uuid, int | None, Sequence[int]]]:
    """Yield what only records tell that begin, replace, end or cancel a reassignment."""
    if isinstance(item, PartitionChangeRun) and item.adding_replicas is not None:
        numbers, adding = item.partition_ids.tolist(), item.adding_replicas.tolist()
        for row, (number, ids) in enumerate(zip(numbers, adding, strict=True)):
            yield item.topic_ids[row].tobytes(), number, ids
    elif isinstance(item, VersionedRecord):
        record = item.record
        if isinstance(record, PartitionChangeRecord) and record.adding_replicas is not None:
            yield record.topic_id, record.partition_id, record.adding_replicas
        elif isinstance(record, RemoveTopicRecord):
            yield record.topic_id, None, ()


class _Added(NamedTuple):
    since_ms: int
    offset: int


class Additions:
    """The replicas being added, each with the moment of the request for it.

    One that another reassignment goes on to add has been added since the first.
    """

    def __init__(self, partitions_max: int = PARTITIONS_MAX) -> None:
        self._partitions_max = partitions_max
        self._count = 0
        #: By broker, by partition, by topic.
        self._added: dict[Uuid, dict[int, dict[int, _Added]]] = {}

    def since_ms(self, topic_id: Uuid, partition: int, end_offset: int) -> Mapping[int, int]:
        """Milliseconds since 1970, by id of a broker that was being added at this offset and still is.

        Without those of which no record told.
        """
        added = self._added.get(topic_id, {}).get(partition, {})
        return {broker: one.since_ms for broker, one in added.items() if one.offset < end_offset}

    def take(self, changes: Iterable[AddingChange]) -> None:
        """The next changes of the log."""
        for change in changes:
            if change.partition is None:
                self._count -= len(self._added.pop(change.topic_id, {}))
            else:
                self._note(change.partition, change)

    def _note(self, partition: int, change: AddingChange) -> None:
        of_topic = self._added.get(change.topic_id, {})
        before = of_topic.pop(partition, None)
        self._count -= before is not None
        if change.adding and self._count < self._partitions_max:
            new = _Added(change.time_ms, change.offset)
            of_topic[partition] = {broker: (before or {}).get(broker, new) for broker in change.adding}
            self._count += 1
        if of_topic:
            self._added[change.topic_id] = of_topic
        else:
            self._added.pop(change.topic_id, None)
