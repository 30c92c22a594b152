"""The difference between the partitions of two images, field by field: columns, no object per partition.

The order of an ISR is no difference here: nothing follows from it. (To the digest it is one, for it is in the log.)
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from quorate.metadata_log.ids import uuid_text
from quorate.snapshots.difference.difference_entries import Change, Entry, FieldChange, PartDifference
from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.table.directories import DirectoryDictionary
from quorate.snapshots.table.extents import TopicStretches
from quorate.snapshots.table.pages import NO_BROKER, NO_PARTITION, Rows
from quorate.snapshots.table.partition_columns import Masks, PartitionColumns
from quorate.snapshots.table.partition_table import PartitionTable
from quorate.snapshots.table.slot_layout import resized
from quorate.snapshots.table.table_difference import TableDifference

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
#: All of them, in the order in which they are told.
_FIELDS: Final = (
    "leader",
    "replicas",
    *_SETS,
    "leader_recovery_state",
    "leader_epoch",
    "partition_epoch",
    "directories",
)
_EPOCHS: Final = frozenset({"leader_epoch", "partition_epoch"})
#: Rows that are compared at a time: some 10 MB of columns.
_ROWS_AT_ONCE: Final = 65_536
#: Partitions that are told at a time: some megabytes of Python's lists.
_ENTRIES_AT_ONCE: Final = 4_096

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
    old: MetadataImage, new: MetadataImage, of_tables: TableDifference | None, *, without_epochs: bool
) -> PartDifference:
    """Compare all partitions.

    Args:
        of_tables: of the two images. None: topics of one name are one, whatever their ids; the ids of directories are
            not compared.
        without_epochs: nor are the epochs of partitions and of their leaders.
    """
    left_out = (_EPOCHS if without_epochs else frozenset()) | ({"directories"} if of_tables is None else frozenset())
    pairs = _paired_by_name(old, new) if of_tables is None else _paired_by_id(of_tables)
    in_both = np.flatnonzero((pairs.old_rows >= 0) & (pairs.rows >= 0))
    differs = np.ones(len(pairs), np.bool_)
    differs[in_both] = False
    counts: dict[str, int] = {}
    changed = 0
    compared: _ComparedPartitions | None = None
    for start in range(0, len(in_both), _ROWS_AT_ONCE):
        part = in_both[start : start + _ROWS_AT_ONCE]
        compared = _ComparedPartitions.of(old.partitions, new.partitions, pairs.take(part), left_out)
        differs[part] = np.logical_or.reduce(list(compared.differs.values()))
        changed += int(np.count_nonzero(differs[part]))
        for field, flags in compared.differs.items():
            counts[field] = counts.get(field, 0) + int(np.count_nonzero(flags))
    at = np.full(len(pairs), -1)
    at[in_both] = np.arange(len(in_both))
    is_little = len(in_both) <= _ENTRIES_AT_ONCE
    known = _KnownPairs(compared, at[differs]) if compared is not None and is_little else None
    pairs = pairs.take(differs)
    return PartDifference(
        "partitions",
        added=int(np.count_nonzero(pairs.old_rows < 0)),
        removed=int(np.count_nonzero(pairs.rows < 0)),
        changed=changed,
        fields={field: count for field, count in counts.items() if count},
        entries=_Entries(old, new, pairs, left_out, known),
    )


# --- which partitions are the same ones ---------------------------------------------------------------


def _paired_by_id(found: TableDifference) -> _Pairs:
    """Those that may differ."""
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


class _ComparedPartitions(NamedTuple):
    """Partitions that are there both times: their columns, and by field, for each of them, whether it differs."""

    before: PartitionColumns
    after: PartitionColumns
    differs: dict[str, Flags]

    @staticmethod
    def of(old: PartitionTable, new: PartitionTable, pairs: _Pairs, left_out: frozenset[str]) -> _ComparedPartitions:
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
        return _ComparedPartitions(before, after, fields)


class _KnownPairs(NamedTuple):
    """The n pairs that differ, as they were compared when they were counted."""

    compared: _ComparedPartitions
    #: int64[n]: where the columns have each of them; -1: it is there once.
    at: NDArray[np.int64]


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

    def __init__(
        self,
        old: MetadataImage,
        new: MetadataImage,
        pairs: _Pairs,
        left_out: frozenset[str],
        known: _KnownPairs | None,
    ) -> None:
        """``known``: None: they are too many to be kept."""
        self._old = old
        self._new = new
        self._pairs = pairs
        self._left_out = left_out
        self._known = known

    def __iter__(self) -> Iterator[Entry]:
        names, numbers, order = self._in_order()
        for start in range(0, len(order), _ENTRIES_AT_ONCE):
            part = order[start : start + _ENTRIES_AT_ONCE]
            pairs = self._pairs.take(part)
            for place, change, fields in zip(part.tolist(), _changes(pairs), self._fields(part, pairs), strict=True):
                yield Entry(change, f"{names[place]}-{numbers[place]}", fields)

    def _in_order(self) -> tuple[list[str], list[int], NDArray[np.int64]]:
        """Of each pair its topic's name and its number; and the order of the pairs by these."""
        count = len(self._pairs)
        is_new = self._pairs.rows >= 0
        numbers, stretches = np.zeros(count, np.int32), []
        # What is there now last: a topic that has another name by now is called by that.
        for image, rows, is_there in (
            (self._old, self._pairs.old_rows, ~is_new),
            (self._new, self._pairs.rows, is_new),
        ):
            there = np.flatnonzero(is_there)
            columns = {name: image.partitions.column(rows[there], name) for name in ("partition_ids", "topic_ids")}
            numbers[there] = columns["partition_ids"]
            stretches.append((image, there, TopicStretches.of(columns["topic_ids"])))
        names = {topic: image.topics.by_id[topic].name for image, _, some in stretches for topic in some.topics}
        ranked = sorted(set(names.values()))
        rank_of_name = {name: rank for rank, name in enumerate(ranked)}
        ranks = np.zeros(count, np.int64)
        for _, there, some in stretches:
            ranks[there] = np.repeat([rank_of_name[names[topic]] for topic in some.topics], some.lengths)
        return [ranked[rank] for rank in ranks.tolist()], numbers.tolist(), np.lexsort((numbers, ranks))

    def _fields(self, part: NDArray[np.int64], pairs: _Pairs) -> list[dict[str, FieldChange]]:
        """Of pairs (``part``: their places among all) the fields that differ; of a partition that is there once all."""
        told: list[dict[str, FieldChange]] = [{} for _ in range(len(pairs))]
        old, new = self._old.partitions, self._new.partitions
        is_old, is_new = pairs.old_rows >= 0, pairs.rows >= 0
        for places, is_added in ((np.flatnonzero(~is_old), True), (np.flatnonzero(~is_new), False)):
            if not len(places):
                continue
            table, rows = (new, pairs.rows[places]) if is_added else (old, pairs.old_rows[places])
            alone = _FieldValues(table.gather(rows), table.directories)
            for field in self._kept:
                for place, value in zip(places.tolist(), alone.of(field, slice(None)), strict=True):
                    told[place][field] = FieldChange(None, value) if is_added else FieldChange(value, None)
        in_both = np.flatnonzero(is_old & is_new)
        compared, at = self._compared(part[in_both])
        before, after = _FieldValues(compared.before, old.directories), _FieldValues(compared.after, new.directories)
        for field in self._kept:
            differing = np.flatnonzero(compared.differs[field][at])
            values = zip(before.of(field, at[differing]), after.of(field, at[differing]), strict=True)
            for place, (was, value) in zip(in_both[differing].tolist(), values, strict=True):
                told[place][field] = FieldChange(was, value)
        return told

    def _compared(self, places: NDArray[np.int64]) -> tuple[_ComparedPartitions, NDArray[np.int64]]:
        """Pairs that are there both times, by their places among all, compared, and where each of them is in that."""
        if self._known is None:
            pairs = self._pairs.take(places)
            compared = _ComparedPartitions.of(self._old.partitions, self._new.partitions, pairs, self._left_out)
            return compared, np.arange(len(places))
        return self._known.compared, self._known.at[places]

    @property
    def _kept(self) -> list[str]:
        return [field for field in _FIELDS if field not in self._left_out]


