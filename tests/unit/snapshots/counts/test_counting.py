"""Rows are counted as one by one they would be, and so is what changed of them."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import numpy as np
import pytest

from quorate.snapshots.counts.cells import Cells
from quorate.snapshots.counts.counting import CountedRows, counted, difference
from quorate.snapshots.counts.tally import (
    ADDING,
    IN_SYNC,
    ISR_SHIFT,
    LEADS,
    NEW,
    NOT_PREFERRED,
    OFFLINE,
    OWN_SHIFT,
    REASSIGNING,
    RECOVERING,
    REPLICAS_SHIFT,
    UNDER_REPLICATED,
    TableTally,
)

MASKS: dict[int, Any] = {3: np.uint8, 12: np.uint16, 40: np.uint64, 64: np.uint64}


def drawn(draw: Random, count: int, width: int, brokers: int, *, may_be_empty: bool) -> CountedRows:
    """Rows with up to ``width`` replicas."""
    replica_counts = [draw.choice([width, draw.randrange(width + 1)]) for _ in range(count)]
    full = [(1 << one) - 1 for one in replica_counts]
    columns: dict[str, Any] = {
        "partition_ids": [draw.choice([0, 7, -1]) if may_be_empty else 7 for _ in range(count)],
        "slots": [[draw.randrange(brokers) for _ in range(count)] for _ in range(width)],
        "directories": [[draw.randrange(-1, 5) for _ in range(count)] for _ in range(width)],
        "replica_counts": replica_counts,
        "isr": [draw.choice([one, one & draw.getrandbits(width)]) for one in full],
        "adding": [draw.choice([0, 0, one & draw.getrandbits(width)]) for one in full],
        "removing": [draw.choice([0, 0, one & draw.getrandbits(width)]) for one in full],
        "leader_slots": [draw.randrange(-1, max(one, 1)) for one in replica_counts],
        "leader_epochs": [draw.choice([0, 3]) for _ in range(count)],
        "partition_epochs": [draw.choice([0, 5]) for _ in range(count)],
        "recovery_states": [draw.choice([0, 0, 1]) for _ in range(count)],
    }
    types: dict[str, Any] = {"replica_counts": np.uint8, "leader_slots": np.int8, "recovery_states": np.int8}
    types |= dict.fromkeys(("isr", "adding", "removing"), MASKS[width])
    arrays = {name: np.array(column, types.get(name, np.int32)) for name, column in columns.items()}
    own = np.array([draw.choice([0, 2, 65]) for _ in range(count)], np.uint8)
    return CountedRows(arrays, draw.choice([None, own]))


def changed(draw: Random, rows: CountedRows, *, may_move: bool) -> CountedRows:
    """The same partitions; with the same replicas, or not."""
    width = len(rows.columns["slots"])
    others = drawn(draw, len(rows), width, 6, may_be_empty=False)
    kept = {name: rows.columns[name] for name in ("partition_ids", "slots", "directories", "replica_counts")}
    full = (np.uint64(1) << rows.columns["replica_counts"].astype(np.uint64)) - np.uint64(1)
    sets = {name: others.columns[name] & full.astype(MASKS[width]) for name in ("isr", "adding", "removing")}
    return others if may_move else CountedRows({**others.columns, **sets, **kept}, draw.choice([rows.own, others.own]))


def one_by_one(rows: CountedRows) -> tuple[Counter[tuple[int, ...]], Counter[tuple[int, ...]]]:
    """Partitions and replicas, by the documents of ``TableTally``."""
    partitions: Counter[tuple[int, ...]] = Counter()
    replicas: Counter[tuple[int, ...]] = Counter()
    lists = ("slots", "directories")
    for row in range(len(rows)):
        one = {name: int(column[row]) for name, column in rows.columns.items() if name not in lists}
        if one["partition_ids"] < 0:
            continue
        count, isr, adding = one["replica_counts"], one["isr"], one["adding"]
        is_offline = one["leader_slots"] < 0
        shape = OFFLINE * is_offline
        shape |= NEW * (is_offline and not one["leader_epochs"] and not one["partition_epochs"])
        shape |= UNDER_REPLICATED * any(not (isr | adding) >> slot & 1 for slot in range(count))
        shape |= NOT_PREFERRED * (one["leader_slots"] != 0 or not count)
        shape |= REASSIGNING * bool(adding | one["removing"])
        shape |= RECOVERING * bool(one["recovery_states"])
        shape |= isr.bit_count() << ISR_SHIFT | count << REPLICAS_SHIFT
        shape |= (0 if rows.own is None else int(rows.own[row])) << OWN_SHIFT
        partitions[(shape,)] += 1
        for slot in range(count):
            role = IN_SYNC * (isr >> slot & 1) | LEADS * (one["leader_slots"] == slot) | ADDING * (adding >> slot & 1)
            broker, directory = (int(rows.columns[name][slot, row]) for name in lists)
            replicas[(broker, directory, role, shape)] += 1
    return partitions, replicas


def as_counter(cells: Cells) -> Counter[tuple[int, ...]]:
    keys = list(zip(*(key.tolist() for key in cells.keys), strict=True))
    assert keys == sorted(set(keys)), "ascending, each once"
    return Counter(dict(zip(keys, cells.counts.tolist(), strict=True)))


def assert_is(tally: TableTally, *parts: tuple[CountedRows, int]) -> None:
    for place, cells in enumerate(tally):
        wanted: Counter[tuple[int, ...]] = Counter()
        for rows, times in parts:
            for key, count in one_by_one(rows)[place].items():
                wanted[key] += times * count
        assert as_counter(cells) == Counter({key: count for key, count in wanted.items() if count})


@pytest.mark.parametrize("count", [0, 1, 400])
@pytest.mark.parametrize("width", MASKS)
@pytest.mark.parametrize("seed", range(4))
def test_rows_are_counted_as_one_by_one(seed: int, width: int, count: int) -> None:
    draw = Random(f"{seed} {width} {count}")
    rows = drawn(draw, count, width, draw.choice([6, 2**31 - 1]), may_be_empty=seed > 0)
    assert_is(counted(rows), (rows, 1))


@pytest.mark.parametrize("may_be_empty", [False, True])
@pytest.mark.parametrize("may_move", [False, True])
@pytest.mark.parametrize("width", MASKS)
@pytest.mark.parametrize("seed", range(4))
def test_difference_is_what_came_less_what_went(seed: int, width: int, may_move: bool, may_be_empty: bool) -> None:
    draw = Random(f"{seed} {width} {may_move} {may_be_empty}")
    before = drawn(draw, 300, width, 6, may_be_empty=may_be_empty)
    after = changed(draw, before, may_move=may_move)
    assert_is(difference(before, after), (before, -1), (after, 1))


def test_nothing_is_the_difference_of_rows_that_stay() -> None:
    rows = drawn(Random(1), 50, 3, 6, may_be_empty=False)
    assert list(map(len, difference(rows, rows))) == [0, 0]


def test_rows_without_replicas_are_partitions_all_the_same() -> None:
    rows = drawn(Random(1), 50, 3, 6, may_be_empty=False)
    none = CountedRows({**rows.columns, "replica_counts": np.zeros(50, np.uint8)}, None)
    assert_is(counted(none), (none, 1))
