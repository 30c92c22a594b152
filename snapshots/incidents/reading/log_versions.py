"""A log as versions of its partitions, brokers and configs: what outages are read out of.

The controllers' own replay says what each record does; partitions, which are most of a log, are changed as values.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from quorate.metadata_log.batches.batch import BatchHeader, iter_records, parse_header
from quorate.metadata_log.directory.epoch_leader import named_leader
from quorate.metadata_log.records.records import (
    AbortTransactionRecord,
    EndTransactionRecord,
    NoOpRecord,
    Record,
    VersionedRecord,
)
from quorate.metadata_log.records.wire import Buffer
from quorate.snapshots.errors import ReplayError
from quorate.snapshots.incidents.failovers import Epoch
from quorate.snapshots.incidents.giving_up import Look, nobody_gives_up
from quorate.snapshots.incidents.reading.broker_versions import BrokerTrack
from quorate.snapshots.incidents.reading.config_versions import ConfigTrack
from quorate.snapshots.incidents.reading.partition_versions import CHANGED_AS_VALUES, OF_PARTITIONS, PartitionTrack
from quorate.snapshots.incidents.reading.places import RecordPlace
from quorate.snapshots.incidents.serial.search import LogVersions
from quorate.snapshots.replay.replay_state import ReplayState

#: From year 1 to year 9999, in milliseconds since 1970.
_CALENDAR_MS: Final = (-62_135_596_800_000, 253_402_300_799_999)


def read_versions(
    start: ReplayState,
    batches: Iterable[Buffer],
    cluster_id: str,
    unwell_max: int | None = None,
    below: int | None = None,
    check: Look = nobody_gives_up,
) -> LogVersions:
    """The versions of everything that outages are told from.

    Args:
        start: what the first batch is replayed onto; what it holds has been so since its last record.
        unwell_max: of the partitions that are not well at the start so many are looked at, the others from the first
            record about them on; None: all.
        below: records from this offset on are left out.
        check: called before each record.

    Raises:
        What ``check`` raises.
        ReplayError: a record cannot be replayed. TooManyVersions: more changes of partitions than are held.
    """
    reader = _Reader(start, cluster_id, unwell_max)
    for batch in batches:
        reader.take(batch, below, check)
    return reader.found()


def log_time_us(log_time_ms: int) -> int:
    """A time of the log in microseconds; the first or last that calendars have where none reaches there.

    A clock may have said anything when a record was written.
    """
    return min(max(log_time_ms, _CALENDAR_MS[0]), _CALENDAR_MS[1]) * 1000


class _Reader:
    """Everything up to one batch."""

    def __init__(self, start: ReplayState, cluster_id: str, unwell_max: int | None) -> None:
        at = start.stable.provenance
        begin = RecordPlace(at.last_contained_offset, log_time_us(at.log_time_ms))
        #: Without what records of partitions did.
        self._state = start
        #: Records about partitions, of a metadata transaction that is open.
        self._waiting: list[Record] = []
        self._partitions = PartitionTrack(start.stable, begin, unwell_max)
        self._brokers = BrokerTrack(cluster_id, start.stable, begin)
        self._configs = ConfigTrack(cluster_id, start.stable, begin)
        self._epochs: dict[int, Epoch] = {}
        if at.end_offset > 0:
            # What comes may begin with the first record of another.
            self._epochs[at.epoch] = Epoch(cluster_id, at.epoch, None, *begin, None, None, *begin)
        self._cluster_id = cluster_id

    def found(self) -> LogVersions:
        return LogVersions(
            self._cluster_id,
            self._partitions.all,
            self._brokers.all(),
            list(self._epochs.values()),
            self._configs.min_isr(),
            self._configs.unclean_allowed,
            self._partitions.untold,
            self._partitions.left_out,
        )

    def take(self, batch: Buffer, below: int | None, check: Look) -> None:
        header = parse_header(batch)
        self._take_epoch(header, batch)
        if header.is_control:
            return
        for logged in iter_records(batch):
            check()
            if below is not None and logged.offset >= below:
                return
            record, place = logged.record, RecordPlace(logged.offset, log_time_us(header.timestamp))
            if isinstance(record, OF_PARTITIONS):
                if self._state.in_transaction:
                    self._waiting.append(record)
                else:
                    self._partitions.take(record, place)
            if not isinstance(record, (*CHANGED_AS_VALUES, NoOpRecord)):
                self._replay(VersionedRecord(record, logged.version), place, header)

    def _replay(self, item: VersionedRecord, place: RecordPlace, header: BatchHeader) -> None:
        before = self._state
        try:
            self._state = before.replay_items([item], place.offset, header.epoch, header.timestamp)
        except ReplayError as error:
            raise ReplayError(error.reason, place.offset) from error
        if isinstance(item.record, (EndTransactionRecord, AbortTransactionRecord)):
            # All of a transaction holds from its end on.
            for record in self._waiting if isinstance(item.record, EndTransactionRecord) else ():
                self._partitions.take(record, place)
            self._waiting = []
        self._brokers.take(before.stable, self._state.stable, place)
        self._configs.take(before.stable, self._state.stable, place)

    def _take_epoch(self, header: BatchHeader, batch: Buffer) -> None:
        time_us = log_time_us(header.timestamp)
        known = self._epochs.get(header.epoch)
        if known is None:
            leader = named_leader(header, batch)
            begin = (header.base_offset, time_us)
            known = Epoch(self._cluster_id, header.epoch, leader, *begin, None, None, *begin)
        if known.first_offset is None and not header.is_control:
            known = known._replace(first_offset=header.base_offset, first_us=time_us)
        self._epochs[header.epoch] = known._replace(last_offset=header.end_offset - 1, last_us=time_us)
