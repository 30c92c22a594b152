"""Since when brokers are absent, record by record."""

from __future__ import annotations

import pytest

from quorate.controller.reads.absences import Absences
from quorate.metadata_log.batches.batch import data_batch, place_batch
from quorate.metadata_log.records.records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    BrokerRegistrationChangeRecord,
    EndTransactionRecord,
    FenceBrokerRecord,
    Record,
    RegisterBrokerRecord,
    TopicRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
)

REGISTERED = RegisterBrokerRecord(broker_id=11)
UNFENCED = BrokerRegistrationChangeRecord(broker_id=11, fenced=-1)
FENCED = BrokerRegistrationChangeRecord(broker_id=11, fenced=1)
LEAVING = BrokerRegistrationChangeRecord(broker_id=11, in_controlled_shutdown=1)
DIRECTORIES = BrokerRegistrationChangeRecord(broker_id=11, log_dirs=(bytes(15) + b"\1",))
GONE = UnregisterBrokerRecord(broker_id=11)
BEGIN, END, ABORT = BeginTransactionRecord(), EndTransactionRecord(), AbortTransactionRecord()


def log(*records: Record) -> bytes:
    """A batch for each, at times 1, 2, 3."""
    logged = [(record, 2 if isinstance(record, BrokerRegistrationChangeRecord) else 0) for record in records]
    batches = (data_batch([one], time_ms) for time_ms, one in enumerate(logged, start=1))
    return b"".join(place_batch(batch, offset, 1) for offset, batch in enumerate(batches))


@pytest.mark.parametrize(
    ("records", "since_ms"),
    [
        ((REGISTERED,), 1),
        ((REGISTERED, UNFENCED), None),
        ((REGISTERED, UNFENCED, FENCED), 3),
        ((REGISTERED, UNFENCED, LEAVING, FENCED), 3),
        ((REGISTERED, UNFENCED, FENCED, DIRECTORIES), 3),
        ((REGISTERED, UNFENCED, FENCED, REGISTERED), 3),
        ((REGISTERED, UNFENCED, FENCED, GONE), 3),
        ((REGISTERED, UNFENCED, FENCED, REGISTERED, UNFENCED), None),
        ((REGISTERED, UNFENCED, REGISTERED), 3),
        ((REGISTERED, UNFENCED, GONE), 3),
        ((REGISTERED, UnfenceBrokerRecord(id=11), FenceBrokerRecord(id=11)), 3),
        ((REGISTERED, UNFENCED, BEGIN, FENCED, END), 4),
        ((REGISTERED, UNFENCED, BEGIN, FENCED, ABORT), None),
        ((REGISTERED, BEGIN, UNFENCED, ABORT), 1),
        ((REGISTERED, BEGIN, UNFENCED, END, BEGIN, FENCED, ABORT, BEGIN, END, ABORT), None),
        ((REGISTERED, UNFENCED, FENCED, TopicRecord(name="t", topic_id=bytes(15) + b"\1")), 3),
    ],
)
def test_absence_begins_with_the_first_record_after_which_the_broker_did_not_run(
    records: tuple[Record, ...], since_ms: int | None
) -> None:
    absences = Absences()
    assert absences.take_batches(log(*records), 100) == len(records)
    assert absences.since_ms == ({} if since_ms is None else {11: since_ms})


def test_open_transaction_is_undone_by_whoever_goes_on_from_a_copy() -> None:
    absences, data = Absences(), log(REGISTERED, UNFENCED, BEGIN, FENCED, ABORT)
    position = absences.take_batches(data, 4)
    more = absences.copy()
    assert more.take_batches(data[len(log(REGISTERED, UNFENCED, BEGIN, FENCED)) :], 5) == position + 1
    assert (absences.since_ms, more.since_ms) == ({11: 4}, {})


def test_batches_behind_an_offset_are_left_for_the_next_time() -> None:
    absences, data = Absences(), log(REGISTERED, UNFENCED, FENCED)
    assert absences.take_batches(data, 2) == 2
    assert absences.since_ms == {}
    assert absences.take_batches(data[len(log(REGISTERED, UNFENCED)) :], 3) == 3
    assert absences.since_ms == {11: 3}


def test_absences_of_an_older_state_are_told_as_long_as_too_much_has_not_happened_since() -> None:
    """Three of one broker, which began with records 0, 2 and 4 and ended with 1, 3 and not yet."""
    absences = Absences()
    absences.take_batches(log(REGISTERED, UNFENCED, FENCED, UNFENCED, FENCED), 5)
    assert [absences.since_ms_at(end_offset) for end_offset in range(6)] == [
        None,
        None,
        {},
        {11: 3},
        {},
        {11: 5},
    ]
