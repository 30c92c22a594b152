"""Counting the rows of a table by what they are, and what changed of that.

Brokers and directories aside, some dozens of things are said of thousands of rows: what follows from them is found out
once for each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from quorate.snapshots.counts.cells import Cells, Numbers
from quorate.snapshots.counts.row_kinds import RowKinds
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
    missing_replicas,
)

#: The columns of a table that are counted.
COUNTED_COLUMNS: Final = (
    "partition_ids",
    "slots",
    "directories",
    "replica_counts",
    "isr",
    "adding",
    "removing",
    "leader_slots",
    "leader_epochs",
    "partition_epochs",
    "recovery_states",
)
#: Those that a partition's shape follows from, as they are.
_OF_SHAPES: Final = ("replica_counts", "isr", "adding", "removing", "leader_slots", "recovery_states")
#: Those that say which partitions and replicas there are.
_OF_REPLICAS: Final = ("partition_ids", "slots", "directories", "replica_counts")


@dataclass(frozen=True, slots=True, eq=False)
class CountedRows:
    """Rows of a table, by what they are counted by."""

    #: Those named in ``COUNTED_COLUMNS``: [n], lists [width, n].
    columns: Mapping[str, NDArray[Any]]
    #: uint8[n], ``own_min_isr_code`` of each row's topic; None: no topic has one.
    own: NDArray[np.uint8] | None

    def __len__(self) -> int:
        return len(self.columns["partition_ids"])

    def are_held(self) -> NDArray[np.bool_]:
        """bool[n]: those that hold a partition."""
        held: NDArray[np.bool_] = self.columns["partition_ids"] >= 0
        return held

    def have_replicas_of(self, others: CountedRows) -> bool:
        """Whether they have the partitions and the replicas, at a glance, that others have."""
        return all(self.columns[name] is others.columns[name] for name in _OF_REPLICAS)

    def shaping(self) -> dict[str, NDArray[Any]]:
        """The columns that shapes follow from: [n] each."""
        columns = {name: self.columns[name] for name in _OF_SHAPES}
        is_new = self.columns["leader_slots"] < 0
        if is_new.any():
            is_new &= (self.columns["leader_epochs"] == 0) & (self.columns["partition_epochs"] == 0)
        columns["is_new"] = is_new.view(np.uint8)
        if self.own is not None:
            columns["own"] = self.own
        return columns


def counted(rows: CountedRows) -> TableTally:
    """The counts of those that hold a partition."""
    held = rows.are_held()
    if not held.all():
        columns = {name: column[..., held] for name, column in rows.columns.items()}
        rows = CountedRows(columns, None if rows.own is None else rows.own[held])
    return _summed([(rows, 1)])


def difference(before: CountedRows, after: CountedRows) -> TableTally:
    """The counts of n rows as they are, less those of what they were."""
    if after.have_replicas_of(before) and after.are_held().all():
        return _summed([(before, -1), (after, 1)])
    return TableTally.total(((counted(before), -1), (counted(after), 1)))


def _summed(sides: Sequence[tuple[CountedRows, int]]) -> TableTally:
    """The sum of the same partitions with the same replicas, as they are and as they were, each times a number."""
    rows, times = sides[0][0], [one for _, one in sides]
    if not len(rows):
        return TableTally()
    shaping = [side.shaping() for side, _ in sides]
    # Most are the same objects on both sides.
    kinds = RowKinds.of(list({id(column): column for one in shaping for column in one.values()}.values()))
    examples = [{name: column.take(kinds.examples) for name, column in one.items()} for one in shaping]
    shapes = [_shapes(one) for one in examples]
    partitions = Cells.merged([np.concatenate(shapes)], np.concatenate([kinds.counts * one for one in times]))
    width = int(examples[0]["replica_counts"].max())
    if not width:
        return TableTally(partitions)
    # What each slot of each kind of partition is, on either side: [width * k].
    roles = [_roles(one, width).ravel() for one in examples]
    shapes = [np.tile(one, width) for one in shapes]
    replica_kinds = RowKinds.of([*roles, *shapes])
    replicas = Cells.of(*_replicas(rows.columns, kinds.of_rows, replica_kinds.of_rows.reshape(width, -1)))
    *where, kind = replicas.keys
    example = replica_kinds.examples.take(kind)
    keys = [np.concatenate([key] * len(sides)) for key in where]
    keys += [np.concatenate([side.take(example) for side in each]) for each in (roles, shapes)]
    return TableTally(partitions, Cells.merged(keys, np.concatenate([replicas.counts * one for one in times])))


def _replicas(
    columns: Mapping[str, NDArray[Any]], of_rows: NDArray[np.intp], of_slots: NDArray[np.intp]
) -> list[Sequence[NDArray[Any]]]:
    """Broker, directory and kind of the replicas of rows, slot by slot.

    Args:
        of_rows: [n], the kinds of the rows.
        of_slots: [width, k], the kinds of the replicas in the slots of those.
    """
    counts = columns["replica_counts"]
    is_ragged = int(counts.min()) < len(of_slots)
    parts: list[Sequence[NDArray[Any]]] = []
    for slot, kinds in enumerate(of_slots):
        part = (columns["slots"][slot], columns["directories"][slot], kinds.take(of_rows))
        has = np.flatnonzero(counts > slot) if is_ragged else None
        parts.append(part if has is None else [column.take(has) for column in part])
    return parts


def _shapes(columns: Mapping[str, NDArray[Any]]) -> Numbers:
    """int64[n]: the shapes that follow from ``shaping`` columns."""
    isr, adding, removing, leader_slots = (columns[name] for name in ("isr", "adding", "removing", "leader_slots"))
    counts = columns["replica_counts"]
    shapes: Numbers = (leader_slots < 0) * np.int64(OFFLINE)
    for flag, is_so in (
        (NEW, columns["is_new"] != 0),
        (UNDER_REPLICATED, missing_replicas(counts, isr, adding) != 0),
        (NOT_PREFERRED, (leader_slots != 0) | (counts == 0)),
        (REASSIGNING, (adding | removing) != 0),
        (RECOVERING, columns["recovery_states"] != 0),
    ):
        shapes |= is_so * np.int64(flag)
    shapes |= np.bitwise_count(isr).astype(np.int64) << ISR_SHIFT
    shapes |= counts.astype(np.int64) << REPLICAS_SHIFT
    if "own" in columns:
        shapes |= columns["own"].astype(np.int64) << OWN_SHIFT
    return shapes


def _roles(columns: Mapping[str, NDArray[Any]], width: int) -> Numbers:
    """int64[width, n]: the part of the replica in each slot in its partition, by ``shaping`` columns."""
    isr, adding = columns["isr"], columns["adding"]
    bits = np.array([1 << slot for slot in range(width)], isr.dtype)[:, None]
    roles: Numbers = ((isr & bits) != 0) * np.int64(IN_SYNC)
    roles |= (columns["leader_slots"] == np.arange(width)[:, None]) * np.int64(LEADS)
    roles |= ((adding & bits) != 0) * np.int64(ADDING)
    return roles
