"""The brokers that do not run as they should, and since when, read out of the records about them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from quorate.metadata_log.batches.batch import checked_header
from quorate.metadata_log.batches.columns import decode_batch
from quorate.metadata_log.batches.runs import BatchItem
from quorate.metadata_log.records.records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    BrokerRegistrationChangeRecord,
    EndTransactionRecord,
    FenceBrokerRecord,
    Record,
    RegisterBrokerRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
    VersionedRecord,
)
from quorate.metadata_log.records.wire import Buffer


class _Absence(NamedTuple):
    """One broker's, by the records that began and ended it."""

    #: Of the batch of the first of them, in milliseconds since 1970.
    since_ms: int
    #: Base offsets of their batches.
    begin: int
    end: int | None = None

    def is_at(self, end_offset: int) -> bool:
        """Whether the broker was absent in the state at this offset."""
        return self.begin < end_offset and (self.end is None or end_offset <= self.end)


class Absences:
    """The brokers that are fenced, shutting down or unregistered, each with the first moment of it.

    A broker that registers again and is fenced all the while has been absent since before that. Of each broker the
    absence before is remembered, too, so that states of a while ago can still be told of.
    """

    def __init__(self) -> None:
        #: By broker id, those that last, and of each broker the one that ended last.
        self._lasting: dict[int, _Absence] = {}
        self._ended: dict[int, _Absence] = {}
        #: Of the absences that are forgotten none lasted longer than this offset.
        self._forgotten_end = -1
        #: What was known where the transaction began that is open; None: there is none.
        self._before: Absences | None = None

    def copy(self) -> Absences:
        """Another one that knows as much."""
        made = Absences()
        made._go_back_to(self)
        made._before = self._before
        return made

    @property
    def since_ms(self) -> Mapping[int, int]:
        """Milliseconds since 1970, by id of a broker that is absent; without those of whose absence no record told."""
        return {broker_id: absence.since_ms for broker_id, absence in self._lasting.items()}

    def since_ms_at(self, end_offset: int) -> Mapping[int, int] | None:
        """The same in the state at an offset that was gone through; None: too much has happened since."""
        if end_offset <= self._forgotten_end:
            return None
        known = (*self._ended.items(), *self._lasting.items())
        return {broker_id: absence.since_ms for broker_id, absence in known if absence.is_at(end_offset)}

    def take_batches(self, data: Buffer, end_offset: int) -> int:
        """Go through whole batches up to one that begins at ``end_offset`` or later; where the next one begins.

        Raises:
            MalformedData: these are none.
        """
        view, position, next_offset = memoryview(data), 0, end_offset
        while position < len(view):
            header = checked_header(view, position)
            if header.base_offset >= end_offset:
                break
            if not header.is_control:
                self._take(decode_batch(view, position), header.timestamp, header.base_offset)
            position, next_offset = position + header.size, header.end_offset
        return next_offset

    def _go_back_to(self, known: Absences) -> None:
        self._lasting, self._ended, self._forgotten_end = dict(known._lasting), dict(known._ended), known._forgotten_end

    def _take(self, items: Iterable[BatchItem], time_ms: int, offset: int) -> None:
        for item in items:
            if isinstance(item, VersionedRecord):
                self._take_record(item.record, time_ms, offset)

    def _take_record(self, record: Record, time_ms: int, offset: int) -> None:
        match record:
            case RegisterBrokerRecord(broker_id=broker_id):
                is_absent = record.fenced or record.in_controlled_shutdown
            case UnregisterBrokerRecord(broker_id=broker_id) | FenceBrokerRecord(id=broker_id):
                is_absent = True
            case UnfenceBrokerRecord(id=broker_id):
                is_absent = False
            case BrokerRegistrationChangeRecord(broker_id=broker_id) if record.fenced or record.in_controlled_shutdown:
                is_absent = record.fenced > 0 or record.in_controlled_shutdown > 0
            case BeginTransactionRecord():
                self._before = self.copy()
                return
            case EndTransactionRecord():
                self._before = None
                return
            case AbortTransactionRecord() if self._before is not None:
                self._go_back_to(self._before)
                self._before = None
                return
            case _:
                return
        if is_absent:
            self._lasting.setdefault(broker_id, _Absence(time_ms, offset))
        elif (ended := self._lasting.pop(broker_id, None)) is not None:
            self._forget(self._ended.get(broker_id))
            self._ended[broker_id] = ended._replace(end=offset)

    def _forget(self, absence: _Absence | None) -> None:
        if absence is not None and absence.end is not None:
            self._forgotten_end = max(self._forgotten_end, absence.end)
