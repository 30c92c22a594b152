"""The versions of partitions, out of the records about them.

A partition that is well when the history begins and that no record is about, but for the removal of its topic, has no
part in any outage: of a large cluster these are nearly all, and they are only counted.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

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
from quorate.snapshots.errors import ReplayError
from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.incidents.reading.known_topics import KnownTopics
from quorate.snapshots.incidents.reading.places import RecordPlace
from quorate.snapshots.incidents.serial.versions import (
    PartitionHistory,
    PartitionVersion,
    UntoldPartitions,
    UntoldRemoval,
)
from quorate.snapshots.table.page_access import holds_partition, is_reassigning
from quorate.snapshots.table.pages import NO_PARTITION, Page
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

    def __init__(self, start: MetadataImage, begin: RecordPlace, unwell_max: int | None) -> None:
        """``begin``: the last record that ``start`` holds. ``unwell_max``: see ``read_versions``."""
        self.all: list[PartitionHistory] = []
        self._count = 0
        self._topics = KnownTopics(start.topics)
        self._now: dict[Uuid, dict[int, tuple[Partition, PartitionHistory]]] = {}
        #: Of ``_now`` those with an ELR, or a last known one; no topic has none.
        self._with_elr: dict[Uuid, set[int]] = {}
        #: When the ELRs of a topic (None: of all) were cleared first: what partitions have that nothing is told of yet
        #: they have from the start.
        self._cleared: dict[Uuid | None, RecordPlace] = {}
        self._untold_removals: list[UntoldRemoval] = []
        self._start, self._begin_place = start.partitions, begin
        unwell = start.partitions.select(_is_unwell)
        looked_at = unwell[:unwell_max]
        #: That were not well at the start, and are told of from the first record about them on.
        self.left_out = len(unwell) - len(looked_at)
        for row in looked_at.tolist():
            self._begin_base(row)

    @property
    def untold(self) -> UntoldPartitions:
        """The partitions that ``all`` does not have."""
        told = sum(history.is_base for history in self.all)
        return UntoldPartitions(len(self._start) - told, *self._begin_place, self._untold_removals)

    def take(self, record: Record, place: RecordPlace) -> None:
        """Go on by one of ``OF_PARTITIONS``.

        Raises:
            ReplayError: it is about what is not there. TooManyVersions: there are more than ``VERSIONS_MAX``.
        """
        match record:
            case TopicRecord():
                self._topics.add(record.topic_id, record.name)
            case PartitionRecord():
                self._declare(record, place)
            case PartitionChangeRecord():
                self._change(record, place)
            case RemoveTopicRecord():
                self._remove(record.topic_id, place)
            case ClearElrRecord():
                self._clear(record.topic_name, place)

    def _remove(self, topic_id: Uuid, place: RecordPlace) -> None:
        histories = [history for _, history in self._now.pop(topic_id, {}).values()]
        for history in histories:
            history.gone = place
        if self._topics.is_of_start(topic_id):
            rows = np.array(self._start.rows_of(topic_id), np.int64)
            held = np.count_nonzero(self._start.gather_partition_ids(rows) != NO_PARTITION)
            untold = int(held) - sum(history.is_base for history in histories)
            if untold:
                self._untold_removals.append(UntoldRemoval(untold, *place))
        self._with_elr.pop(topic_id, None)
        self._topics.remove(topic_id)

    def _known(self, topic_id: Uuid, number: int) -> tuple[Partition, PartitionHistory] | None:
        """A partition as it is now, with its history, which begins here if it was well so far; None: there is none."""
        known = self._now.get(topic_id, {}).get(number)
        row = self._start.row(topic_id, number) if known is None and self._topics.is_of_start(topic_id) else None
        if row is not None:
            self._begin_base(row)
            places = [self._cleared[one] for one in (topic_id, None) if one in self._cleared]
            if places:
                self._clear_partition(topic_id, number, min(places))
            known = self._now[topic_id][number]
        return known

    def _begin_base(self, row: int) -> None:
        table = self._start
        topic_id, number, partition = table.topic_id(row), table.partition_id(row), table.partition(row)
        self._begin(topic_id, number, partition, self._begin_place, is_base=True)

    def _declare(self, record: PartitionRecord, place: RecordPlace) -> None:
        partition = Partition.from_record(record)
        known = self._known(record.topic_id, record.partition_id)
        if known is None:
            self._begin(record.topic_id, record.partition_id, partition, place, is_base=False)
        else:
            self._put(record.topic_id, record.partition_id, partition, known[1], place)

    def _change(self, record: PartitionChangeRecord, place: RecordPlace) -> None:
        known = self._known(record.topic_id, record.partition_id)
        if known is None:
            name = f"{uuid_text(record.topic_id)}-{record.partition_id}"
            raise ReplayError(f"PartitionChangeRecord: there is no partition {name}", place.offset)
        partition, history = known
        self._put(record.topic_id, record.partition_id, partition.changed_by(record), history, place)

    def _clear(self, topic: str, place: RecordPlace) -> None:
        """Clear the ELRs of one topic, or of all."""
        named = self._topics.id_of(topic) if topic else None
        if topic and named is None:
            return
        self._cleared.setdefault(named, place)
        for topic_id in list(self._with_elr) if named is None else [named]:
            for number in sorted(self._with_elr.get(topic_id, ())):
                self._clear_partition(topic_id, number, place)

    def _clear_partition(self, topic_id: Uuid, number: int, place: RecordPlace) -> None:
        partition, history = self._now[topic_id][number]
        if partition.elr or partition.last_known_elr:
            self._put(topic_id, number, replace(partition, elr=(), last_known_elr=()), history, place)

    def _begin(self, topic_id: Uuid, number: int, partition: Partition, place: RecordPlace, *, is_base: bool) -> None:
        name = self._topics.name_of(topic_id)
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
        self._note_elr(topic_id, number, has_one=bool(partition.elr or partition.last_known_elr))
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

    def _note_elr(self, topic_id: Uuid, number: int, *, has_one: bool) -> None:
        mine = self._with_elr.get(topic_id)
        if has_one:
            self._with_elr.setdefault(topic_id, set()).add(number)
        elif mine is not None:
            mine.discard(number)
            if not mine:
                del self._with_elr[topic_id]


def _is_unwell(page: Page) -> NDArray[np.bool_]:
    """bool[PAGE_ROWS]: partitions of which more is to be told than that they are there.

    One that is led, whose replicas are all in sync and stay where they are, is in no condition that outages are made
    of, whatever is configured.
    """
    is_short = np.bitwise_count(page.isr) < page.replica_counts
    has_others = (page.elr | page.last_known_elr) != 0
    flags: NDArray[np.bool_] = (page.leader_slots < 0) | is_short | has_others | is_reassigning(page)
    return flags & holds_partition(page)
