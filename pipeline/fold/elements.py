"""Elements: what some consecutive records did to each partition, as columns.

An element says for each field the last value that was set, or that none was; how many changes there were; and whether
the partition was declared whole among them. Elements of one partition that follow each other compose (``compose``).
A state is a table of elements too: one for each partition, all declared whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Final

import numpy as np
import pyarrow as pa

from quorate.metadata_log.batches.runs import ByteColumn
from quorate.pipeline.fold.fields import (
    BASE,
    BIT,
    KEEPS_DIRECTORIES,
    LISTS,
    UUID_TYPE,
    Flags,
    Ints,
    Longs,
    list_type,
    uuid_array,
    uuid_bytes,
)
from quorate.pipeline.fold.grouping import order_by, partition_codes, topic_hashes
from quorate.pipeline.fold.rows import RowTable

_INT_COLUMNS: Final = (
    "partition_ids",
    "leader",
    "leader_recovery_state",
    "leader_epoch",
    "partition_epoch",
    "changes",
    "leader_changes",
)
_LONG_COLUMNS: Final = ("first_offset", "last_offset")

SCHEMA: Final = pa.schema(
    [
        pa.field("topic_ids", UUID_TYPE),
        pa.field("flags", pa.uint16()),
        *(pa.field(name, pa.int64()) for name in _LONG_COLUMNS),
        *(pa.field(name, pa.int32()) for name in _INT_COLUMNS),
        *(pa.field(name, list_type(name)) for name in LISTS),
    ]
)


@dataclass(frozen=True, slots=True, eq=False)
class Elements:
    """One row per element."""

    #: uint8[n, 16]
    topic_ids: ByteColumn
    partition_ids: Ints
    #: What it sets: bits of ``fields``.
    flags: Flags
    #: Offsets of the first and the last record in it.
    first_offset: Longs
    last_offset: Longs
    #: Meaningless where the bit says that it is not set.
    leader: Ints
    leader_recovery_state: Ints
    #: As declared; 0 where the partition is not declared whole.
    leader_epoch: Ints
    partition_epoch: Ints
    #: Changes since the declaration, or since the element's begin.
    changes: Ints
    #: Those of them that name a leader.
    leader_changes: Ints
    #: By field: lists, null where the bit says that it is not set.
    lists: dict[str, pa.Array]

    def __len__(self) -> int:
        return len(self.flags)

    def has(self, bit: int) -> Any:
        """bool[n]: whether any of these bits is set."""
        return (self.flags & bit) != 0

    def take(self, index: Longs) -> Elements:
        """Some of the rows."""
        columns = {field.name: getattr(self, field.name)[index] for field in fields(self) if field.name != "lists"}
        return replace(
            self, **columns, lists={name: column.take(pa.array(index)) for name, column in self.lists.items()}
        )

    def to_arrow(self) -> pa.RecordBatch:
        """As a batch of ``SCHEMA``."""
        columns = [
            uuid_array(self.topic_ids)
            if field.name == "topic_ids"
            else self.lists[field.name]
            if field.name in LISTS
            else pa.array(getattr(self, field.name), field.type)
            for field in SCHEMA
        ]
        return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)

    @classmethod
    def from_arrow(cls, batch: pa.RecordBatch) -> Elements:
        """The elements that ``to_arrow`` gave."""
        scalars = {name: batch.column(name).to_numpy() for name in ("flags", *_LONG_COLUMNS, *_INT_COLUMNS)}
        return cls(
            topic_ids=uuid_bytes(batch.column("topic_ids")),
            lists={name: batch.column(name) for name in LISTS},
            **scalars,
        )


def empty_elements() -> Elements:
    """None at all."""
    return Elements.from_arrow(pa.RecordBatch.from_pylist([], SCHEMA))


def joined_elements(parts: Sequence[Elements]) -> Elements:
    """All elements of some tables."""
    if len(parts) == 1:
        return parts[0]
    if not parts:
        return empty_elements()
    columns = {
        field.name: np.concatenate([getattr(part, field.name) for part in parts])
        for field in fields(Elements)
        if field.name != "lists"
    }
    lists = {name: pa.concat_arrays([part.lists[name] for part in parts]) for name in LISTS}
    return Elements(**columns, lists=lists)


@dataclass(frozen=True, slots=True)
class Cuts:
    """Offsets that no element may reach across: it ends below, and the next one begins at or above."""

    #: For all partitions. Ascending.
    everywhere: Longs
    #: For those of one topic, by its id.
    of_topics: dict[bytes, list[int]]


def fold_rows(rows: RowTable, cuts: Cuts) -> Elements:
    """The rows of a task as elements, one for each partition and stretch between cuts."""
    if not len(rows):
        return empty_elements()
    topic_ids, partition_ids, offsets = rows.topic_ids(), rows.scalars("partition_ids"), rows.offsets()
    codes = partition_codes(topic_ids, partition_ids)
    order = order_by(codes, offsets)
    flags, offsets = rows.flags()[order], offsets[order]
    stretches = _stretch_numbers(codes[order], offsets, flags, cuts, topic_ids, order)
    starts = np.flatnonzero(np.concatenate([[True], stretches]))
    ends = np.append(starts[1:], len(order))
    last = _LastRows(flags, starts, ends)
    declared = last.with_any(BASE)
    is_declared = declared >= 0
    since = np.where(is_declared, declared, starts - 1)  # the row behind which changes count
    leader_changes = np.cumsum((flags & (BIT["leader"] | BASE)) == BIT["leader"], dtype=np.int32)
    counted_before = np.where(since >= 0, leader_changes[np.maximum(since, 0)], 0)
    set_bits: Any = np.bitwise_or.reduceat(flags & ~np.uint16(KEEPS_DIRECTORIES), starts)
    keeps = flags[starts] & np.uint16(KEEPS_DIRECTORIES)
    at = {bit: last.with_any(bit) for bit in BIT.values()}
    firsts = order[starts]

    def values(name: str, positions: Longs) -> Ints:
        return np.where(positions >= 0, rows.scalars(name)[order[np.maximum(positions, 0)]], 0).astype(np.int32)

    return Elements(
        topic_ids=topic_ids[firsts],
        partition_ids=partition_ids[firsts],
        flags=set_bits | np.where(is_declared, np.uint16(0), keeps),
        first_offset=offsets[starts],
        last_offset=offsets[ends - 1],
        leader=values("leader", at[BIT["leader"]]),
        leader_recovery_state=values("leader_recovery_state", at[BIT["leader_recovery_state"]]),
        leader_epoch=values("leader_epoch", declared),
        partition_epoch=values("partition_epoch", declared),
        changes=(ends - 1 - since).astype(np.int32),
        leader_changes=(leader_changes[ends - 1] - counted_before).astype(np.int32),
        lists={name: _taken(rows, name, order, at[BIT[name]]) for name in LISTS},
    )


class _LastRows:
    """For stretches of rows: the last row in each that has some bit."""

    def __init__(self, flags: Flags, starts: Longs, ends: Longs) -> None:
        self._flags = flags
        self._starts = starts
        self._lasts = ends - 1

    def with_any(self, bits: int) -> Longs:
        """Its position, -1 where there is none."""
        has = (self._flags & bits) != 0
        positions = np.flatnonzero(has)
        if not len(positions):
            return np.full(len(self._starts), -1, np.int64)
        if len(positions) == len(has):
            return self._lasts
        # The last one up to a stretch's end, unless that is in a stretch before.
        count = np.cumsum(has, dtype=np.int32)[self._lasts]
        found: Longs = positions[np.maximum(count, 1) - 1]
        return np.where((count > 0) & (found >= self._starts), found, -1)


def _taken(rows: RowTable, name: str, order: Longs, positions: Longs) -> pa.Array:
    """The lists at positions of an order; null where the position is -1."""
    is_none = positions < 0
    if is_none.all():
        return pa.nulls(len(positions), list_type(name))
    return rows.lists(name).take(pa.array(order[np.maximum(positions, 0)], mask=is_none))


def _stretch_numbers(codes: Ints, offsets: Longs, flags: Flags, cuts: Cuts, topic_ids: ByteColumn, order: Longs) -> Any:
    """bool[n - 1]: whether another element begins with the next row. All but ``topic_ids`` is in order."""
    begins: Any = (codes[1:] != codes[:-1]) | ((flags[1:] & KEEPS_DIRECTORIES) != 0)
    if len(cuts.everywhere):
        number = np.searchsorted(cuts.everywhere, offsets, side="right")
        begins |= number[1:] != number[:-1]
    if cuts.of_topics:
        _cut_topics(begins, codes, offsets, cuts.of_topics, topic_ids, order)
    return begins


def _cut_topics(
    begins: Any, codes: Ints, offsets: Longs, of_topics: dict[bytes, list[int]], topic_ids: ByteColumn, order: Longs
) -> None:
    group_starts = np.flatnonzero(np.concatenate([[True], codes[1:] != codes[:-1]]))
    group_ends = np.append(group_starts[1:], len(codes))
    group_topics = topic_ids[order[group_starts]]
    wanted = topic_hashes(np.frombuffer(b"".join(of_topics), np.uint8).reshape(-1, 16))
    for group in np.flatnonzero(np.isin(topic_hashes(group_topics), wanted)).tolist():
        first, end = int(group_starts[group]), int(group_ends[group])
        cuts = of_topics.get(group_topics[group].tobytes())
        if cuts is not None:
            number = np.searchsorted(np.array(cuts), offsets[first:end], side="right")
            begins[first : end - 1] |= number[1:] != number[:-1]
