"""The difference between the partitions of two images, field by field: columns, no object per partition.

The order of an ISR is no difference here: nothing follows from it. (To the digest it is one, for it is in the log.)
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from quorate.metadata_log.ids import Uuid, uuid_text
from quorate.snapshots.difference.difference_entries import Entry, PartDifference, entry_of
from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.table.extents import TopicStretches
from quorate.snapshots.table.pages import NO_BROKER, NO_PARTITION, Rows
from quorate.snapshots.table.partition import Partition
from quorate.snapshots.table.partition_columns import Masks, PartitionColumns
from quorate.snapshots.table.partition_table import PartitionTable
from quorate.snapshots.table.slot_layout import resized
from quorate.snapshots.table.table_difference import table_difference

#: Fields of a partition that are sets of brokers, and their columns.
_SETS: Final = {
    "isr": "isr",
    "elr": "elr",
    "last_known_elr": "last_known_elr",
    "adding_replicas": "adding",
    "removing_replicas": "removing",
}
_NUMBERS: Final = {
    "leader_epoch": "leader_epochs",
    "partition_epoch": "partition_epochs",
    "leader_recovery_state": "recovery_states",
}
_EPOCHS: Final = frozenset({"leader_epoch", "partition_epoch"})
#: Rows that are compared at a time: some 10 MB of columns.
_ROWS_AT_ONCE: Final = 65_536

Flags = NDArray[np.bool_]


class _Pairs(NamedTuple):
    """Rows of partitions in an older and in a newer table; -1 = not there."""

    old_rows: Rows
    rows: Rows

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, which: NDArray[Any]) -> _Pairs:
        return _Pairs(self.old_rows[which], self.rows[which])


def partition_difference(
    old: MetadataImage, new: MetadataImage, *, by_name: bool, without_epochs: bool
) -> PartDifference:
    """Compare all partitions.

    Args:
        by_name: topics of one name are one, whatever their ids; the ids of directories are not compared.
        without_epochs: nor are the epochs of partitions and of their leaders.
    """
    left_out = (_EPOCHS if without_epochs else frozenset()) | ({"directories"} if by_name else frozenset())
    pairs = _paired_by_name(old, new) if by_name else _paired_by_id(old.partitions, new.partitions)
    in_both = np.flatnonzero((pairs.old_rows >= 0) & (pairs.rows >= 0))
    differs = np.ones(len(pairs), np.bool_)
    differs[in_both] = False
    counts: dict[str, int] = {}
    changed = 0
    for start in range(0, len(in_both), _ROWS_AT_ONCE):
        part = in_both[start : start + _ROWS_AT_ONCE]
        fields = _fields_that_differ(old.partitions, new.partitions, pairs.take(part), left_out)
        differs[part] = np.logical_or.reduce(list(fields.values()))
        changed += int(np.count_nonzero(differs[part]))
        for field, flags in fields.items():
            counts[field] = counts.get(field, 0) + int(np.count_nonzero(flags))
    pairs = pairs.take(differs)
    return PartDifference(
        "partitions",
        added=int(np.count_nonzero(pairs.old_rows < 0)),
        removed=int(np.count_nonzero(pairs.rows < 0)),
        changed=changed,
        fields={field: count for field, count in counts.items() if count},
        entries=_Entries(old, new, pairs, left_out),
    )


# --- which partitions are the same ones ---------------------------------------------------------------


def _paired_by_id(old: PartitionTable, new: PartitionTable) -> _Pairs:
    """Those that may differ."""
    found = table_difference(old, new)
    gone = np.full(len(found.removed_rows), -1)
    return _Pairs(np.concatenate([found.old_rows, found.removed_rows]), np.concatenate([found.rows, gone]))


def _paired_by_name(old: MetadataImage, new: MetadataImage) -> _Pairs:
    """All."""
    old_parts, parts = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for name in {*old.topics.by_name, *new.topics.by_name}:
        before, after = _rows_named(old, name), _rows_named(new, name)
        numbers = np.arange(max(len(before), len(after)))
        old_parts.append(np.where(numbers < len(before), before.start + numbers, -1))
        parts.append(np.where(numbers < len(after), after.start + numbers, -1))
    old_rows, rows = np.concatenate(old_parts), np.concatenate(parts)
    for table, some in ((old.partitions, old_rows), (new.partitions, rows)):
        there = np.flatnonzero(some >= 0)
        some[there[table.gather_partition_ids(some[there]) == NO_PARTITION]] = -1
    return _Pairs(old_rows, rows).take((old_rows >= 0) | (rows >= 0))


def _rows_named(image: MetadataImage, name: str) -> range:
    topic = image.topics.by_name.get(name)
    return range(0) if topic is None else image.partitions.rows_of(topic.id)


# --- which fields differ ------------------------------------------------------------------------------


def _fields_that_differ(
    old: PartitionTable, new: PartitionTable, pairs: _Pairs, left_out: frozenset[str]
) -> dict[str, Flags]:
    """By field, for each pair of rows that are both there, whether it differs."""
    before, after = old.gather(pairs.old_rows), new.gather(pairs.rows)
    width = max(before.width, after.width)
    old_slots, slots = resized("slots", before.slots.T, width), resized("slots", after.slots.T, width)
    moved = old_slots != slots
    has_replica = np.arange(width)[:, None] < before.replica_counts
    fields = {"leader": before.leaders != after.leaders}
    fields |= {
        field: getattr(before, column) != getattr(after, column)
        for field, column in _NUMBERS.items()
        if field not in left_out
    }
    fields["replicas"] = (before.replica_counts != after.replica_counts) | (moved & has_replica).any(axis=0)
    others = np.flatnonzero(moved.any(axis=0))
    for field, column in _SETS.items():
        old_masks, masks = getattr(before, column), getattr(after, column)
        flags: Flags = old_masks != masks
        # Where the slots are not the same brokers, equal masks say nothing.
        old_ids = _sorted_ids(old_slots[:, others], old_masks[others])
        flags[others] = (old_ids != _sorted_ids(slots[:, others], masks[others])).any(axis=0)
        fields[field] = flags
    if "directories" not in left_out:
        fields["directories"] = _directories_differ(before, after, new.directories.codes_in(old.directories), width)
    return fields


def _sorted_ids(slots: NDArray[np.int32], masks: Masks) -> NDArray[np.int32]:
    """int32[w, n]: the brokers of sets, ascending behind ``NO_BROKER`` in unused places."""
    numbers = np.arange(len(slots), dtype=np.uint64)[:, None]
    ids = np.where((masks >> numbers) & np.uint64(1) != 0, slots, np.int32(NO_BROKER))
    ids.sort(axis=0)
    return ids


def _directories_differ(
    before: PartitionColumns, after: PartitionColumns, codes: NDArray[np.int32], width: int
) -> Flags:
    old_codes = resized("directories", before.directories.T, width)
    new_codes = resized("directories", after.directories.T, width)
    translated = np.where(new_codes < 0, new_codes, codes[new_codes])
    differs: Flags = (old_codes != translated).any(axis=0)
    return differs


# --- entries ------------------------------------------------------------------------------------------


class _Entries:
    """The differing partitions by topic name and number, each made when its turn comes."""

    def __init__(self, old: MetadataImage, new: MetadataImage, pairs: _Pairs, left_out: frozenset[str]) -> None:
        self._old = old
        self._new = new
        self._pairs = pairs
        self._left_out = left_out

    def __iter__(self) -> Iterator[Entry]:
        names, order = self._names_and_order()
        for place in order:
            old_row, row = int(self._pairs.old_rows[place]), int(self._pairs.rows[place])
            table, known_row = (self._new.partitions, row) if row >= 0 else (self._old.partitions, old_row)
            entry = entry_of(
                f"{names[table.topic_id(known_row)]}-{table.partition_id(known_row)}",
                self._fields(self._old.partitions, old_row),
                self._fields(self._new.partitions, row),
            )
            assert entry is not None, (old_row, row)
            yield entry

    def _names_and_order(self) -> tuple[dict[Uuid, str], NDArray[np.int64]]:
        count = len(self._pairs)
        numbers, stretches = np.zeros(count, np.int32), []
        for image, rows in ((self._old, self._pairs.old_rows), (self._new, self._pairs.rows)):
            there = np.flatnonzero(rows >= 0)
            columns = {name: image.partitions.column(rows[there], name) for name in ("partition_ids", "topic_ids")}
            numbers[there] = columns["partition_ids"]
            stretches.append((image, there, TopicStretches.of(columns["topic_ids"])))
        names = {topic: image.topics.by_id[topic].name for image, _, some in stretches for topic in some.topics}
        rank_of_name = {name: rank for rank, name in enumerate(sorted(set(names.values())))}
        ranks = np.zeros(count, np.int64)
        for _, there, some in stretches:
            ranks[there] = np.repeat([rank_of_name[names[topic]] for topic in some.topics], some.lengths)
        return names, np.lexsort((numbers, ranks))

    def _fields(self, table: PartitionTable, row: int) -> dict[str, Any] | None:
        if row < 0:
            return None
        return {name: value for name, value in _values(table.partition(row)).items() if name not in self._left_out}


def _values(partition: Partition) -> dict[str, Any]:
    """A partition's fields as JSON; sets are sorted."""
    return {
        "leader": partition.leader,
        "replicas": list(partition.replicas),
        "isr": sorted(partition.isr),
        "elr": list(partition.elr),
        "last_known_elr": list(partition.last_known_elr),
        "adding_replicas": list(partition.adding_replicas),
        "removing_replicas": list(partition.removing_replicas),
        "leader_recovery_state": partition.leader_recovery_state,
        "leader_epoch": partition.leader_epoch,
        "partition_epoch": partition.partition_epoch,
        "directories": [uuid_text(directory) for directory in partition.directories],
    }
