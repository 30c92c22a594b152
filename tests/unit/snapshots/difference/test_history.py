"""A log told as differences."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

import pytest

from quorate.metadata_log.audit.audit_lines import AuditLine
from quorate.metadata_log.batches.batch import BatchHeader, control_batch, data_batch, parse_header, place_batch
from quorate.metadata_log.errors import CorruptBatch
from quorate.metadata_log.records import records as r
from quorate.snapshots.difference.history import (
    Audit,
    HistoryStep,
    Subject,
    broker_subject,
    config_subject,
    history,
    partition_subject,
    topic_subject,
)
from quorate.snapshots.errors import ReplayError
from quorate.snapshots.replay.replay_state import ReplayState
from quorate.snapshots.table import kept_counts

T = bytes(15) + b"t"
ROUND: list[list[Any]] = [
    [
        r.TopicRecord("orders", T),
        r.PartitionRecord(0, T, replicas=(1, 2), isr=(1, 2), leader=1, directories=(bytes(16),) * 2),
        r.ConfigRecord(2, "orders", "retention.ms", "5"),
    ],
    [r.NoOpRecord()],
    [
        r.PartitionChangeRecord(partition_id=0, topic_id=T, isr=(1,)),
        r.ConfigRecord(4, "1", "log.cleaner.threads", "2"),
        r.ConfigRecord(2, "orders", "retention.ms", "6"),
    ],
]
VERSIONS = {"PartitionRecord": 2, "PartitionChangeRecord": 2}
AUDIT = [
    AuditLine(3, 0, 3, "create_topics", "User:ana", "10.0.0.1", "a"),
    AuditLine(2, 4, 9, "never_committed", None, None, None),
    AuditLine(3, 4, 5, "alter_partition", None, None, None),
    AuditLine(3, 5, 7, "incremental_alter_configs", "User:bo", "10.0.0.2", "b"),
]


def batches(rounds: list[list[Any]]) -> list[bytes]:
    made, offset = [], 0
    for records in rounds:
        items = [(record, VERSIONS.get(type(record).__name__, 0)) for record in records]
        made.append(place_batch(data_batch(items, 1000 + offset), offset, 3))
        offset += len(records)
    return made


def all_steps(audit: list[AuditLine], made: list[bytes]) -> list[HistoryStep]:
    return list(history(ReplayState(), made, Audit(audit), lambda *_: False))


def told(subject: Subject | None) -> list[tuple[int, int, str | None, list[str]]]:
    steps: list[HistoryStep] = list(history(ReplayState(), batches(ROUND), Audit(AUDIT), lambda *_: False, subject))
    return [
        (
            step.base_offset,
            step.end_offset,
            None if step.line is None else step.line.event,
            [f"{entry.change} {part} {entry.name} {','.join(entry.fields)}" for part, entry in step.changes],
        )
        for step in steps
    ]


def test_history_of_a_config_is_its_values_with_offset_and_event() -> None:
    assert told(config_subject("topic/orders")) == [
        (2, 3, "create_topics", ["added configs topic/orders retention.ms"]),
        (6, 7, "incremental_alter_configs", ["changed configs topic/orders retention.ms"]),
    ]


def test_history_of_a_partition_leaves_out_the_rest() -> None:
    assert [(base, changes[0].split()[0]) for base, _, _, changes in told(partition_subject("orders-0"))] == [
        (1, "added"), (4, "changed"),
    ]  # fmt: skip
    assert told(partition_subject("orders-1")) == []


def test_history_of_a_topic_has_its_partitions_and_configs() -> None:
    steps = told(topic_subject("orders"))

    assert [(base, event) for base, _, event, _ in steps] == [
        (0, "create_topics"), (1, "create_topics"), (2, "create_topics"),
        (4, "alter_partition"), (6, "incremental_alter_configs"),
    ]  # fmt: skip


def test_history_of_a_broker_has_its_configs() -> None:
    assert told(broker_subject(1)) == [
        (5, 6, "incremental_alter_configs", ["added configs broker/1 log.cleaner.threads"])
    ]


def test_history_of_everything_is_every_change_and_no_step_without_one() -> None:
    assert [base for base, _, _, _ in told(None)] == [0, 1, 2, 4, 5, 6]


def test_partitions_are_not_counted_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    partitions = [r.PartitionRecord(n, T, replicas=(1, 2), isr=(1, 2), leader=1) for n in range(1000)]
    changes = [r.PartitionChangeRecord(partition_id=n, topic_id=T, isr=(1,)) for n in range(1000)]
    rounds: list[list[Any]] = [[r.TopicRecord("orders", T), *partitions], [r.BeginTransactionRecord("t")]]
    first, begin, *made = batches([*rounds, [*changes[:600]], [*changes[600:]], [r.EndTransactionRecord()]])
    start = ReplayState().replay_batch(first).replay_batch(begin)
    for name in ("counted", "difference"):
        monkeypatch.setattr(kept_counts, name, lambda *_: pytest.fail("partitions were counted"))

    [step] = history(start, made, Audit([]), lambda *_: False, by_record=False)

    assert len(step.changes) == 1000


def test_topic_whose_name_continues_another_is_not_part_of_it() -> None:
    subject = topic_subject("orders")

    assert subject.holds("partitions", "orders-12")
    assert not subject.holds("partitions", "orders-eu-12")
    assert not subject.holds("topics", "orders-eu")


def test_step_names_the_controller_that_led_its_epoch_where_the_log_says_so() -> None:
    change = place_batch(control_batch([(r.LeaderChangeMessage(5), 0)], 1000), 0, 3)
    made = [change, *(place_batch(batch, parse_header(batch).base_offset + 1, 3) for batch in batches(ROUND))]
    later = place_batch(data_batch([(r.ConfigRecord(4, "1", "log.cleaner.threads", "3"), 0)], 2000), 8, 4)

    assert {step.decided_by for step in all_steps(AUDIT, batches(ROUND))} == {None}
    assert [step.decided_by for step in all_steps(AUDIT, [*made, later])] == [5] * 6 + [None]


BAD = r.PartitionChangeRecord(partition_id=7, topic_id=T, isr=(1,))


def failing(rest: Iterable[bytes]) -> list[HistoryStep]:
    """A history of nothing behind its first batch, of a log with a record that cannot be replayed in the second."""
    made = batches([*ROUND[:1], [BAD], *ROUND[1:]])

    def is_first(header: BatchHeader) -> bool:
        return header.base_offset == 0

    return list(history(ReplayState(), chain(made, rest), Audit([]), lambda *_: False, is_wanted=is_first))


def test_what_is_wrong_with_batches_that_are_not_told_is_found_though_nothing_follows() -> None:
    with pytest.raises(ReplayError, match="offset 3: there is no partition 7"):
        failing([])


def test_what_is_wrong_first_is_told_first() -> None:
    def damaged() -> Iterator[bytes]:
        yield from ()
        raise CorruptBatch("file", 0, 9, "its CRC does not hold")

    with pytest.raises(ReplayError, match="offset 3: there is no partition 7"):
        failing(damaged())
