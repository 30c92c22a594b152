"""Records about many partitions at once: transactions, topics that come and go, cleared ELRs. Rare, and in order."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np

from quorate.metadata_log.ids import Uuid, uuid_text
from quorate.metadata_log.records.records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    ClearElrRecord,
    EndTransactionRecord,
    KRaftVersionRecord,
    Record,
    RemoveTopicRecord,
    TopicRecord,
    VotersRecord,
)
from quorate.pipeline.fold.errors import FoldRefused
from quorate.pipeline.fold.fields import Bools, Longs


class Located(NamedTuple):
    """A record that is no mass record, and its place."""

    offset: int
    record: Record


MARKERS: Final = (BeginTransactionRecord, EndTransactionRecord, AbortTransactionRecord)
_CONTROL: Final = (KRaftVersionRecord, VotersRecord)
#: Later than every offset.
NEVER: Final = 2**62
#: Before every offset, those of a base included.
NEVER_YET: Final = -NEVER
#: Where the records of a base begin, a checkpoint or a state table: in order, and before those of any log.
BASE_OFFSET: Final = -(2**31)


@dataclass(frozen=True, slots=True)
class Transactions:
    """All metadata transactions, in order."""

    #: Offsets of Begin, and of End or Abort; ``NEVER`` for one that is still open.
    begins: Longs
    ends: Longs
    is_aborted: Bools

    @classmethod
    def of(cls, records: Iterable[Located]) -> Transactions:
        """Those whose markers are among some records in order.

        Raises:
            FoldRefused: one begins inside another, or ends without having begun.
        """
        found: list[tuple[int, int, bool]] = []
        begin: int | None = None
        for offset, record in records:
            if isinstance(record, BeginTransactionRecord):
                if begin is not None:
                    raise FoldRefused(f"a transaction begins inside the one that began at offset {begin}", offset)
                begin = offset
            elif isinstance(record, (EndTransactionRecord, AbortTransactionRecord)):
                if begin is None:
                    raise FoldRefused(f"{type(record).__name__} outside of a transaction", offset)
                found.append((begin, offset, isinstance(record, AbortTransactionRecord)))
                begin = None
        if begin is not None:
            found.append((begin, NEVER, False))
        begins, ends, aborted = zip(*found, strict=True) if found else ((), (), ())
        return cls(np.array(begins, np.int64), np.array(ends, np.int64), np.array(aborted, np.bool_))

    def count_at(self, offsets: Longs, moment: int) -> Bools:
        """Whether the data records at these offsets count in the state at a moment."""
        if not len(self.begins):
            return offsets < moment
        number = np.searchsorted(self.begins, offsets, side="right") - 1
        at = np.maximum(number, 0)
        is_inside = (number >= 0) & (offsets <= self.ends[at])
        is_lost = self.is_aborted[at] | (self.ends[at] >= moment)
        return (offsets < moment) & ~(is_inside & is_lost)

    def counted(self, records: Iterable[Located], moment: int) -> list[Located]:
        """The records that count at a moment, markers left out. Control records are in no transaction."""
        given = list(records)
        counts = self.count_at(np.array([located.offset for located in given], np.int64), moment).tolist()
        return [
            located
            for located, does_count in zip(given, counts, strict=True)
            if (does_count and not isinstance(located.record, MARKERS))
            or (isinstance(located.record, _CONTROL) and located.offset < moment)
        ]


class Life(NamedTuple):
    """One topic, from its record to its removal."""

    name: str
    #: When the last topic of this id was removed; ``NEVER_YET`` where there was none.
    earlier: int
    created: int
    #: ``NEVER`` while it lives.
    removed: int


class Clearing(NamedTuple):
    """One ClearElrRecord, and the topics it means."""

    offset: int
    #: None = all topics there are.
    topic_id: Uuid | None


class Topics:
    """The topics of some records that count at a moment, in order."""

    def __init__(self, records: Iterable[Located]) -> None:
        #: The last life of each topic by id.
        self.lives: dict[Uuid, Life] = {}
        self.clearings: list[Clearing] = []
        self._ids: dict[str, Uuid] = {}
        for offset, record in records:
            if isinstance(record, TopicRecord):
                self._create(offset, record)
            elif isinstance(record, RemoveTopicRecord):
                self._remove(offset, record)
            elif isinstance(record, ClearElrRecord):
                self._clear(offset, record.topic_name)

    def alive(self) -> dict[Uuid, Life]:
        """Those that have not been removed."""
        return {topic_id: self.lives[topic_id] for topic_id in self._ids.values()}

    def _create(self, offset: int, record: TopicRecord) -> None:
        before = self.lives.get(record.topic_id)
        if record.name in self._ids or (before is not None and before.removed == NEVER):
            raise FoldRefused(f"topic {record.name!r} or id {uuid_text(record.topic_id)} exists already", offset)
        self._ids[record.name] = record.topic_id
        earlier = NEVER_YET if before is None else before.removed
        self.lives[record.topic_id] = Life(record.name, earlier, offset, NEVER)

    def _remove(self, offset: int, record: RemoveTopicRecord) -> None:
        life = self.lives.get(record.topic_id)
        if life is None or life.removed != NEVER:
            raise FoldRefused(f"RemoveTopicRecord: there is no topic {uuid_text(record.topic_id)}", offset)
        del self._ids[life.name]
        self.lives[record.topic_id] = life._replace(removed=offset)

    def _clear(self, offset: int, name: str) -> None:
        topic_id = self._ids.get(name) if name else None
        # A name that is not here is that of a topic in another bucket: the catalogue knows whether there is one.
        if not name or topic_id is not None:
            self.clearings.append(Clearing(offset, topic_id))


def is_for_topics(record: Any) -> bool:
    """Whether the composition of partitions needs this record, besides the catalogue."""
    return isinstance(record, (*MARKERS, TopicRecord, RemoveTopicRecord, ClearElrRecord))
