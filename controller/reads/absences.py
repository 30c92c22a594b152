"""The brokers that do not run as they should, and since when, read out of the records about them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from quorate.metadata_log.batches.batch import checked_header
from quorate.metadata_log.batches.columns import decode_batch
from quorate.metadata_log.batches.runs import BatchItem
from quorate.metadata_log.records.records import (
    BrokerRegistrationChangeRecord,
    FenceBrokerRecord,
    Record,
    RegisterBrokerRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
    VersionedRecord,
)
from quorate.metadata_log.records.wire import Buffer


class Absences:
    """The brokers that are fenced, shutting down or unregistered, each with the first moment of it.

    A broker that registers again and is fenced all the while has been absent since before that.
    """

    def __init__(self) -> None:
        #: Milliseconds since 1970, by broker id.
        self._since_ms: dict[int, int] = {}

    @property
    def since_ms(self) -> Mapping[int, int]:
        """Milliseconds since 1970, by id of a broker that is absent; without those of whose absence no record told."""
        return dict(self._since_ms)

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
                self._take(decode_batch(view, position), header.timestamp)
            position, next_offset = position + header.size, header.end_offset
        return next_offset

    def _take(self, items: Iterable[BatchItem], time_ms: int) -> None:
        for item in items:
            if isinstance(item, VersionedRecord):
                self._take_record(item.record, time_ms)

    def _take_record(self, record: Record, time_ms: int) -> None:
        match record:
            case RegisterBrokerRecord(broker_id=broker_id):
                is_absent = record.fenced or record.in_controlled_shutdown
            case UnregisterBrokerRecord(broker_id=broker_id) | FenceBrokerRecord(id=broker_id):
                is_absent = True
            case UnfenceBrokerRecord(id=broker_id):
                is_absent = False
            case BrokerRegistrationChangeRecord(broker_id=broker_id) if record.fenced or record.in_controlled_shutdown:
                is_absent = record.fenced > 0 or record.in_controlled_shutdown > 0
            case _:
                return
        if is_absent:
            self._since_ms.setdefault(broker_id, time_ms)
        else:
            self._since_ms.pop(broker_id, None)
