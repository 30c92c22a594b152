"""Deciding every kind of row once says what deciding every row says."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorate.controller.partitions.columns import NO_SLOT, PartitionChanges, PartitionRows, PartitionTargets, take_rows
from quorate.controller.partitions.row_patterns import patterns_of
from quorate.controller.partitions.rules import RuleSettings, decide_changes, decide_patterns
from quorate.controller.partitions.runs import PartitionNames, change_runs

ROWS = 320
WIDTH = 4
RULES = st.builds(RuleSettings, st.sampled_from([7, 17, 30]), st.booleans(), st.booleans())


def rows_of(seed: int, pool: int, count: int = ROWS) -> tuple[PartitionRows, PartitionTargets]:
    """Rows drawn from a pool of random ones, and targets that take one slot out of the ISR."""
    rng = np.random.default_rng(seed)

    def some(low: int, high: int) -> np.ndarray:
        return rng.integers(low, high, pool)[drawn]

    drawn = rng.integers(0, pool, count)
    replica_counts = rng.integers(1, WIDTH + 1, pool)
    orders = np.full((pool, WIDTH), NO_SLOT, np.uint8)
    for at, replicas in enumerate(replica_counts):
        members = rng.permutation(replicas)[: rng.integers(0, replicas + 1)]
        orders[at, : len(members)] = members
    isr = np.array([sum(1 << slot for slot in order if slot != NO_SLOT) for order in orders.tolist()], np.uint64)[drawn]
    replicas = ((1 << replica_counts) - 1).astype(np.uint64)[drawn]
    rows = PartitionRows(
        replicas=replicas,
        isr=isr,
        isr_order=orders[drawn],
        removing=np.zeros(count, np.uint64),
        adding=np.zeros(count, np.uint64),
        elr=some(0, 1 << WIDTH).astype(np.uint64) & replicas & ~isr,
        last_known_elr=some(0, 2).astype(np.uint64),
        leader=np.minimum(some(-1, WIDTH), replica_counts[drawn] - 1),
        is_recovering=some(0, 2).astype(np.bool_),
        directories=rng.integers(0, 9, (count, WIDTH)).astype(np.int32),
    )
    gone = np.uint64(1) << some(0, WIDTH).astype(np.uint64)
    targets = PartitionTargets(
        acceptable=some(0, 1 << WIDTH).astype(np.uint64) & ~gone,
        min_isr=some(1, 40),
        election=some(0, 3),
        isr=isr & ~gone if seed % 2 else None,
        isr_order=orders[:, ::-1][drawn] if seed % 2 and seed % 5 else None,
        is_recovering=some(0, 2).astype(np.bool_) if seed % 7 else None,
        unclean_shutdown=gone if seed % 3 else None,
    )
    return rows, targets


@given(st.integers(0, 10**6), st.integers(1, 40), RULES)
@settings(max_examples=60, deadline=None)
def test_kinds_decided_once_change_as_every_row_by_itself(seed: int, pool: int, rules: RuleSettings) -> None:
    rows, targets = rows_of(seed, pool)
    changes, kinds = decide_patterns(rows, targets, rules)
    assert kinds is not None
    alone, by_kind = decide_changes(rows, targets, rules), take_rows(changes, kinds)
    for column in fields(PartitionChanges):
        if column.name != "directories":
            np.testing.assert_array_equal(getattr(by_kind, column.name), getattr(alone, column.name), column.name)
    silent = np.arange(ROWS) % 7 == seed % 7  # These rows get no record.
    alone.has_change[silent] = False
    ids = np.arange(ROWS * 16, dtype=np.uint8).reshape(ROWS, 16)
    names = PartitionNames(
        ids,
        np.arange(ROWS, dtype=np.int32),
        np.arange(ROWS * WIDTH, dtype=np.int32).reshape(ROWS, WIDTH),
        np.arange(ROWS, dtype=np.int32),
    )
    runs = change_runs(names, changes, ids, 2, np.where(silent, -1, kinds))
    expected = change_runs(names, alone, ids, 2)
    assert [run.record(row) for run in runs for row in range(len(run))] == [
        run.record(row) for run in expected for row in range(len(run))
    ]


def test_rows_that_are_too_many_kinds_or_too_few_are_decided_one_by_one() -> None:
    assert patterns_of(*rows_of(1, 2000, 5000)) is None
    assert patterns_of(*rows_of(1, 1, 10)) is None


@pytest.mark.parametrize("field", ["removing", "adding"])
def test_rows_with_a_reassignment_are_decided_one_by_one(field: str) -> None:
    rows, targets = rows_of(1, 5)
    mask: Any = np.zeros(ROWS, np.uint64)
    mask[17] = 1
    changed: dict[str, Any] = {field: mask}
    assert patterns_of(replace(rows, **changed), targets) is None