def _changes(pairs: _Pairs) -> Iterator[Change]:
    for old_row, row in zip(pairs.old_rows.tolist(), pairs.rows.tolist(), strict=True):
        yield "added" if old_row < 0 else "removed" if row < 0 else "changed"


class _FieldValues:
    """Fields of some rows of a table as JSON; sets are sorted."""

    def __init__(self, columns: PartitionColumns, directories: DirectoryDictionary) -> None:
        self._columns = columns
        self._directories = directories

    def of(self, field: str, at: NDArray[np.int64] | slice) -> list[Any]:
        """One field of those at some places."""
        columns = self._columns
        if field == "leader" or field in _NUMBERS:
            numbers: list[int] = getattr(columns, _NUMBERS.get(field, "leaders"))[at].tolist()
            return numbers
        if field in _SETS:
            ids = _sorted_ids(columns.slots.T[:, at], getattr(columns, _SETS[field])[at])
            return [[id_ for id_ in row if id_ != NO_BROKER] for row in ids.T.tolist()]
        counts = columns.replica_counts[at].tolist()
        if field == "replicas":
            return [row[:count] for row, count in zip(columns.slots[at].tolist(), counts, strict=True)]
        codes = zip(columns.directories[at].tolist(), counts, strict=True)
        return [[uuid_text(self._directories.uuid(code)) for code in row[:count]] for row, count in codes]
