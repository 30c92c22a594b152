"""Transactions: what is pending is nobody's state until its end."""

from __future__ import annotations

from typing import Any

import pytest

from quorate.metadata_log.batches.batch import control_batch, data_batch, place_batch
from quorate.metadata_log.records.records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    ConfigRecord,
    EndTransactionRecord,
    KRaftVersionRecord,
    LeaderChangeMessage,
    PartitionChangeRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from quorate.snapshots.errors import ReplayError
from quorate.snapshots.image.image_parts import Provenance
from quorate.snapshots.replay.replay_state import ReplayState

BEGIN, END, ABORT = BeginTransactionRecord("work"), EndTransactionRecord(), AbortTransactionRecord("crash")


def config(value: str) -> ConfigRecord:
    return ConfigRecord(4, "", "name", value)


def replayed(*batches: list[Any], state: ReplayState | None = None) -> ReplayState:
    """Replay batches of records, each in an epoch of its own: 1, 2, ... ."""
    state = ReplayState() if state is None else state
    for epoch, records in enumerate(batches, state.head.provenance.epoch + 1):
        kind = control_batch if isinstance(records[0], (KRaftVersionRecord, LeaderChangeMessage)) else data_batch
        batch = kind(
            [(record, 2 if isinstance(record, PartitionChangeRecord) else 0) for record in records], 1000 + epoch
        )
        state = state.replay_batch(place_batch(batch, state.end_offset, epoch))
    return state


def value(state: ReplayState) -> str | None:
    return state.stable.configs.topic_value("any", "name")


def test_state_inside_transaction_is_that_before_its_begin() -> None:
    state = replayed([config("a")], [config("b"), BEGIN, config("c")], [config("d")])

    assert state.in_transaction
    assert value(state) == "b"
    assert state.stable.provenance == Provenance(1, 2, 1002)
    assert state.begin_offset == 2
    assert state.end_offset == 5
    assert state.head.configs.topic_value("any", "name") == "d"


def test_begin_at_the_head_of_a_batch_leaves_provenance_at_the_batch_before() -> None:
    state = replayed([config("a")], [BEGIN, config("b")])

    assert state.stable.provenance == Provenance(0, 1, 1001)


def test_end_makes_everything_since_begin_stable_at_once() -> None:
    state = replayed([config("a")], [BEGIN, config("b")], [config("c"), END])

    assert not state.in_transaction
    assert value(state) == "c"
    assert state.stable.provenance == Provenance(4, 3, 1003)
    assert state.head is state.stable


def test_abort_takes_everything_since_begin_back_and_the_log_goes_on() -> None:
    state = replayed([config("a")], [BEGIN, config("b")], [ABORT])

    assert value(state) == "a"
    assert state.stable.provenance == Provenance(3, 3, 1003)
    assert value(replayed([config("d")], state=state)) == "d"


def test_several_transactions_in_one_batch_are_told_apart() -> None:
    state = replayed([BEGIN, config("a"), END, BEGIN, config("b"), ABORT, config("c"), BEGIN, config("d")])

    assert state.in_transaction
    assert value(state) == "c"
    assert state.stable.provenance.last_contained_offset == 6


@pytest.mark.parametrize("marker", [END, ABORT])
def test_state_ends_behind_the_marker_where_the_next_transaction_begins_at_once(marker: Any) -> None:
    state = replayed([config("a")], [BEGIN, config("b")], [marker, BEGIN, config("c")])

    assert state.stable.provenance == Provenance(3, 3, 1003)
    assert state.begin_offset == 4


def test_control_records_survive_the_abort_of_a_transaction() -> None:
    """A new leader's control batch falls into the transaction that its predecessor left open."""
    state = replayed([BEGIN, config("a")], [LeaderChangeMessage(1), KRaftVersionRecord(1)], [ABORT])

    assert state.stable.kraft.version == 1
    assert value(state) is None


@pytest.mark.parametrize(
    ("records", "offset"),
    [([config("a"), END], 1), ([ABORT], 0), ([BEGIN, config("a"), BEGIN], 2)],
)
def test_marker_out_of_place_is_refused_with_its_offset(records: list[Any], offset: int) -> None:
    with pytest.raises(ReplayError) as raised:
        replayed(records)

    assert raised.value.offset == offset


def test_record_that_cannot_be_replayed_is_named_by_its_offset_and_changes_nothing() -> None:
    topic = bytes(range(16))
    before = replayed([TopicRecord("t", topic)])
    changes = [PartitionChangeRecord(partition_id=number, topic_id=topic, isr=()) for number in range(40)]

    with pytest.raises(ReplayError, match="no partition 0 of topic") as raised:
        replayed([config("a"), *changes, RemoveTopicRecord(topic)], state=before)

    assert raised.value.offset == 2
    assert value(before) is None
    assert len(before.stable.topics) == 1
