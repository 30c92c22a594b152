"""The fold in small: clearings, what is refused, what is broken, and cells by bucket."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

import pytest

from quorate.metadata_log.records import records as r
from quorate.pipeline.fold.cells import join, split
from quorate.pipeline.fold.errors import FoldRefused
from quorate.pipeline.fold.findings import bucket_findings, catalogue_findings
from quorate.pipeline.fold.state import FoldedState, state_at
from quorate.pipeline.fold.task import FoldedTask, TaskFold
from quorate.snapshots.digest import digest_bytes, root
from tests.random_logs.folded import folded
from tests.random_logs.logs import batches_of, random_cuts, random_records

TOPIC, OTHER = b"t" * 16, b"o" * 16


def task(records: Sequence[Any], first: int = 0, moments: Sequence[int] = ()) -> FoldedTask:
    fold = TaskFold(moments)
    for offset, record in enumerate(records, start=first):
        fold.add_record(offset, record)
    return fold.finish()


def state(*parts: Sequence[Any]) -> FoldedState:
    """At the end of some records, each part a task."""
    end = sum(map(len, parts))
    tasks, first = [], 0
    for part in parts:
        tasks.append(task(part, first, (end,)))
        first += len(part)
    return state_at(tasks, end)


def partition(**fields: Any) -> r.PartitionRecord:
    given = {"replicas": (1, 2), "isr": (1, 2), "leader": 1, "leader_epoch": 0, "partition_epoch": 0, **fields}
    return r.PartitionRecord(partition_id=0, topic_id=TOPIC, directories=(b"a" * 16, b"b" * 16), **given)


def change(**fields: Any) -> r.PartitionChangeRecord:
    return r.PartitionChangeRecord(partition_id=0, topic_id=TOPIC, **fields)


@pytest.mark.parametrize("name", ["t", ""])
@pytest.mark.parametrize("cut", range(1, 4))
def test_clearing_counts_once_where_there_was_something_to_clear(name: str, cut: int) -> None:
    records = [
        r.TopicRecord("t", TOPIC),
        partition(eligible_leader_replicas=(2,)),
        r.ClearElrRecord(name),
        r.ClearElrRecord(name),
        change(eligible_leader_replicas=(1,)),
    ]
    for found in (state(records), state(records[:cut], records[cut:])):
        assert found.partitions.partition_epoch.tolist() == [2]
        assert found.partitions.lists["eligible_leader_replicas"].to_pylist() == [[1]]


@pytest.mark.parametrize(
    ("records", "offset", "reason"),
    [
        ([r.TopicRecord("t", TOPIC), change(leader=2)], 1, "there is no partition"),
        ([change(leader=2)], 0, "which is not there"),
        (
            [r.TopicRecord("t", TOPIC), partition(), r.RemoveTopicRecord(TOPIC), change(leader=2)],
            3,
            "which is not there",
        ),
        ([r.TopicRecord("t", TOPIC), r.TopicRecord("t", OTHER)], 1, "exists already"),
        ([r.RemoveTopicRecord(TOPIC)], 0, "there is no topic"),
        ([r.BeginTransactionRecord("a"), r.BeginTransactionRecord("b")], 1, "begins inside the one"),
        ([r.EndTransactionRecord()], 0, "outside of a transaction"),
        ([r.UnregisterBrokerRecord(3, 1)], 0, "broker 3 is not registered"),
        ([r.RegisterBrokerRecord(3, broker_epoch=2), r.FenceBrokerRecord(3, 1)], 1, "has epoch 2, not 1"),
        ([r.ProducerIdsRecord(1, 1, 5), r.ProducerIdsRecord(1, 1, 5)], 1, "is not above 5"),
    ],
)
def test_record_that_cannot_be_is_refused_with_its_offset(records: list[Any], offset: int, reason: str) -> None:
    with pytest.raises(FoldRefused, match=reason) as caught:
        state(records)

    assert caught.value.offset == offset


@pytest.mark.parametrize(
    ("fields", "rule"),
    [
        ({"leader": 3}, "the leader is not in the ISR"),
        ({"isr": (1, 3)}, "the ISR has a broker that is no replica"),
        ({"replicas": (1, 2, 3)}, "there is not one directory for each replica"),
    ],
)
def test_broken_partition_is_a_problem_at_its_last_change(fields: dict[str, Any], rule: str) -> None:
    records = [r.TopicRecord("t", TOPIC), partition(), change(leader_recovery_state=0), partition(**fields)]
    done = task(records, moments=(3, 4))

    before, after = bucket_findings(done.elements, done.others, (3, 4))

    assert before.problems == []
    assert (after.problems[0].offset, after.problems[0].topic, after.problems[0].partition) == (3, "t", 0)
    assert [problem.problem for problem in after.problems] == [rule, "an epoch is lower than it was"]


def cells_of(tasks: Sequence[FoldedTask], buckets: int) -> dict[int, list[bytes]]:
    """What all tasks hand on, by bucket; the cells of the other records have the number behind the last."""
    cells: dict[int, list[bytes]] = {}
    for one in tasks:
        for bucket, cell in split(one, buckets):
            cells.setdefault(bucket, []).append(cell)
    return cells


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("buckets", [1, 3, 8])
def test_buckets_by_themselves_add_up_to_the_state(seed: int, buckets: int) -> None:
    chance = Random(seed)
    operations = random_records(chance, 25)
    end = sum(map(len, operations))
    tasks = folded(list(random_cuts(chance, batches_of(chance, operations))), (end,))
    cells = cells_of(tasks, buckets)
    _, others = join(cells.pop(buckets, []))
    found = [*catalogue_findings(others, (end,))]
    for held in cells.values():
        found += bucket_findings(*join(held), (end,))

    assert digest_bytes(root(one.leaves for one in found)) == state_at(tasks, end).digest()


@pytest.mark.parametrize("seed", range(3))
def test_findings_at_each_moment_are_those_of_the_state_there(seed: int) -> None:
    """Behind the last record of a bucket, and behind that of the log, they are what they were."""
    chance = Random(seed)
    operations = random_records(chance, 25)
    end = sum(map(len, operations))
    moments = (end // 2, end - 1, end, end + 7)
    tasks = folded(list(random_cuts(chance, batches_of(chance, operations))), moments)
    cells = cells_of(tasks, 3)
    _, others = join(cells.pop(3, []))
    found = [*catalogue_findings(others, moments)]
    for held in cells.values():
        found += bucket_findings(*join(held), moments)

    for moment in moments:
        digest = digest_bytes(root(one.leaves for one in found if one.moment == moment))
        assert digest == state_at(tasks, moment).digest()
