"""The difference between two partition tables.

Pages and columns that both share are skipped, so between an image and its successor the cost is that of what changed.
Tables of unrelated histories are compared by content, wherever their topics lie and whatever codes directories have.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from quorate.metadata_log.ids import Uuid
from quorate.snapshots.pauses import Pause
from quorate.snapshots.table.extents import TopicStretches, extent_column, id_column, numbered
from quorate.snapshots.table.pages import (
    COLUMNS,
    LIST_COLUMNS,
    NO_PARTITION,
    PAGE_SHIFT,
    AnyColumn,
    Page,
    Rows,
    other_pages,
)
from quorate.snapshots.table.slot_layout import resized

if TYPE_CHECKING:
    from quorate.snapshots.table.partition_table import PartitionTable


@dataclass(frozen=True, slots=True, eq=False)
class TableDifference:
    """Partitions that are not the same in two tables, by their rows."""

    #: Rows in the newer table of partitions that are new or have changed; ascending.
    rows: Rows
    #: The same partitions' rows in the older table; -1 = new.
    old_rows: Rows
    #: Rows in the older table of partitions that are gone; ascending.
    removed_rows: Rows

    def __bool__(self) -> bool:
        return bool(len(self.rows) or len(self.removed_rows))


def table_difference(old: PartitionTable, new: PartitionTable, *, of_new_topics: bool = True) -> TableDifference:
    """The partitions of ``old`` that are not the same in ``new``, and those that only one of the two has.

    Args:
        of_new_topics: also those of topics that have none in ``old``; otherwise, however many there are, they cost
            next to nothing.
    """
    nothing = np.empty(0, np.int64)
    if old is new or (not len(old) and not of_new_topics):
        return TableDifference(nothing, nothing, nothing)
    if not len(old):
        rows = new.all_rows()
        return TableDifference(rows, np.full(len(rows), -1), nothing)
    moved, gone = new.extents.changes_since(old.extents)
    stayed = _changed_in_place(old, new, [*moved, *gone])
    told = list(moved) if of_new_topics else [topic for topic in moved if topic in old.extents]
    moved_old_rows, moved_rows = _changed_by_topic(old, new, told) if told else (nothing, nothing)
    old_rows = np.concatenate([stayed, moved_old_rows, np.sort(numbered(*_extents(old, list(gone))))])
    rows = np.concatenate([stayed, moved_rows])
    was_held, is_held = _holds(old, old_rows), _holds(new, rows)
    paired = slice(len(rows))
    removed_rows = old_rows[was_held & ~np.append(is_held, np.zeros(len(old_rows) - len(rows), np.bool_))]
    old_rows = np.where(was_held, old_rows, -1)[paired][is_held]
    rows = rows[is_held]
    order = np.argsort(rows, kind="stable")
    return TableDifference(rows[order], old_rows[order], np.sort(removed_rows))


def tables_equal(old: PartitionTable, new: PartitionTable) -> bool:
    """Whether both hold the same partitions in the same state."""
    if old is new or len(old) != len(new):
        return old is new
    if old.extents is new.extents:  # as after most changes: the first page that differs says it
        return not any(differs.any() for _, differs in _differences_in_place(old, new))
    return not table_difference(old, new)


def changed_topics(old: PartitionTable, new: PartitionTable, pause: Pause) -> NDArray[np.uint8]:
    """uint8[n, 16]: topics some of whose partitions are new, gone or not the same, some of them several times.

    There may be a few others among them. They are no set, which after a mass change would hold all topics: see
    ``each_once``.

    Args:
        pause: called after each page that was looked into.
    """
    topics = [id_column(chain.from_iterable(new.extents.changes_since(old.extents)), pause)]
    for number, differs in _differences_in_place(old, new):
        if differs.any():
            topics += (TopicStretches.of(table.pages[number].topic_ids[differs]).ids for table in (old, new))
        pause()
    return np.concatenate(topics)


def _extents(table: PartitionTable, topics: Sequence[Uuid]) -> tuple[Rows, Rows]:
    """int64[t], int64[t]: first rows and sizes; 0 and 0 of a topic that has no rows."""
    column = extent_column(table.extents.get_many(topics))
    return column[:, 0], column[:, 1]


def _holds(table: PartitionTable, rows: Rows) -> NDArray[np.bool_]:
    """Whether rows hold a partition; -1 does not."""
    holds = rows >= 0
    holds[holds] = table.gather_partition_ids(rows[holds]) != NO_PARTITION
    return holds


# --- topics that lie where they lay ------------------------------------------------------------------


def _changed_in_place(old: PartitionTable, new: PartitionTable, others: Sequence[Uuid]) -> Rows:
    """Changed rows of the topics that have the same rows in both tables: all but ``others``."""
    parts = [np.empty(0, np.int64)]
    for number, differs in _differences_in_place(old, new):
        parts.append(np.flatnonzero(differs) + (number << PAGE_SHIFT))
    changed = np.concatenate(parts)
    for table in (old, new) if others else ():
        starts, sizes = _extents(table, others)
        starts, ends = np.sort(starts[sizes > 0]), np.sort((starts + sizes)[sizes > 0])
        # Inside of one: it has begun, and not ended. Topics share no row.
        is_other = np.searchsorted(starts, changed, side="right") > np.searchsorted(ends, changed, side="right")
        changed = changed[~is_other]
    return changed


def _differences_in_place(old: PartitionTable, new: PartitionTable) -> Iterator[tuple[int, NDArray[np.bool_]]]:
    """The pages that both tables have and do not share, by number, and which of their rows differ."""
    codes = new.directories.codes_in(old.directories)
    is_same_code = bool((codes == np.arange(len(codes))).all())
    in_both = new.pages[: len(old.pages)]
    for number in other_pages(old.pages, in_both):
        yield number, _rows_that_differ(old.pages[number], in_both[number], None if is_same_code else codes)


def _rows_that_differ(before: Page, after: Page, codes: NDArray[np.int32] | None) -> NDArray[np.bool_]:
    differs = np.zeros(len(after.partition_ids), np.bool_)
    width = max(before.width, after.width)
    for name in COLUMNS:
        a: AnyColumn = getattr(before, name)
        b: AnyColumn = getattr(after, name)
        if name == "directories" and codes is not None:
            b = _translated(b, codes)
        elif a is b:
            continue
        if name in LIST_COLUMNS:
            differs |= (resized(name, a, width) != resized(name, b, width)).any(axis=0)
        elif name == "topic_ids":
            differs |= (a != b).any(axis=1)
        else:
            differs |= a != b
    return differs


def _translated(codes_of_new: AnyColumn, codes: NDArray[np.int32]) -> AnyColumn:
    return np.where(codes_of_new < 0, codes_of_new, codes[codes_of_new])


# --- topics that lie elsewhere -----------------------------------------------------------------------


def _changed_by_topic(old: PartitionTable, new: PartitionTable, topics: Sequence[Uuid]) -> tuple[Rows, Rows]:
    """Rows in the old and the new table of partitions of some topics that are not the same; -1 = no row."""
    (old_starts, old_sizes), (starts, sizes) = _extents(old, topics), _extents(new, topics)
    most = np.maximum(old_sizes, sizes)
    numbers = numbered(np.zeros_like(most), most)
    old_rows = np.where(numbers < np.repeat(old_sizes, most), np.repeat(old_starts, most) + numbers, -1)
    rows = np.where(numbers < np.repeat(sizes, most), np.repeat(starts, most) + numbers, -1)
    differs = np.ones(len(rows), np.bool_)
    in_both = np.flatnonzero((old_rows >= 0) & (rows >= 0))
    differs[in_both] = _differ(old, old_rows[in_both], new, rows[in_both])
    return old_rows[differs], rows[differs]


def _differ(old: PartitionTable, old_rows: Rows, new: PartitionTable, rows: Rows) -> NDArray[np.bool_]:
    """For pairs of rows whether they differ."""
    before, after = old.gather(old_rows), new.gather(rows)
    width = max(before.width, after.width)
    codes = new.directories.codes_in(old.directories)
    differs = np.zeros(len(rows), np.bool_)
    for name in LIST_COLUMNS:
        b = getattr(after, name).T
        b = _translated(b, codes) if name == "directories" else b
        differs |= (resized(name, getattr(before, name).T, width) != resized(name, b, width)).any(axis=0)
    for name in COLUMNS:
        if name not in LIST_COLUMNS and name != "topic_ids":
            differs |= getattr(before, name) != getattr(after, name)
    return differs
